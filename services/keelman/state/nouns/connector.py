"""Connectors, as workers have reported them; the state service does not keep them as resources."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from keelman.api.connect.v1 import connector_report_service_pb2 as pb
from keelman.api.connect.v1 import connector_report_service_pb2_grpc as grpc
from keelman.model.cluster import ClusterState
from keelman.model.errors import InvalidArgument, Unavailable
from keelman.model.workload import WorkloadKind
from keelman.rpc.pages import LARGEST_SIZE
from keelman.rpc.server import Context
from keelman.runtime.supervise import first_of
from keelman.state.nouns.parts import NounParts
from keelman.state.resources.snapshot import WORKER_CLUSTER

LOOK_SECONDS = 1.0
"""How often a watch checks whether workers have fallen silent."""
TOGETHER_SECONDS = 0.05
"""How long a watch gathers reports before it answers."""
ENDED = (ClusterState.STOPPED, ClusterState.STOPPING, ClusterState.DELETING)


@dataclass(slots=True)
class _Shown:
    """The worker clusters that shall run and are not reported; all watches share one check."""

    unreported: list[str] = field(default_factory=list)
    looked_at: float | None = None
    revision: int = -1


@dataclass(frozen=True, slots=True)
class ConnectorReportApi(grpc.ConnectorReportServiceServicer):
    """Lists and watches of connectors without calls to workers."""

    parts: NounParts
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _shown: _Shown = field(default_factory=_Shown)

    async def ListConnectorReports(
        self, request: pb.ListConnectorReportsRequest, context: Context
    ) -> pb.ListConnectorReportsResponse:
        """Returns a page of the reported connectors. Raises NotFound for an unknown worker cluster, InvalidArgument for
        more names than a page has."""
        if len(request.connectors) > LARGEST_SIZE:
            raise InvalidArgument.of("connectors", len(request.connectors), f"at most {LARGEST_SIZE}")
        snapshot, reports = self.parts.store.snapshot, self.parts.reports
        if request.worker_cluster:
            snapshot.worker_cluster(request.worker_cluster)
        running = self._running()
        reported = [n for n in running if request.worker_cluster in ("", n) and reports.connectors.reported(n)]
        requested = [request.worker_cluster] if request.worker_cluster else running
        if request.connectors:
            part, token = reports.connectors.named(request.connectors, reported, request.state), ""
        else:
            part, token = reports.connectors.page(reported, request.state, request.page_size, request.page_token)
        known_clusters = set(reported)
        unreported = [n for n in requested if n not in known_clusters]
        workers = {c.worker_cluster: snapshot.workloads_in(WorkloadKind.WORKER, c.worker_cluster) for c in part}
        part = [reports.with_lag(connector, workers[connector.worker_cluster]) for connector in part]
        return pb.ListConnectorReportsResponse(connectors=part, next_page_token=token, unreported=unreported)

    async def WatchConnectorReports(
        self, request: pb.WatchConnectorReportsRequest, context: Context
    ) -> AsyncIterator[pb.WatchConnectorReportsResponse]:
        """Sends the present connectors, or the changes since a revision, then each change. Raises NotFound for an
        unknown worker cluster."""
        if request.worker_cluster:
            self.parts.store.snapshot.worker_cluster(request.worker_cluster)
        connectors, revision = self.parts.reports.connectors, request.from_revision
        sent: list[str] | None = None
        with self.parts.commits.subscribe(WORKER_CLUSTER) as commit, connectors.hub.subscribe() as report:
            while not self.stopping.is_set():
                look = commit.is_set()
                commit.clear()
                report.clear()
                unreported = [n for n in self._unreported(now=look) if request.worker_cluster in ("", n)]
                news = connectors.feed.after(revision, request.worker_cluster, request.name)
                if unreported != sent:
                    clusters = pb.UnreportedClusters(worker_clusters=unreported)
                    yield pb.WatchConnectorReportsResponse(unreported=clusters)
                for part in news.parts() if news or sent is None else ():
                    yield pb.WatchConnectorReportsResponse(changes=part)
                sent, revision = unreported, news.revision
                await first_of(commit.wait(), report.wait(), self.stopping.wait(), asyncio.sleep(LOOK_SECONDS))
                await first_of(self.stopping.wait(), asyncio.sleep(TOGETHER_SECONDS))
        raise Unavailable("the state service is stopping: watch again", reason="STOPPING")

    def _running(self) -> list[str]:
        """Returns the names of the worker clusters that shall run."""
        snapshot = self.parts.store.snapshot
        return [n for n in snapshot.names(WORKER_CLUSTER) if snapshot.worker_clusters[n].status.state not in ENDED]

    def _unreported(self, *, now: bool) -> list[str]:
        """Returns the running worker clusters that are not reported, as of a moment ago, or of now."""
        connectors, shown, revision = self.parts.reports.connectors, self._shown, self.parts.store.revision
        is_old = shown.looked_at is None or connectors.clock() - shown.looked_at >= LOOK_SECONDS
        if is_old or (now and shown.revision != revision):
            shown.unreported = connectors.show(self._running())
            shown.looked_at, shown.revision = connectors.clock(), revision
        return shown.unreported

"""The gRPC services that stream: sessions of agents, and copy runs with their watch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from keelman.api.copy.v1 import copy_run_service_pb2 as runs_pb
from keelman.api.copy.v1 import copy_run_service_pb2_grpc
from keelman.api.node.v1 import session_service_pb2, session_service_pb2_grpc
from keelman.model.errors import NotFound, Unavailable
from keelman.rpc.pages import copy_run_key, page
from keelman.rpc.server import Context
from keelman.runtime.supervise import deadline, first_of
from keelman.state.reports.copy_runs import ENDED, Followed
from keelman.state.reports.reports import Reports
from keelman.state.resources.hub import Hub
from keelman.state.resources.snapshot import NODE, WORKER_CLUSTER, WORKLOAD
from keelman.state.resources.store import ResourceStore
from keelman.state.sessions.sessions import Sessions
from keelman.state.trust.callers import CallerCheck


@dataclass(frozen=True, slots=True)
class SessionApi(session_service_pb2_grpc.SessionServiceServicer):
    """The link of the agents. `callers` is None if they show no certificates."""

    sessions: Sessions
    callers: CallerCheck | None = None

    async def OpenSession(  # type: ignore[override]  # grpc takes a coroutine that writes as well
        self, request_iterator: AsyncIterator[session_service_pb2.OpenSessionRequest], context: Context
    ) -> None:
        """Serves one session; it writes from more than one task, so it is no generator. It ends with its
        certificate."""
        if self.callers is None:
            await self.sessions.serve(request_iterator, context.write)
            return
        check, seconds, over = self.callers.of_session(context)
        async with contextlib.nullcontext() if seconds is None else deadline(seconds, over):
            await self.sessions.serve(request_iterator, context.write, check)


@dataclass(frozen=True, slots=True)
class CopyRunApi(copy_run_service_pb2_grpc.CopyRunServiceServicer):
    """Copy runs, as reported."""

    store: ResourceStore
    reports: Reports
    commits: Hub
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def GetCopyRun(self, request: runs_pb.GetCopyRunRequest, context: Context) -> runs_pb.GetCopyRunResponse:
        """Returns one copy run."""
        run = self.reports.runs.one(request.uid, self.store.snapshot)
        if run is None:
            raise NotFound(f"no copy run has the uid {request.uid!r}", metadata={"uid": request.uid})
        return runs_pb.GetCopyRunResponse(copy_run=run)

    async def ListCopyRuns(
        self, request: runs_pb.ListCopyRunsRequest, context: Context
    ) -> runs_pb.ListCopyRunsResponse:
        """Returns a page of copy runs. Raises NotFound for an unknown worker cluster."""
        self._check_known(request.worker_cluster)
        everything = self.reports.runs.all(self.store.snapshot, request.worker_cluster, request.connector)
        runs = [run for run in everything if request.include_ended or run.state not in ENDED]
        part, token = page(runs, copy_run_key, request.page_size, request.page_token)
        return runs_pb.ListCopyRunsResponse(copy_runs=part, next_page_token=token)

    async def WatchCopyRuns(
        self, request: runs_pb.WatchCopyRunsRequest, context: Context
    ) -> AsyncIterator[runs_pb.WatchCopyRunsResponse]:
        """Sends the present copy runs, then each change, by reports or by events of their processes. Raises NotFound
        for a worker cluster that is unknown when the watch begins."""
        self._check_known(request.worker_cluster)
        followed = Followed(self.reports.runs, request.worker_cluster, request.connector)
        first = True
        with self.commits.subscribe(NODE, WORKLOAD, WORKER_CLUSTER) as commit, self.reports.hub.subscribe() as report:
            while not self.stopping.is_set():
                whole = first or commit.is_set()
                commit.clear()
                report.clear()
                news = followed.news(self.store.snapshot, whole=whole)
                if first or news:
                    yield runs_pb.WatchCopyRunsResponse(snapshot=first, copy_runs=news)
                first = False
                await first_of(commit.wait(), report.wait(), self.stopping.wait())
        raise Unavailable("the state service is stopping: watch again", reason="STOPPING")

    def _check_known(self, cluster: str) -> None:
        """Raises NotFound for an unknown worker cluster. A deleted one is known by its copy runs."""
        if cluster and not self.reports.runs.tasks(cluster):
            self.store.snapshot.worker_cluster(cluster)

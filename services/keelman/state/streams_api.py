"""The gRPC services that stream: sessions of agents, and copy runs with their watch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from keelman.api.copy.v1 import copy_run_pb2, copy_run_service_pb2_grpc
from keelman.api.copy.v1 import copy_run_service_pb2 as runs_pb
from keelman.api.node.v1 import session_service_pb2, session_service_pb2_grpc
from keelman.model.errors import NotFound, Unavailable
from keelman.rpc.pages import copy_run_key, page
from keelman.rpc.server import Context
from keelman.runtime.supervise import deadline, first_of
from keelman.state.hub import Hub
from keelman.state.reports.reports import ENDED, Reports
from keelman.state.sessions.sessions import Sessions
from keelman.state.snapshot import NODE, WORKER_CLUSTER, WORKLOAD, Snapshot
from keelman.state.store import Store
from keelman.state.trust.callers import Callers


@dataclass(frozen=True, slots=True)
class SessionApi(session_service_pb2_grpc.SessionServiceServicer):
    """The link of the agents. `callers` is None where they show no certificates."""

    sessions: Sessions
    callers: Callers | None = None

    async def OpenSession(  # type: ignore[override]  # grpc takes a coroutine that writes as well
        self, request_iterator: AsyncIterator[session_service_pb2.OpenSessionRequest], context: Context
    ) -> None:
        """One session; it writes from more than one task, so it is no generator. It ends with its certificate."""
        if self.callers is None:
            await self.sessions.serve(request_iterator, context.write)
            return
        check, seconds, over = self.callers.of_session(context)
        async with contextlib.nullcontext() if seconds is None else deadline(seconds, over):
            await self.sessions.serve(request_iterator, context.write, check)


@dataclass(frozen=True, slots=True)
class CopyRunApi(copy_run_service_pb2_grpc.CopyRunServiceServicer):
    """Copy runs, as they were reported."""

    store: Store
    reports: Reports
    commits: Hub
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def GetCopyRun(self, request: runs_pb.GetCopyRunRequest, context: Context) -> runs_pb.GetCopyRunResponse:
        """One copy run."""
        for run in self.reports.copy_runs(self.store.snapshot):
            if run.uid == request.uid:
                return runs_pb.GetCopyRunResponse(copy_run=run)
        raise NotFound(f"no copy run has the uid {request.uid!r}", metadata={"uid": request.uid})

    async def ListCopyRuns(
        self, request: runs_pb.ListCopyRunsRequest, context: Context
    ) -> runs_pb.ListCopyRunsResponse:
        """A page of copy runs. Raises NotFound for an unknown worker cluster."""
        everything = self._all(request.worker_cluster, self.store.snapshot)
        found = [r for r in everything if _matches(request, r) and (request.include_ended or r.state not in ENDED)]
        part, token = page(found, copy_run_key, request.page_size, request.page_token)
        return runs_pb.ListCopyRunsResponse(copy_runs=part, next_page_token=token)

    async def WatchCopyRuns(
        self, request: runs_pb.WatchCopyRunsRequest, context: Context
    ) -> AsyncIterator[runs_pb.WatchCopyRunsResponse]:
        """The present copy runs, then each change: reports change them, and so does what happens to their processes.
        Raises NotFound for a worker cluster that is unknown when the watch begins."""
        sent: dict[str, copy_run_pb2.CopyRun] = {}
        first = True
        self._all(request.worker_cluster, self.store.snapshot)
        with self.commits.subscribe(NODE, WORKLOAD, WORKER_CLUSTER) as commit, self.reports.hub.subscribe() as report:
            while not self.stopping.is_set():
                commit.clear()
                report.clear()
                found = {r.uid: r for r in self.reports.copy_runs(self.store.snapshot) if _matches(request, r)}
                news = [r for uid, r in found.items() if sent.get(uid) != r]
                if first or news:
                    yield runs_pb.WatchCopyRunsResponse(snapshot=first, copy_runs=news)
                sent, first = found, False
                await first_of(commit.wait(), report.wait(), self.stopping.wait())
        raise Unavailable("the state service is stopping: watch again", reason="STOPPING")

    def _all(self, cluster: str, snapshot: Snapshot) -> list[copy_run_pb2.CopyRun]:
        """Raises NotFound for a worker cluster that is unknown. One that is deleted is known by its copy runs."""
        found = self.reports.copy_runs(snapshot)
        if cluster and not any(r.worker_cluster == cluster for r in found):
            snapshot.worker_cluster(cluster)
        return found


def _matches(request: Any, run: copy_run_pb2.CopyRun) -> bool:
    return request.worker_cluster in ("", run.worker_cluster) and request.connector in ("", run.connector)

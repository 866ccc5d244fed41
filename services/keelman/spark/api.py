"""Reads copy runs: get, list, watch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

from keelman.api.copy.v1.copy_run_pb2 import CopyRun
from keelman.api.copy.v1.copy_run_service_pb2 import (
    GetCopyRunRequest,
    GetCopyRunResponse,
    ListCopyRunsRequest,
    ListCopyRunsResponse,
    WatchCopyRunsRequest,
    WatchCopyRunsResponse,
)
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceServicer
from keelman.model.errors import NotFound
from keelman.rpc.pages import copy_run_key, page
from keelman.rpc.server import Context
from keelman.spark.copy_runs.runs import matches
from keelman.spark.dispatch import Dispatcher


class Watchers:
    """Sends changed copy runs to all watchers; a slow watcher gets the newest of each and misses none."""

    def __init__(self) -> None:
        self._open: list[tuple[dict[str, CopyRun], asyncio.Event]] = []

    def changed(self, run: CopyRun) -> None:
        """Takes a copy run that is new or has changed."""
        for pending, filled in self._open:
            pending[run.uid] = run
            filled.set()

    @contextlib.contextmanager
    def watching(self) -> Iterator[tuple[dict[str, CopyRun], asyncio.Event]]:
        """Collects changes by uid until the block is left; the event tells that there are some."""
        entry: tuple[dict[str, CopyRun], asyncio.Event] = ({}, asyncio.Event())
        self._open.append(entry)
        try:
            yield entry
        finally:
            self._open.remove(entry)


class SparkCopyRunApi(CopyRunServiceServicer):
    """Serves CopyRunService."""

    def __init__(self, dispatcher: Dispatcher, watchers: Watchers) -> None:
        self._book, self._watchers = dispatcher.book, watchers

    async def GetCopyRun(self, request: GetCopyRunRequest, context: Context) -> GetCopyRunResponse:
        """Returns one copy run."""
        run = self._book.get(request.uid)
        if run is None:
            raise NotFound(f"no copy run {request.uid!r}", metadata={"uid": request.uid})
        return GetCopyRunResponse(copy_run=run.copy_run)

    async def ListCopyRuns(self, request: ListCopyRunsRequest, context: Context) -> ListCopyRunsResponse:
        """Returns a page of copy runs."""
        matching = self._book.matching(request.worker_cluster, request.connector, include_ended=request.include_ended)
        runs, token = page(matching, copy_run_key, request.page_size, request.page_token)
        return ListCopyRunsResponse(copy_runs=runs, next_page_token=token)

    async def WatchCopyRuns(
        self, request: WatchCopyRunsRequest, context: Context
    ) -> AsyncIterator[WatchCopyRunsResponse]:
        """Streams the present copy runs, then each change."""
        cluster, connector = request.worker_cluster, request.connector
        with self._watchers.watching() as (pending, filled):
            present = sorted(self._book.matching(cluster, connector, include_ended=False), key=copy_run_key)
            yield WatchCopyRunsResponse(snapshot=True, copy_runs=present)
            while True:
                await filled.wait()
                filled.clear()
                runs = [r for r in pending.values() if matches(r, cluster, connector)]
                pending.clear()
                if runs:
                    yield WatchCopyRunsResponse(copy_runs=runs)

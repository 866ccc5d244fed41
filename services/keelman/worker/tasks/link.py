"""Keeps the link to the Spark service: greets, renews the lease, carries orders out and updates in; comes back when
lost."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol

from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.api.copy.v1 import worker_link_service_pb2 as wire
from keelman.api.copy.v1.worker_link_service_pb2_grpc import WorkerLinkServiceStub
from keelman.model.errors import KeelmanError, Unavailable
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated_stream
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.levels import LOG_LEVELS
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of
from keelman.runtime.ticks import tick
from keelman.worker.intervals import LEASE_SECONDS

NO_ROUTES: Mapping[str, str] = {}

log = get_logger()
RENEW_SECONDS = 1.0
LOOK_SECONDS = 0.1
SILENT_SECONDS = 5.0


class _Outbox:
    """The messages that wait to be sent on one link."""

    def __init__(self) -> None:
        self._waiting: deque[wire.OpenLinkRequest] = deque()
        self._some = asyncio.Event()
        self._ended = False

    def put(self, request: wire.OpenLinkRequest, *, ahead: bool = False) -> None:
        """Behind all that waits, or ahead of it."""
        (self._waiting.appendleft if ahead else self._waiting.append)(request)
        self._some.set()

    def end(self) -> None:
        """The link is no more: gRPC, which would wait for ever, is to let go."""
        self._ended = True
        self._some.set()

    async def requests(self) -> AsyncIterator[wire.OpenLinkRequest]:
        """For gRPC to send, until the end."""
        while not self._ended:
            if self._waiting:
                yield self._waiting.popleft()
            else:
                self._some.clear()
                await self._some.wait()


class CopyRuns(Protocol):
    """The worker's copy runs, as the link notifies them. Neither method may block or raise."""

    def update(self, update: orders.RunUpdate) -> None:
        """Takes what the other side reports of one copy run."""

    def reconcile(self, uids: frozenset[str]) -> None:
        """Takes the uids of the copy runs that the other side still has: after each welcome, and none when the lease
        must have lapsed without a link."""


class SparkLink:
    """One link at a time. `usage` is what the worker's slots used by the last answer to a renewal."""

    def __init__(
        self,
        address: str,
        *,
        worker_cluster: str,
        worker: str,
        bounds: wire.Bounds,
        may_renew: Callable[[], bool],
        routes: Mapping[str, str] = NO_ROUTES,
    ) -> None:
        """`bounds` is what the worker's slots may use, `routes` are host names of their own; `may_renew` says whether
        the lease may be renewed now."""
        self._address = address
        self._greeting = wire.WorkerGreeting(
            worker_cluster=worker_cluster, worker_id=worker, incarnation=uuid.uuid4().hex, bounds=bounds, routes=routes
        )
        self._may_renew = may_renew
        self._out = _Outbox()
        self._answered = False  # ever
        self._renewed = time.monotonic()
        self._asked: float | None = None
        self.usage = wire.SlotUsage()
        self.up = asyncio.Event()

    @property
    def closed(self) -> str:
        """Why no copy run can begin now, for people; empty while there is a link with a lease, and the right to it."""
        if not self.up.is_set() or time.monotonic() - self._renewed >= LEASE_SECONDS:
            return "no Spark service answers this worker" + ("" if self._answered else " yet")
        return "" if self._may_renew() else "the group has not said lately that this worker still has its place in it"

    def send(self, order: orders.RunOrder) -> None:
        """Sends one order; while there is no link it is dropped, since the other side then ends all runs by itself."""
        if self.up.is_set():
            self._out.put(wire.OpenLinkRequest(order=order))

    async def run(self, runs: CopyRuns) -> None:
        """Keeps a link for ever; `runs` is notified of all that comes in."""
        backoff = Backoff(first=0.1, most=1.0)
        while True:
            try:
                async with channel(self._address) as opened:
                    await self._link(opened, runs)
                reason = "ended by the Spark service"
            except KeelmanError as error:
                reason = error.message
            if self.up.is_set():
                backoff.reset()
                log.warning("spark_link_lost", address=self._address, error=reason)
            elif backoff.is_new(reason):
                log.info("spark_link_waiting", address=self._address, error=reason)
            self.up.clear()
            if time.monotonic() - self._renewed > LEASE_SECONDS:
                runs.reconcile(frozenset())
            await asyncio.sleep(backoff.next())

    async def _link(self, opened: Any, runs: CopyRuns) -> None:
        self._out, self._asked = _Outbox(), None
        self._out.put(wire.OpenLinkRequest(greeting=self._greeting))
        answers = translated_stream(WorkerLinkServiceStub(opened).OpenLink(self._out.requests()))
        try:
            await first_of(self._receive(answers, runs), self._renew())
        finally:
            self._out.end()

    async def _receive(self, answers: AsyncIterator[wire.OpenLinkResponse], runs: CopyRuns) -> None:
        async for answer in answers:
            kind = answer.WhichOneof("message")
            if kind == "welcome":
                self._renewed, self._answered = time.monotonic(), True
                log.info("spark_link_up", address=self._address, runs=len(answer.welcome.runs))
                self.up.set()
                runs.reconcile(frozenset(update.run_uid for update in answer.welcome.runs))
                for update in answer.welcome.runs:
                    runs.update(update)
            elif kind == "renewed":
                self._renewed, self._asked = time.monotonic(), None
                self.usage = answer.renewed.usage
            elif kind == "update":
                runs.update(answer.update)

    async def _renew(self) -> None:
        await self.up.wait()
        while True:
            now, right = time.monotonic(), self._may_renew()
            if right:
                renewal = wire.LeaseRenewal(log_levels=LOG_LEVELS.changed)
                self._out.put(wire.OpenLinkRequest(renewal=renewal), ahead=True)  # hundreds of orders may wait
                self._asked = self._asked or now
            if self._asked is not None and now - self._asked > SILENT_SECONDS:
                raise Unavailable(f"the Spark service has not answered a renewal for {SILENT_SECONDS} s")
            await (tick(RENEW_SECONDS) if right else asyncio.sleep(LOOK_SECONDS))

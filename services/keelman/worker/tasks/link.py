"""Keeps the link to the Spark service: greets, renews the lease, carries orders out and updates in; comes back when
lost, to another driver if there are several."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Protocol

from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.api.copy.v1 import worker_link_service_pb2 as wire
from keelman.api.copy.v1.worker_link_service_pb2_grpc import WorkerLinkServiceStub
from keelman.model.errors import KeelmanError, Unavailable
from keelman.model.workload import SPARK_STARTING
from keelman.rpc.channels import Channel, channel
from keelman.rpc.credentials import Newest
from keelman.rpc.errors import translated_stream
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.levels import LOG_LEVELS
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import deadline, first_of, supervise
from keelman.runtime.ticks import tick
from keelman.worker.intervals import LEASE_SECONDS, SPARK_AWAY_SECONDS
from keelman.worker.spark_drivers import Drivers
from keelman.worker.tasks.fitness import Fitness

log = get_logger()
RENEW_SECONDS = 1.0
LOOK_SECONDS = 0.1
SILENT_SECONDS = 5.0
WELCOME_SECONDS = 8.0
"""The time for a welcome where there are other drivers: it may wait for slots of an earlier incarnation to end."""
STARTING_SECONDS = 60.0
"""The time for which a driver that was a standby may start Spark. To give tasks to workers that link to the same driver
would not help."""


class _Outbox:
    """The messages that wait to be sent on one link."""

    def __init__(self) -> None:
        self._waiting: deque[wire.OpenLinkRequest] = deque()
        self._some = asyncio.Event()
        self._ended = False

    def put(self, request: wire.OpenLinkRequest, *, ahead: bool = False) -> None:
        """Queues a message after all that wait, or before them."""
        (self._waiting.appendleft if ahead else self._waiting.append)(request)
        self._some.set()

    def end(self) -> None:
        """Ends the outbox with its link: otherwise gRPC would wait for ever."""
        self._ended = True
        self._some.set()

    async def requests(self) -> AsyncIterator[wire.OpenLinkRequest]:
        """Yields messages for gRPC to send, until the end."""
        while not self._ended:
            if self._waiting:
                yield self._waiting.popleft()
            else:
                self._some.clear()
                await self._some.wait()


class CopyRunListener(Protocol):
    """The worker's copy runs, as the link notifies them. Neither method may block or raise."""

    def update(self, update: orders.RunUpdate) -> None:
        """Takes the Spark service's report on one copy run."""

    def reconcile(self, uids: frozenset[str]) -> None:
        """Takes the uids of the copy runs that the other side still has: after each welcome, and none when the lease
        must have lapsed without a link."""


class SparkLink:
    """One link at a time. `usage` is the slots' use by the last answer to a renewal, `cores` those of a cluster, None
    where none are known."""

    def __init__(
        self,
        drivers: Drivers,
        greeting: wire.WorkerGreeting,
        *,
        may_renew: Callable[[], bool],
        away_seconds: float = SPARK_AWAY_SECONDS,
        changed: Callable[[], None] = lambda: None,
        absence: Callable[[], str] = str,
        credentials: Newest | None = None,
    ) -> None:
        """`may_renew` tells whether the lease may be renewed now. For `away_seconds` the link may be away before the
        worker takes no tasks any more; calls `changed` when it takes none any more, or takes them again. `absence`
        returns the reason why the Spark service is not there, empty where the link knows it best. With `credentials`,
        asked for at each try, links over the network are mutual TLS."""
        self._drivers, self._credentials = drivers, credentials
        self._greeting = greeting
        self._may_renew = may_renew
        self._out = _Outbox()
        self._answered = False  # ever
        self._renewed = time.monotonic()
        self._lapsed = False  # the copy runs have ended with the lease, and this was reported
        self._asked: float | None = None
        self._fitness = Fitness(away_seconds)
        self._changed = changed
        self._why = absence
        self._problem = ""  # of the last try to open a link or, while there is one, of the Spark behind it
        self._starting: float | None = None  # since when the Spark behind it starts
        self.usage = wire.SlotUsage()
        self.cores: wire.SparkCores | None = None
        self.up = asyncio.Event()

    @property
    def closed(self) -> str:
        """Why no copy run can begin now, for people; empty while there is a link with a lease, and the right to it."""
        if not self.up.is_set() or time.monotonic() - self._renewed >= LEASE_SECONDS:
            return "no Spark service answers this worker" + ("" if self._answered else " yet")
        return "" if self._may_renew() else "the group has not confirmed lately that this worker is still a member"

    @property
    def away(self) -> str:
        """Why nothing can be copied, for people: there is no link and the last lease is over, or no Spark behind it.
        Empty while there is."""
        if self.up.is_set():
            return self._absence if self._problem else ""
        has_lease = self._answered and time.monotonic() - self._renewed < LEASE_SECONDS
        return "" if has_lease else self._absence

    @property
    def unfit(self) -> str:
        """Why this worker takes no tasks, for people; empty while it takes them."""
        return "" if self._fitness.fit else self._absence

    @property
    def _absence(self) -> str:
        if self.up.is_set():
            reason = (
                f"has no Spark: {self._problem}"
                if self._problem
                else "was lost and came back: waits until it is stable"
            )
            return f"its Spark service {reason}"
        problem = self._why() or self._problem
        return (
            f"no Spark service answers this worker{'' if self._answered else ' yet'}{f': {problem}' if problem else ''}"
        )

    def send(self, order: orders.RunOrder) -> None:
        """Sends one order; drops it while there is no link, since the other side then ends all runs by itself."""
        if self.up.is_set():
            self._out.put(wire.OpenLinkRequest(order=order))

    async def run(self, runs: CopyRunListener) -> None:
        """Keeps a link for ever; notifies `runs` of all messages that come in."""
        await supervise(partial(self._keep, runs), partial(self._watch, runs))

    async def _keep(self, runs: CopyRunListener) -> None:
        backoff = Backoff(first=0.1, most=1.0)
        while True:
            address = self._drivers.present
            try:
                async with self._channel(address) as opened:
                    await self._link(opened, runs)
                self._problem = "ended by the Spark service"
            except KeelmanError as error:
                self._problem = error.message
            if self.up.is_set():
                backoff.reset()
                log.warning("spark_link_lost", address=address, error=self._problem)
                self._fitness.went(self._asked or time.monotonic())
            elif backoff.is_new(self._problem):
                log.info("spark_link_waiting", address=address, error=self._problem)
            self.up.clear()
            if not self._drivers.failed():
                await asyncio.sleep(backoff.next())

    def _channel(self, address: str) -> Channel:
        pems = None if self._credentials is None else self._credentials()
        return channel(address, root_certificates=None if pems is None else pems.roots, client=pems)

    async def _watch(self, runs: CopyRunListener) -> None:
        """Notices events that come with time alone, also while a try to open a link hangs."""
        while True:
            await tick(RENEW_SECONDS)
            if not self.up.is_set() and not self._lapsed and time.monotonic() - self._renewed > LEASE_SECONDS:
                self._lapsed = True
                runs.reconcile(frozenset())
            if self._fitness.look():
                self._say_fitness()

    def _say_fitness(self) -> None:
        if self._fitness.fit:
            log.info("tasks_taken", address=self._drivers.present)
        else:
            log.warning("tasks_given_back", address=self._drivers.present, why=self.unfit)
        self._changed()

    async def _link(self, opened: Channel, runs: CopyRunListener) -> None:
        self._out, self._asked, self._starting = _Outbox(), None, None
        self._out.put(wire.OpenLinkRequest(greeting=self._greeting))
        answers = translated_stream(WorkerLinkServiceStub(opened).OpenLink(self._out.requests()))
        try:
            await first_of(self._receive(answers, runs), self._renew(opened))
        finally:
            self._out.end()

    async def _receive(self, answers: AsyncIterator[wire.OpenLinkResponse], runs: CopyRunListener) -> None:
        async for answer in answers:
            kind = answer.WhichOneof("message")
            if kind == "welcome":
                self._renewed, self._answered = time.monotonic(), True
                self._drivers.linked()
                log.info("spark_link_up", address=self._drivers.present, runs=len(answer.welcome.runs))
                self._lapsed, self._problem = False, ""
                self.up.set()
                if self._fitness.came():
                    self._say_fitness()
                runs.reconcile(frozenset(update.run_uid for update in answer.welcome.runs))
                for update in answer.welcome.runs:
                    runs.update(update)
            elif kind == "renewed":
                self._renewed, self._asked = time.monotonic(), None
                self.usage = answer.renewed.usage
                self.cores = answer.renewed.cores if answer.renewed.HasField("cores") else None
                self._note_spark(answer.renewed.problem)
            elif kind == "update":
                runs.update(answer.update)

    def _note_spark(self, problem: str) -> None:
        """Takes the reason why the Spark service has no Spark, empty while it has: without Spark it counts as away, but
        for the time that it takes to start."""
        if problem.partition(":")[0] == SPARK_STARTING:
            now = time.monotonic()
            self._starting = now if self._starting is None else self._starting
            problem = problem if now - self._starting >= STARTING_SECONDS else ""
        else:
            self._starting = None
        self._drivers.note_spark(not problem)
        if problem and not self._problem:
            self._fitness.went(time.monotonic())
        elif self._problem and not problem and self._fitness.came():
            self._say_fitness()
        self._problem = problem

    async def _welcomed(self, opened: Channel) -> None:
        """Waits for the welcome. Raises Unavailable where it takes long and there are other drivers to try."""
        if (seconds := self._drivers.connect_seconds) is not None:
            async with deadline(seconds, Unavailable(f"no connection within {seconds:g} s")):
                await opened.channel_ready()
            async with deadline(WELCOME_SECONDS, Unavailable(f"no welcome within {WELCOME_SECONDS:g} s")):
                await self.up.wait()
        await self.up.wait()

    async def _renew(self, opened: Channel) -> None:
        await self._welcomed(opened)
        while True:
            now, right = time.monotonic(), self._may_renew()
            if right:
                renewal = wire.LeaseRenewal(log_levels=LOG_LEVELS.changed)
                self._out.put(wire.OpenLinkRequest(renewal=renewal), ahead=True)  # hundreds of orders may wait
                self._asked = self._asked or now
            if self._asked is not None and now - self._asked > SILENT_SECONDS:
                raise Unavailable(f"the Spark service has not answered a renewal for {SILENT_SECONDS} s")
            if self._drivers.is_without_spark:
                raise Unavailable(f"it has no Spark, and another driver may have: {self._problem}")
            await (tick(RENEW_SECONDS) if right else asyncio.sleep(LOOK_SECONDS))

"""The state services of a simulated plane, without sockets.

The parts of each are real and wired as in `keelman/state/service.py`, except those that query brokers or workers, which
are left out.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from keelman.runtime.reconciler import Reconciler
from keelman.runtime.supervise import Siblings
from keelman.state.clusters.settling import settle
from keelman.state.database.database import Database
from keelman.state.database.sealing import Sealer
from keelman.state.executor import Executor
from keelman.state.nouns.broker_cluster import BrokerClusterApi
from keelman.state.nouns.node import NodeApi
from keelman.state.nouns.parts import NounParts
from keelman.state.nouns.registry import NOUNS
from keelman.state.nouns.worker_cluster import WorkerClusterApi
from keelman.state.planning.draft import Limits
from keelman.state.replicas.fenced import FencedStore
from keelman.state.replicas.heard import Heard
from keelman.state.replicas.leader import LEADER, LeaderRole
from keelman.state.replicas.lease import Lease
from keelman.state.reports.reports import Reports
from keelman.state.resources.hub import Hub
from keelman.state.resources.store import ResourceStore, subjects_of
from keelman.state.resources.transaction import Change, Transaction
from keelman.state.service import PLAN_SECONDS
from keelman.state.sessions.sessions import Sessions
from simulation.database import Server, SharedDatabase, SimulatedExchange
from simulation.network import Network, Stream
from simulation.rules import Rules
from support.fake_time import FakeProcess, FakeTimeLoop

HEARTBEAT_SECONDS, TIMEOUT_SECONDS = 2.0, 10.0
LIMITS = Limits(range(8083, 8099), range(9092, 9100), range(7430, 7434), events_broker_cluster="kafka")
FOLLOW_SECONDS = 5.0
"""Longer than the real service's: the services must learn of commits without it."""
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
APIS = {"nodes": NodeApi, "brokers": BrokerClusterApi, "workers": WorkerClusterApi}


@dataclass(slots=True)
class World:
    """The objects that all parts of one simulation share."""

    loop: FakeTimeLoop
    network: Network
    server: Server
    rules: Rules
    is_sole: bool
    """Whether there is one state service, on SQLite."""
    sealer: Sealer


@dataclass(slots=True, eq=False)
class StateService:
    """One state service: its process comes and goes, its address and its wall clock remain."""

    world: World
    name: str
    clock_error: timedelta = timedelta(0)
    process: FakeProcess | None = None
    starts: int = 0
    store: ResourceStore | None = None
    _apis: dict[str, Any] = field(default_factory=dict)
    _sessions: Sessions | None = None
    _stop: asyncio.Event | None = None
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_up(self) -> bool:
        """Whether it answers calls."""
        return self._sessions is not None

    def start(self) -> None:
        """Starts its process."""
        self.starts += 1
        self._stop, self._ended = asyncio.Event(), asyncio.Event()
        self.process = FakeProcess(self.world.loop, self.name)
        self.process.start(self._life(self.process, self._stop))

    def kill(self) -> None:
        """Kills it, as `kill -9` does."""
        assert self.process is not None
        self.process.die()
        self._gone(self.process)

    async def stop(self) -> None:
        """Stops it, as SIGTERM does, and waits until it has ended."""
        assert self._stop is not None
        self._stop.set()
        await self._ended.wait()

    def _gone(self, process: FakeProcess) -> None:
        self._lose_all(process)
        self.process = None
        self._ended.set()

    def _lose_all(self, process: FakeProcess) -> None:
        """Drops its memory; its peers learn that their connections ended."""
        self._sessions = self.store = None
        self.world.server.forget(process)
        self.world.network.forget(process, loudly=True)

    def _wall_clock(self) -> datetime:
        return BEGIN + timedelta(seconds=self.world.loop.time()) + self.clock_error

    async def _life(self, process: FakeProcess, stop: asyncio.Event) -> None:
        """Runs as `run` of the real service; a failed start is repeated, as by systemd."""
        while not stop.is_set():
            try:
                await self._run(stop)
            except Exception as error:
                self.world.rules.note("state-ended", f"{self.name}: {error!r}")
                self._lose_all(process)
                await asyncio.sleep(1.0)
        process.die()
        self._gone(process)

    async def _run(self, stop: asyncio.Event) -> None:
        world, clock = self.world, self.world.loop.time
        result = Database if world.is_sole else SharedDatabase
        database = result(world.server.engine(), world.sealer, self._wall_clock)
        store = ResourceStore(database, NOUNS, settle)
        await store.catch_up()
        commits, heard = Hub(), Heard(clock)
        world.rules.loaded(self.name, store)
        store.listen(partial(self._told, store))
        store.listen(lambda changes: commits.wake(subjects_of(changes)))
        me = f"{self.name}/{self.starts}"
        lease = Lease(database, LEADER, clock=clock, holder=me)
        sessions = Sessions(store, commits, heard, heartbeat_seconds=HEARTBEAT_SECONDS, timeout_seconds=TIMEOUT_SECONDS)
        store.listen(sessions.changed)
        led = store if world.is_sole else _WatchedStore(store, lease, partial(world.rules.led, self.name))
        exchange = None
        if not world.is_sole:
            exchange = SimulatedExchange("", store, heard, HEARTBEAT_SECONDS, sessions.cut_off, clock, me)
            exchange.server = world.server
        executor = Executor(led, LIMITS, sessions.alive, None if exchange is None else exchange.planned, clock)
        store.listen(executor.changed)
        parts = NounParts(store, sessions, Reports(Hub()), None, executor, None, LIMITS.chosen_ports, commits)  # type: ignore[arg-type]
        async with Siblings() as siblings:
            if exchange is None:
                await sessions.begin()
                heard.listens()
            else:
                executor.lead(False)
                siblings.start(exchange.run(executor.planned), name="exchange")
            planner = Reconciler("planner", executor.reconcile, PLAN_SECONDS)
            led_parts = (
                ("judge", Reconciler("judge", lambda: sessions.judge(led), HEARTBEAT_SECONDS / 2).run),
                ("planner", planner.run),
                ("planner-waker", partial(_wake, commits, planner)),
            )
            leader = LeaderRole(lease, (executor.lead, heard.begin, partial(self._leads, lease)))
            siblings.start(leader.run(led_parts), name="leader")
            siblings.start(Reconciler("follower", store.catch_up, FOLLOW_SECONDS).run(), name="follower")
            self._apis = {name: api(parts) for name, api in APIS.items()}
            self.store, self._sessions = store, sessions
            await stop.wait()
            self._sessions = self.store = None
            sessions.close()
        await lease.release()

    def _told(self, store: ResourceStore, changes: Sequence[Change]) -> None:
        self.world.rules.told(self.name, store, changes)

    def _leads(self, lease: Lease, leads: bool) -> None:
        self.world.rules.leads(self.name, lease.epoch, leads)

    async def call(self, source: str, api: str, method: str, request: Any) -> Any:
        """A client's call, which hangs while the network is cut. Raises KeelmanError."""
        network = self.world.network
        await network.reach(source, self.name)
        process = self.process
        if process is None or not self.is_up:
            raise ConnectionRefusedError(self.name)
        answer: asyncio.Future[Any] = self.world.loop.create_future()
        process.start(_answer(answer, getattr(self._apis[api], method)(request, None)))
        new_answer = await answer
        await network.reach(self.name, source)
        return new_answer

    def open_session(self, stream: Stream) -> bool:
        """Accepts a stream; returns False if no process listens."""
        sessions, process = self._sessions, self.process
        if sessions is None or process is None:
            return False
        stream.serve(process, sessions.serve)
        return True


class _WatchedStore(FencedStore):
    """The leader's store, which calls `on_write` before it stores a transaction."""

    def __init__(self, store: ResourceStore, lease: Lease, on_write: Callable[[int], None]) -> None:
        super().__init__(store, lease)
        self._on_write = on_write

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        async with super().write() as tx:
            yield tx
            self._on_write(self._lease.epoch)


async def _answer(future: asyncio.Future[Any], work: Any) -> None:
    try:
        actual_work = await work
    except Exception as error:
        if not future.done():
            future.set_exception(error)
    else:
        if not future.done():
            future.set_result(actual_work)


async def _wake(commits: Hub, reconciler: Reconciler) -> None:
    with commits.subscribe() as changed:
        while True:
            await changed.wait()
            changed.clear()
            reconciler.wake()

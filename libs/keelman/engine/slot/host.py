"""The slot host: one process on a Spark executor that calls its slot home and runs the task loops that the home orders.

No loop outlives the home: a slot that has received nothing for the beat time-out, or that was itself frozen for so
long, lets no loop commit any more, cuts them all and ends.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import setproctitle

from keelman.api.copy.v1.slot_service_pb2 import AttachRequest, SlotBeat, SlotGreeting
from keelman.api.copy.v1.slot_service_pb2_grpc import SlotServiceStub
from keelman.engine.slot.ending import calls_under_way, note_calls
from keelman.engine.slot.loops import Loops
from keelman.engine.slot.part_rows import offer_rows
from keelman.engine.slot.updates import UpdateQueue
from keelman.model.errors import FailedPrecondition, KeelmanError, NotFound
from keelman.model.workload import ROUTES_NOT_POSSIBLE
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated
from keelman.rpc.times import to_duration
from keelman.runtime.logs.levels import LOG_LEVELS
from keelman.runtime.logs.logging import configure
from keelman.runtime.logs.redaction import REDACTOR
from keelman.runtime.processes import private_hosts
from keelman.runtime.processes.output_brake import brake_output
from keelman.runtime.processes.stacks import stacks_on_signal
from keelman.runtime.processes.standstill import announce_by
from keelman.runtime.supervise import first_of

BURST_SECONDS = 0.1
MAX_REST_SECONDS = 0.5
BEAT_SECONDS = 1.0
TICK_SECONDS = 0.25
MARGIN_SECONDS = 1.0
ANNOUNCE_SECONDS = 5.0
# A record of a thousand levels, the most that Connect's parser of JSON takes, goes through several functions a level.
RECURSION = 5_000
PAGE_BYTES = resource.getpagesize()


class CpuShare:
    """Bounds a slot process's use of processors. Thread-safe: the slot's event loop sets the bound, task loops call
    `rest`.

    A debt of processor seconds grows with the process's use and shrinks with time; all loops rest while there is
    a debt, so those that use most give up most.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, used: Callable[[], float] = time.process_time
    ) -> None:
        """`used` returns the processor seconds of this process so far, of all its threads."""
        self._clock, self._used = clock, used
        self._lock = threading.Lock()
        self._cpus = 0.0
        self._debt = 0.0
        self._seen = (clock(), used())

    def bound(self, cpus: float) -> None:
        """Limits the process to this many processors from now on; 0 is no limit."""
        with self._lock:
            if self._cpus == 0.0:
                self._debt, self._seen = 0.0, (self._clock(), self._used())
            self._cpus = cpus

    def rest(self) -> float:
        """Returns the seconds that a loop should rest now: 0 while the process keeps to its share, at most half a
        second."""
        if self._cpus == 0.0:
            return 0.0
        with self._lock:
            if self._cpus == 0.0:
                return 0.0
            (then, before), self._seen = self._seen, (self._clock(), self._used())
            now, used = self._seen
            # An idle process saves up a little, so that a short burst is not slowed.
            self._debt = max(-BURST_SECONDS, self._debt + (used - before) - (now - then) * self._cpus)
            return min(MAX_REST_SECONDS, max(0.0, self._debt / self._cpus))


@dataclass(slots=True)
class SlotLease:
    """Tells whether this slot may still act. Any thread may call it; once lost it stays lost.

    The first thread that checks, the ticking loop or a task loop about to commit, notices a gap before any beat can
    refresh the lease: so beats that waited in the socket of a frozen process cannot revive it.
    """

    limit_seconds: float
    clock: Callable[[], float] = time.monotonic
    _ticked: float = field(init=False)
    _heard: float = field(init=False)
    _awake: float = field(init=False)
    _excused: float = 0.0
    _lost: str = ""

    def __post_init__(self) -> None:
        self._ticked = self._heard = self._awake = self.clock()

    def allowed(self) -> bool:
        """Returns whether a message of the home came, and this process was awake, within the limit."""
        now = self.clock()
        if now < self._excused:
            return not self._lost
        if not self._lost and now - self._ticked > self.limit_seconds:
            self._lost = f"this slot was frozen for {now - self._ticked:.1f} s"
        if not self._lost and now - self._heard > self.limit_seconds:
            self._lost = f"no beat of the Spark service for {now - self._heard:.1f} s"
        return not self._lost

    def tick(self) -> None:
        """Notes that the event loop is awake."""
        if self.allowed():
            self._ticked = self.clock()

    def heard(self) -> None:
        """Notes a message of the home."""
        if self.allowed():
            self._heard = self.clock()

    def excuse(self, seconds: float) -> None:
        """Suspends the checks for `seconds`, in which no thread can tick or receive; the home knows of it."""
        if self.allowed():
            self._excused = self.clock() + seconds

    def resume(self) -> None:
        """Ends the suspension: ticks and beats count from now."""
        if self.allowed():
            self._ticked = self._heard = self.clock()
        self._excused, self._awake = 0.0, self.clock()

    @property
    def excused_seconds(self) -> float:
        """The seconds left of the suspension."""
        return max(0.0, self._excused - self.clock())

    @property
    def awake_seconds(self) -> float:
        """The seconds since the last standstill of this process."""
        return 0.0 if self._excused else self.clock() - self._awake

    def lose(self, reason: str) -> None:
        """Ends the lease for this reason, unless it has ended already."""
        self._lost = self._lost or reason

    @property
    def lost(self) -> str:
        """The reason why this slot may not act any more; empty while it may."""
        return self._lost


@dataclass(frozen=True, slots=True)
class SlotOrder:
    """All that a slot process needs to attach; travels in the Spark job's closure.

    `loop` and `use_plugin` are `module:function`: they make a copy run's loop, and load a plugin's folder
    (keelman.connectors.slot_parts). `path` is the folder of the slot's plugin, whose modules come first; empty for
    connectors that we ship.
    `ca` are PEM certificates to verify the home with, empty for no TLS; `server_name` is the name in the home's own
    certificate, the host of `home` when empty. With `data` the Spark job passes rows to the slot, for the one copy run
    that reads them. `routes` are addresses of host names for this process alone.
    """

    slot: str
    token: str
    home: str
    beat_timeout_seconds: float
    loop: str
    use_plugin: str
    log_json: bool = False
    log_level: str = "info"
    path: str = ""
    ca: str = ""
    server_name: str = ""
    data: bool = False
    routes: Mapping[str, str] = field(default_factory=dict)


def slot_work(order: SlotOrder) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Returns the function for mapInArrow: it hosts the slot until its end and yields nothing."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        from keelman.engine.slot.host import host_slot  # noqa: PLC0415  (this closure is pickled by value)

        host_slot(order, batches)
        return iter(())

    return work


def host_slot(order: SlotOrder, batches: Iterable[Any]) -> None:
    """Runs the slot in the main thread of the executor's Python process; returns when the slot has ended.

    `batches` are the Spark job's rows. Raises Unauthenticated when the home refuses the token, Unavailable
    when it cannot be reached, and FailedPrecondition (ROUTES_NOT_POSSIBLE) if the routes cannot be set.
    """
    take_routes(order.routes)
    setproctitle.setproctitle(f"keelman {order.slot}")
    stacks_on_signal()
    sys.setrecursionlimit(RECURSION)
    configure("slot", json=order.log_json, level=order.log_level, slot=order.slot)
    if order.path:
        brake_output(who=calls_under_way)
        note_calls()
        use_plugin(order.path, named(order.use_plugin))
    if order.data:
        offer_rows(batches)
    else:
        for _ in batches:
            pass
    asyncio.run(SlotHost(order).run())


def take_routes(routes: Mapping[str, str]) -> None:
    """Gives this process private host names; called before it has threads. Raises FailedPrecondition."""
    try:
        private_hosts.enter(routes)
    except private_hosts.NotPossible as error:
        text = f"the slot cannot have its routes (names of hosts for it alone): {error}"
        raise FailedPrecondition(text, reason=ROUTES_NOT_POSSIBLE) from None


def named(text: str) -> Any:
    """Returns the object that `module:name` names."""
    module, _, name = text.partition(":")
    return getattr(importlib.import_module(module), name)


def use_plugin(folder: str, take_up: Callable[[str], None]) -> None:
    """Prepares this process for a plugin: its modules are found first, and so are its connectors and transforms.

    Raises NotFound when the folder does not exist.
    """
    if not os.path.isdir(folder):
        raise NotFound(f"the plugin's folder {folder} does not exist", reason="PLUGIN_MISSING")
    sys.path.insert(0, folder)
    take_up(folder)


class Standstill:
    """Announces a standstill of the slot to its home, before it begins: from a task loop's thread."""

    def __init__(self, lease: SlotLease, beat: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """`beat` sends a beat that reports the lease's excused seconds. Created in the slot's event loop."""
        self._lease, self._beat, self._loop = lease, beat, asyncio.get_running_loop()

    def begin(self, seconds: float) -> None:
        """Excuses the lease, and returns when the home was notified, or after `ANNOUNCE_SECONDS` in vain: then the home
        is about to give this slot up."""
        self._lease.excuse(seconds)
        with suppress(Exception):  # the stream may be about to end
            asyncio.run_coroutine_threadsafe(self._beat(), self._loop).result(ANNOUNCE_SECONDS)

    def end(self) -> None:
        """Resumes the lease; the home learns of it with the next beat."""
        self._lease.resume()


class SlotHost:
    """One attached slot: receives orders, sends updates and beats, runs task loops. Created and run in one event
    loop."""

    def __init__(self, order: SlotOrder) -> None:
        self._order = order
        self._attached = False
        self._writing = asyncio.Lock()
        self._share = CpuShare()
        self._lease = SlotLease(order.beat_timeout_seconds - MARGIN_SECONDS)

    async def run(self) -> None:
        """Attaches and serves; whatever the reason for the end, it leaves no loop behind."""
        self._updates = UpdateQueue()
        self._lease = SlotLease(self._order.beat_timeout_seconds - MARGIN_SECONDS)
        factory = named(self._order.loop)
        allowed, rest = self._lease.allowed, self._share.rest
        report = self._updates.put
        self._loops = Loops(
            lambda ticket: factory(ticket, report, still_allowed=allowed, rest=rest),
            report,
            awake_seconds=lambda: self._lease.awake_seconds,
        )
        try:
            ca = self._order.ca.encode() or None
            async with channel(self._order.home, root_certificates=ca, server_name=self._order.server_name) as home:
                call: Any = SlotServiceStub(home).Attach()
                greeting = SlotGreeting(
                    slot=self._order.slot, token=self._order.token, pid=os.getpid(), host=socket.gethostname()
                )
                with translated():
                    await call.write(AttachRequest(greeting=greeting))
                    announce_by(Standstill(self._lease, partial(self._send_beat, call)))
                    await first_of(self._hear(call), self._speak(call), self._watch())
        except KeelmanError as error:
            if not self._attached:
                raise
            self._lease.lose(error.message)
        except asyncio.InvalidStateError:
            self._lease.lose("the stream to the Spark service has ended")
        finally:
            self._lease.lose("the slot ends")
            self._loops.cut_all("SLOT_LOST")
            sys.stderr.flush()

    async def _hear(self, call: Any) -> None:
        async for message in call:
            self._attached = True
            self._lease.heard()
            if not self._lease.allowed():
                return
            match message.WhichOneof("message"):
                case "order":
                    REDACTOR.add(message.order.start.hidden)
                    self._loops.apply(message.order)
                case "bounds":
                    self._share.bound(message.bounds.cpus)
                case "log_levels":
                    LOG_LEVELS.take(message.log_levels.levels)
                case "end":
                    return
                case _:
                    pass

    async def _speak(self, call: Any) -> None:
        due = time.monotonic()
        while True:
            try:
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    update = await self._updates.get()
            except TimeoutError:
                due = time.monotonic() + BEAT_SECONDS
                await self._send_beat(call)
                continue
            update.message, update.trace = REDACTOR.hide(update.message), REDACTOR.hide(update.trace)
            await self._write(call, AttachRequest(update=update))
            self._loops.on_update(update)
            if time.monotonic() >= due:
                due = time.monotonic() + BEAT_SECONDS
                await self._send_beat(call)

    async def _send_beat(self, call: Any) -> None:
        await self._write(call, AttachRequest(beat=self._beat()))

    async def _write(self, call: Any, message: AttachRequest) -> None:
        async with self._writing:  # a stream takes one message at a time
            await call.write(message)

    async def _watch(self) -> None:
        while self._lease.allowed():
            self._lease.tick()
            self._loops.open_next()
            await asyncio.sleep(TICK_SECONDS)

    def _beat(self) -> SlotBeat:
        silent = self._loops.silent()
        return SlotBeat(
            cpu_time=to_duration(time.process_time()),
            memory_bytes=resident_bytes(),
            silent_runs=silent.keys(),
            silent_at=silent.values(),
            standstill=to_duration(self._lease.excused_seconds),
        )


def resident_bytes() -> int:
    """Returns the resident memory of this process."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE_BYTES
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

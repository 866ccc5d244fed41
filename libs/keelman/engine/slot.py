"""The slot host: one process on a Spark executor that calls home and runs the task loops it is ordered to run.

Nothing of this outlives the home: a slot that has heard nothing for the beat time-out, or that was itself frozen for so
long, lets no loop commit any more, cuts them all and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import resource
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import setproctitle

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_ENDED, COPY_RUN_STATE_FAILED
from keelman.api.copy.v1.run_order_pb2 import RunOrder, RunUpdate
from keelman.api.copy.v1.slot_service_pb2 import AttachRequest, SlotBeat, SlotGreeting
from keelman.api.copy.v1.slot_service_pb2_grpc import SlotServiceStub
from keelman.api.copy.v1.ticket_pb2 import Confirmation, Limits, StartTicket
from keelman.engine.cpu_share import CpuShare
from keelman.engine.updates import UpdateQueue
from keelman.model.errors import KeelmanError, NotFound
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated
from keelman.runtime.logging import configure
from keelman.runtime.supervise import first_of

BEAT_SECONDS = 1.0
TICK_SECONDS = 0.25
MARGIN_SECONDS = 1.0
SILENT_SECONDS = 10.0
CUT_SECONDS = 2.0
DEFAULT_LOOP = "keelman.engine.run:CopyRunLoop"
PAGE_BYTES = resource.getpagesize()

Tell = Callable[[RunUpdate], None]


class Loop(Protocol):
    """What a slot asks of a task loop; keelman.engine.run.CopyRunLoop is the one."""

    def start(self) -> None:
        """Starts the loop's thread. Called once."""

    def confirm(self, confirmation: Confirmation) -> None:
        """The ticket still holds."""

    def drain(self) -> None:
        """Commit what is read and end."""

    def cut(self, reason: str) -> None:
        """Abort and end at once."""

    def limit(self, limits: Limits) -> None:
        """Copy no faster than this."""

    def silent_seconds(self) -> float:
        """How long the thread has given no sign of life though it should have."""

    def join(self, timeout: float) -> bool | None:
        """Waits for the thread."""


@dataclass(frozen=True, slots=True)
class SlotOrder:
    """All that a slot process needs to attach; travels in the Spark job's closure.

    `path` is the folder of the plugin that the slot is for: its modules come first. Empty for connectors that we ship.
    `ca` are PEM certificates that the home is to be known by, empty for no TLS; `server_name` is the name in its own,
    the host of `home` when empty.
    """

    slot: str
    token: str
    home: str
    beat_timeout_seconds: float
    loop: str = DEFAULT_LOOP
    log_json: bool = False
    log_level: str = "info"
    path: str = ""
    ca: str = ""
    server_name: str = ""


def slot_work(order: SlotOrder) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for mapInArrow: hosts the slot until its end and yields nothing."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        from keelman.engine.slot import host_slot  # noqa: PLC0415  (this closure is pickled by value)

        for _ in batches:
            pass
        host_slot(order)
        return iter(())

    return work


def host_slot(order: SlotOrder) -> None:
    """Runs in the executor's Python process, in its main thread; returns when the slot has ended.

    Raises Unauthenticated when the home refuses the token and Unavailable when it cannot be reached.
    """
    setproctitle.setproctitle(f"keelman {order.slot}")
    configure("slot", json=order.log_json, level=order.log_level, slot=order.slot)
    if order.path:
        use_plugin(order.path)
    asyncio.run(SlotHost(order).run())


def use_plugin(folder: str) -> None:
    """Makes this process one of a plugin: its modules are found first, and so are its connectors and transforms.

    Raises NotFound when the folder is not there.
    """
    if not os.path.isdir(folder):
        raise NotFound(f"the plugin's folder {folder} is not there", reason="PLUGIN_MISSING")
    sys.path.insert(0, folder)
    # Connectors stand above the engine: named here, loaded there.
    importlib.import_module("keelman.connectors.plugins").use(folder)


@dataclass(slots=True)
class Vitals:
    """Whether this slot may still act. Any thread may ask; once False it stays False.

    A gap is noticed by whoever looks first, the ticking loop or a task loop about to commit, before anything refreshes
    it: so a process that was frozen cannot be talked into life again by beats that waited in its socket.
    """

    limit_seconds: float
    clock: Callable[[], float] = time.monotonic
    _ticked: float = field(init=False)
    _heard: float = field(init=False)
    _lost: str = ""

    def __post_init__(self) -> None:
        self._ticked = self._heard = self.clock()

    def allowed(self) -> bool:
        """True while the home was heard and this process was awake within the limit."""
        now = self.clock()
        if not self._lost and now - self._ticked > self.limit_seconds:
            self._lost = f"this slot was frozen for {now - self._ticked:.1f} s"
        if not self._lost and now - self._heard > self.limit_seconds:
            self._lost = f"no beat of the Spark service for {now - self._heard:.1f} s"
        return not self._lost

    def tick(self) -> None:
        """The event loop is awake."""
        if self.allowed():
            self._ticked = self.clock()

    def heard(self) -> None:
        """A message of the home came."""
        if self.allowed():
            self._heard = self.clock()

    def lose(self, why: str) -> None:
        """The home is gone."""
        self._lost = self._lost or why

    @property
    def lost(self) -> str:
        """Why this slot may not act any more; empty while it may."""
        return self._lost


class SlotHost:
    """One attached slot: orders in, updates and beats out, task loops in between. Made and run in one event loop."""

    def __init__(self, order: SlotOrder) -> None:
        self._order = order
        self._loops: dict[str, Loop] = {}
        self._attached = False
        self._share = CpuShare()
        self._vitals = Vitals(order.beat_timeout_seconds - MARGIN_SECONDS)

    async def run(self) -> None:
        """Attaches, serves and, whatever the reason for the end, leaves no loop behind."""
        self._updates = UpdateQueue()
        self._vitals = Vitals(self._order.beat_timeout_seconds - MARGIN_SECONDS)
        module, _, name = self._order.loop.partition(":")
        self._factory: Callable[..., Loop] = getattr(importlib.import_module(module), name)
        why = "SLOT_LOST"
        try:
            ca = self._order.ca.encode() or None
            async with channel(self._order.home, root_certificates=ca, server_name=self._order.server_name) as home:
                call: Any = SlotServiceStub(home).Attach()
                greeting = SlotGreeting(
                    slot=self._order.slot, token=self._order.token, pid=os.getpid(), host=socket.gethostname()
                )
                with translated():
                    await call.write(AttachRequest(greeting=greeting))
                    await first_of(self._hear(call), self._speak(call), self._watch())
        except KeelmanError as error:
            if not self._attached:
                raise
            self._vitals.lose(error.message)
        except asyncio.InvalidStateError:
            self._vitals.lose("the stream to the Spark service has ended")
        finally:
            self._vitals.lose("the slot ends")
            self._cut_all(why)

    async def _hear(self, call: Any) -> None:
        async for message in call:
            self._attached = True
            self._vitals.heard()
            if not self._vitals.allowed():
                return
            match message.WhichOneof("message"):
                case "order":
                    self._obey(message.order)
                case "bounds":
                    self._share.bound(message.bounds.cpus)
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
                await call.write(AttachRequest(beat=self._beat()))
                continue
            await call.write(AttachRequest(update=update))
            if update.state in (COPY_RUN_STATE_ENDED, COPY_RUN_STATE_FAILED):
                self._loops.pop(update.run_uid, None)
            if time.monotonic() >= due:
                due = time.monotonic() + BEAT_SECONDS
                await call.write(AttachRequest(beat=self._beat()))

    async def _watch(self) -> None:
        while self._vitals.allowed():
            self._vitals.tick()
            await asyncio.sleep(TICK_SECONDS)

    def _beat(self) -> SlotBeat:
        silent = [uid for uid, loop in self._loops.items() if loop.silent_seconds() > SILENT_SECONDS]
        return SlotBeat(cpu_seconds=time.process_time(), memory_bytes=resident_bytes(), silent_runs=silent)

    def _obey(self, order: RunOrder) -> None:
        uid = order.run_uid
        kind = order.WhichOneof("order")
        if kind == "start":
            if uid not in self._loops:
                self._start(uid, order.start)
            return
        loop = self._loops.get(uid)
        if loop is None:
            return  # it has ended and said so
        if kind == "confirm":
            loop.confirm(order.confirm)
        elif kind == "drain":
            loop.drain()
        elif kind == "cut":
            loop.cut(order.cut.reason)
        elif kind == "limits":
            loop.limit(order.limits)

    def _start(self, uid: str, ticket: StartTicket) -> None:
        try:
            loop = self._factory(ticket, self._updates.put, still_allowed=self._vitals.allowed, rest=self._share.rest)
            loop.start()
        except Exception as error:
            # A fault of one connector must not end the slot of the others.
            update = RunUpdate(
                run_uid=uid,
                state=COPY_RUN_STATE_FAILED,
                reason=error.reason if isinstance(error, KeelmanError) else "TASK_FAILED",
                message=str(error) or type(error).__name__,
                trace=traceback.format_exc(),
                # Short of threads or of memory: another slot may have them.
                retriable=isinstance(error, (RuntimeError, OSError, MemoryError)),
            )
            update.time.GetCurrentTime()
            self._updates.put(update)
        else:
            self._loops[uid] = loop

    def _cut_all(self, reason: str) -> None:
        for loop in self._loops.values():
            with contextlib.suppress(Exception):
                loop.cut(reason)
        end = time.monotonic() + CUT_SECONDS
        for loop in self._loops.values():
            with contextlib.suppress(Exception):
                loop.join(max(0.0, end - time.monotonic()))
        sys.stderr.flush()


def resident_bytes() -> int:
    """Resident memory of this process."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE_BYTES
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

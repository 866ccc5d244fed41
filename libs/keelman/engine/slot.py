"""The slot host: one process on a Spark executor that calls home and runs the task loops it is ordered to run.

Nothing of this outlives the home: a slot that has heard nothing for the beat time-out, or that was itself frozen for so
long, lets no loop commit any more, cuts them all and ends.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import setproctitle

from keelman.api.copy.v1.slot_service_pb2 import AttachRequest, SlotBeat, SlotGreeting
from keelman.api.copy.v1.slot_service_pb2_grpc import SlotServiceStub
from keelman.engine.cpu_share import CpuShare
from keelman.engine.given import give
from keelman.engine.loops import Loops
from keelman.engine.updates import UpdateQueue
from keelman.engine.vitals import Vitals
from keelman.model.errors import KeelmanError, NotFound
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated
from keelman.runtime.log_levels import LOG_LEVELS
from keelman.runtime.logging import configure
from keelman.runtime.output_brake import brake_output
from keelman.runtime.redaction import REDACTOR
from keelman.runtime.stacks import stacks_on_signal
from keelman.runtime.supervise import first_of

BEAT_SECONDS = 1.0
TICK_SECONDS = 0.25
MARGIN_SECONDS = 1.0
DEFAULT_LOOP = "keelman.engine.run:CopyRunLoop"
# A record of a thousand levels, the most that Connect's parser of JSON takes, goes through several functions a level.
RECURSION = 5_000
PAGE_BYTES = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class SlotOrder:
    """All that a slot process needs to attach; travels in the Spark job's closure.

    `path` is the folder of the plugin that the slot is for: its modules come first. Empty for connectors that we ship.
    `ca` are PEM certificates that the home is to be known by, empty for no TLS; `server_name` is the name in its own,
    the host of `home` when empty. With `data` its Spark job gives it rows, for the one copy run that is to read them.
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
    data: bool = False


def slot_work(order: SlotOrder) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for mapInArrow: hosts the slot until its end and yields nothing."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        from keelman.engine.slot import host_slot  # noqa: PLC0415  (this closure is pickled by value)

        host_slot(order, batches)
        return iter(())

    return work


def host_slot(order: SlotOrder, batches: Iterable[Any]) -> None:
    """Runs in the executor's Python process, in its main thread; returns when the slot has ended.

    `batches` is what its Spark job gives it. Raises Unauthenticated when the home refuses the token and Unavailable
    when it cannot be reached.
    """
    setproctitle.setproctitle(f"keelman {order.slot}")
    stacks_on_signal()
    sys.setrecursionlimit(RECURSION)
    configure("slot", json=order.log_json, level=order.log_level, slot=order.slot)
    if order.path:
        brake_output()
        use_plugin(order.path)
    if order.data:
        give(batches)
    else:
        for _ in batches:
            pass
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


class SlotHost:
    """One attached slot: orders in, updates and beats out, task loops in between. Made and run in one event loop."""

    def __init__(self, order: SlotOrder) -> None:
        self._order = order
        self._attached = False
        self._share = CpuShare()
        self._vitals = Vitals(order.beat_timeout_seconds - MARGIN_SECONDS)

    async def run(self) -> None:
        """Attaches, serves and, whatever the reason for the end, leaves no loop behind."""
        self._updates = UpdateQueue()
        self._vitals = Vitals(self._order.beat_timeout_seconds - MARGIN_SECONDS)
        module, _, name = self._order.loop.partition(":")
        factory = getattr(importlib.import_module(module), name)
        allowed, rest = self._vitals.allowed, self._share.rest
        tell = self._updates.put
        self._loops = Loops(lambda ticket: factory(ticket, tell, still_allowed=allowed, rest=rest), tell)
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
            self._loops.cut_all("SLOT_LOST")
            sys.stderr.flush()

    async def _hear(self, call: Any) -> None:
        async for message in call:
            self._attached = True
            self._vitals.heard()
            if not self._vitals.allowed():
                return
            match message.WhichOneof("message"):
                case "order":
                    REDACTOR.add(message.order.start.hidden)
                    self._loops.obey(message.order)
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
                await call.write(AttachRequest(beat=self._beat()))
                continue
            update.message, update.trace = REDACTOR.hide(update.message), REDACTOR.hide(update.trace)
            await call.write(AttachRequest(update=update))
            self._loops.told(update)
            if time.monotonic() >= due:
                due = time.monotonic() + BEAT_SECONDS
                await call.write(AttachRequest(beat=self._beat()))

    async def _watch(self) -> None:
        while self._vitals.allowed():
            self._vitals.tick()
            self._loops.open_next()
            await asyncio.sleep(TICK_SECONDS)

    def _beat(self) -> SlotBeat:
        silent = self._loops.silent()
        return SlotBeat(
            cpu_seconds=time.process_time(),
            memory_bytes=resident_bytes(),
            silent_runs=silent.keys(),
            silent_at=silent.values(),
        )


def resident_bytes() -> int:
    """Resident memory of this process."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE_BYTES
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

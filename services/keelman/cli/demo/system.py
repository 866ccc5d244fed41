"""Finds the system for the job: the home's own if it is up, else a system that the job starts and ties to itself."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable

from keelman.cli.client.system import System, running_system
from keelman.cli.demo.phases import Phases
from keelman.cli.machine.detached import Detached, Message, start_detached
from keelman.cli.machine.options import UpOptions
from keelman.cli.waiting import until
from keelman.model.errors import Unavailable
from keelman.runtime.supervise import Siblings


class TiedSystem:
    """Starts the system if it is not up, and stops it again if this job has started it."""

    def __init__(self, options: UpOptions, phases: Phases, show: Callable[[str], None]) -> None:
        self._options = options
        self._phases = phases
        self._show = show
        self._detached: Detached | None = None
        self._serving = asyncio.Event()
        self._ready = asyncio.Event()

    @property
    def ours(self) -> bool:
        """Whether this job started the system."""
        return self._detached is not None

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator[TiedSystem]:
        """Yields the system while its services start. The end of the block always stops a system that
        was started here."""
        running = running_system(self._options.home)
        async with Siblings() as siblings:
            if running is not None:
                self._show(f"using the running system, gateway at {running.gateway}")
                siblings.start(self._until_known_ready())
            else:
                self._phases.begin("services")
                self._detached = start_detached(self._options, tied=True)
                siblings.start(self._follow(self._detached))
            try:
                yield self
            finally:
                await self._stop()

    async def serving(self) -> System:
        """Waits until the services answer."""
        await self._serving.wait()
        system = running_system(self._options.home)
        if system is None:
            raise Unavailable(f"the system of {self._options.home.root} ended: see {self._options.home.log('up')}")
        return system

    async def ready(self) -> None:
        """Waits until the broker runs too."""
        await self._ready.wait()

    def alive(self) -> bool:
        """Tells whether the system still runs."""
        return running_system(self._options.home) is not None

    async def _follow(self, started: Detached) -> None:
        await started.ready(self._take)
        self._phases.end("broker")
        self._ready.set()

    def _take(self, message: Message) -> None:
        if message.stage in ("step", "note"):
            self._show(message.text)
        elif message.stage == "serving":
            self._phases.end("services")
            self._phases.begin("broker")
            self._serving.set()

    async def _until_known_ready(self) -> None:
        home = self._options.home

        def ready_or_gone() -> bool:
            system = running_system(home)
            if system is None:
                raise Unavailable(f"the system of {home.root} ended: see {home.log('up')}")
            return system.ready

        await until(ready_or_gone)
        self._serving.set()
        self._ready.set()

    async def _stop(self) -> None:
        started = self._detached
        if started is None:
            return
        self._show("stopping the system that this run started")
        with self._phases.phase("stop"):
            if started.process.poll() is None:
                started.process.send_signal(signal.SIGTERM)
            try:
                await until(lambda: started.process.poll() is not None)
            except asyncio.CancelledError:
                # A second Ctrl-C: at the second signal the system ends at once.
                started.process.send_signal(signal.SIGTERM)
                await until(lambda: started.process.poll() is not None)
                raise
            finally:
                started.link.close()

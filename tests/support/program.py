"""Runs a real program for a test: starts it with its output in a file, waits until it answers, ends it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from keelman.runtime.processes.die_with_parent import tethered

STOP_SECONDS = 300.0


class Program:
    """One program, started and stopped as often as a test likes. `name` is for messages, `log` gets all its output."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self.child: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self.child is not None, "not started"
        return self.child.pid

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self.child is not None and self.child.returncode is None

    @property
    def output(self) -> str:
        """All its output, over all its starts."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    async def run(self, command: Sequence[str], **options: Any) -> None:
        """Starts it without waiting; it ends with this process."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self.child = await asyncio.create_subprocess_exec(
                *tethered(command), stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, **options
            )

    async def answers(self, ask: Callable[[], Awaitable[bool]], seconds: float) -> None:
        """Returns when it answers. Raises AssertionError with its output when it ends before, or takes longer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.running:
                    if await ask():
                        return
                    await asyncio.sleep(0.05)
        code = None if self.child is None else self.child.returncode
        await self.end(signal.SIGKILL)
        raise AssertionError(f"{self.name} did not start (exit code {code}):\n{self.output[-4000:]}")

    async def ended(self, seconds: float = STOP_SECONDS) -> int:
        """Waits until it ends by itself; its exit code. Raises TimeoutError."""
        assert self.child is not None, "not started"
        async with asyncio.timeout(seconds):
            return await self.child.wait()

    async def end(self, number: int = signal.SIGTERM, seconds: float = STOP_SECONDS) -> int:
        """Sends the signal and waits; returns the exit code.

        Kills the program after this time. Does nothing to a program that has ended.
        """
        assert self.child is not None, "not started"
        if self.child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.child.send_signal(number)
        try:
            return await self.ended(seconds)
        except TimeoutError:
            self.child.kill()
            return await self.child.wait()

"""Runs a long-lived Java program in a process group of its own: starts, drains and kills it, and says how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from keelman.runtime.processes.die_with_parent import tethered

ORDERLY_EXITS = (0, 128 + signal.SIGTERM)


class JavaProcess:
    """One that runs, or has run."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self._child = child

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    async def end(self) -> tuple[str, bool]:
        """Waits until it has ended by itself: how, in words, and whether it may have said why.

        Who was killed could not: its last complaint is of something else.
        """
        code = await self._child.wait()
        return (f"signal {signal.Signals(-code).name}", False) if code < 0 else (f"exit code {code}", True)

    async def drain(self, seconds: float) -> bool:
        """Asks it to end, in good order, and kills it after the time; True when it ended as asked."""
        if self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._child.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(seconds):
                return await self._child.wait() in ORDERLY_EXITS
        except TimeoutError:
            await self.kill()
            return False

    async def kill(self) -> None:
        """Ends it at once, as a power cut would. Does nothing when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._child.kill()
        await self._child.wait()


@contextlib.asynccontextmanager
async def java_process(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Starts a program in a folder, tied to this process; it is killed at the end of the block if it still runs.

    Its group keeps a terminal's Ctrl-C away from it: it is this process that drains it.
    """
    child = await asyncio.create_subprocess_exec(
        *tethered(command), stdin=asyncio.subprocess.DEVNULL, process_group=0, cwd=folder, env=environment
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            await JavaProcess(child).kill()

"""Runs a long-lived Java program in a process group of its own: starts, drains and kills it, and reports how it
ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from keelman.runtime.processes.die_with_parent import tethered

ORDERLY_EXITS = (0, 128 + signal.SIGTERM)


class JavaProcess:
    """A Java process that runs, or has run."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self._child = child

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    async def end(self) -> tuple[str, bool]:
        """Waits until the process has ended by itself. Returns how, in words, and whether its output may have the
        reason.

        A killed process had no time to write it: its last error is about something else.
        """
        code = await self._child.wait()
        return (f"signal {signal.Signals(-code).name}", False) if code < 0 else (f"exit code {code}", True)

    async def drain(self, seconds: float) -> bool:
        """Terminates the process, and kills it after the time. Returns True if it ended by itself."""
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
        """Kills the process at once, like a power cut. Does nothing if it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._child.kill()
        await self._child.wait()


@contextlib.asynccontextmanager
async def java_process(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Starts a program in a folder, tied to this process; it is killed at the end of the block if it still runs.

    Its own process group keeps a terminal's Ctrl-C away from it: this process drains it.
    """
    child = await asyncio.create_subprocess_exec(
        *tethered(command), stdin=asyncio.subprocess.DEVNULL, process_group=0, cwd=folder, env=environment
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            await JavaProcess(child).kill()

"""One plugin host process, as its worker has it: a question in, an answer out."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from keelman.runtime.children import own_environment
from keelman.runtime.tether import tethered

LONGEST_ANSWER_BYTES = 64 << 20
SERVICES = ("worker", "agent", "state", "gateway", "spark", "broker")


class PluginProcess:
    """What its start or a question raises leaves it unusable: it is to be closed."""

    def __init__(self, folder: Path | None, *, memory_bytes: int) -> None:
        """Without a folder it answers for connectors that we ship. `memory_bytes` is what it may have; 0: no bound."""
        self._words = [str(folder or ""), str(memory_bytes)]
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """The process, None before its start."""
        return None if self._process is None else self._process.pid

    @property
    def usable(self) -> bool:
        """Whether it can be asked."""
        process = self._process
        if process is None or process.stdout is None:
            return True
        return process.returncode is None and not process.stdout.at_eof()

    async def start(self) -> None:
        """Returns when it can be asked. Raises as `ask`."""
        if self._process is None:
            self._process = await self._started()
            await self._line()

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer. Raises EOFError, OSError, ValueError when there is none; waits for ever when it hangs.

        A ConnectionError says that the process was gone before it heard the question.
        """
        process = self._process
        if process is None or process.stdin is None:
            raise RuntimeError("a plugin host is asked after its start")
        process.stdin.write(json.dumps(request).encode() + b"\n")
        await process.stdin.drain()
        answer: dict[str, Any] = json.loads(await self._line())
        return answer

    async def _line(self) -> bytes:
        if self._process is None or self._process.stdout is None:
            raise RuntimeError("a plugin host is always started with pipes")
        line = await self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        return line

    async def close(self) -> None:
        """Ends it, if there is one, with all that it has started."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _started(self) -> asyncio.subprocess.Process:
        command = [sys.executable, "-P", "-m", "keelman.connectors.plugin_host", *self._words]
        return await asyncio.create_subprocess_exec(
            *tethered(command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=own_environment(SERVICES),
            limit=LONGEST_ANSWER_BYTES,
            process_group=0,
        )

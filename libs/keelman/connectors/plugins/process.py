"""The worker's handle of one plugin host process: sends a question, reads its acknowledgement and its answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from pathlib import Path
from typing import Any, cast

from keelman.runtime.logs.logging import log_form
from keelman.runtime.processes.children import own_environment
from keelman.runtime.processes.die_with_parent import kept

LONGEST_ANSWER_BYTES = 64 << 20
SERVICES = ("worker", "agent", "state", "gateway", "spark", "broker")


class Unheard(EOFError):
    """The process ended before it received the question: none of its code has run for that."""


class PluginProcess:
    """A plugin host process. After an error of its start or of a question it is unusable, and the caller must close
    it."""

    def __init__(self, folder: Path | None, *, memory_bytes: int) -> None:
        """Without a folder it answers for connectors that we ship. `memory_bytes` limits its memory; 0: no limit."""
        self._words = [str(folder or ""), str(memory_bytes), json.dumps(log_form())]
        self._pipes: _Pipes | None = None
        self._code: int | None = None

    @property
    def death(self) -> str:
        """After `close`, the way it ended, as text to follow `its process died`; empty if it was killed, perhaps by
        us."""
        if self._code is None or self._code == -signal.SIGKILL:
            return ""
        return f" with exit code {self._code}" if self._code >= 0 else f" of {signal.Signals(-self._code).name}"

    @property
    def pid(self) -> int | None:
        """The id of the process, or of the reaper that ends it with its descendants; None before its start."""
        return None if self._pipes is None else self._pipes.process.pid

    async def start(self) -> None:
        """Returns when it is ready for questions. Raises EOFError, OSError."""
        if self._pipes is None:
            self._pipes = await _start(self._words)
            await self._pipes.line()

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer. Raises Unheard, EOFError, OSError, ValueError without one; waits for ever when it hangs.

        The process acknowledges each question, since a write proves nothing: the pipe accepts a question even if its
        reader is killed before reading it.
        """
        pipes = self._pipes
        if pipes is None:
            raise RuntimeError("a plugin host is asked after its start")
        with contextlib.suppress(ConnectionError):
            await pipes.write(json.dumps(request).encode() + b"\n")
        try:
            _about(request, await pipes.line())
        except EOFError:
            raise Unheard from None
        return _about(request, await pipes.line())

    async def close(self) -> None:
        """Ends the process, if there is one, with its descendants."""
        if (pipes := self._pipes) is not None:
            await pipes.end()
            self._pipes, self._code = None, pipes.process.returncode


class _Pipes(SubprocessStreamProtocol):
    """Both pipes of a process, and its reaper, which leads a separate process group and ends as the process does."""

    process: Process

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._both = cast(asyncio.SubprocessTransport, transport)
        self.process = Process(self._both, self, asyncio.get_running_loop())

    async def write(self, data: bytes) -> None:
        """Writes. Raises ConnectionError if the reader is known to be gone; without an error it may be gone too."""
        assert self.stdin is not None
        self.stdin.write(data)
        await self.stdin.drain()

    async def line(self) -> bytes:
        """Reads a line. Raises EOFError, OSError; ValueError for a line that is too long."""
        assert self.stdout is not None
        try:
            line = await self.stdout.readline()
        except ValueError:
            raise ValueError(f"it is longer than {LONGEST_ANSWER_BYTES >> 20} MiB") from None
        if not line.endswith(b"\n"):
            raise EOFError
        return line

    async def end(self) -> None:
        """Returns when the process and its descendants are gone, even if another process has its pipes."""
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        questions, answers = self._both.get_pipe_transport(0), self._both.get_pipe_transport(1)
        if questions is not None and not questions.is_closing():
            cast(asyncio.WriteTransport, questions).abort()
        if answers is not None:
            answers.close()
        await self.process.wait()
        self._both.close()


async def _start(words: list[str]) -> _Pipes:
    loop = asyncio.get_running_loop()
    _, pipes = await loop.subprocess_exec(
        lambda: _Pipes(LONGEST_ANSWER_BYTES, loop),
        *kept([sys.executable, "-P", "-m", "keelman.connectors.plugins.host", *words]),
        stdin=PIPE,
        stdout=PIPE,
        stderr=None,
        env=own_environment(SERVICES),
        process_group=0,
    )
    return pipes


def _about(request: dict[str, Any], line: bytes) -> dict[str, Any]:
    """Parses a line. Raises ValueError unless it belongs to this question and can be encoded, as its caller stores
    it."""
    said = json.loads(line.decode())
    if b"\\u" in line:  # such an escape may be half of a surrogate pair
        json.dumps(said, ensure_ascii=False).encode()
    if not isinstance(said, dict) or said.get("id") != request["id"]:
        raise ValueError(f"it is not about the question: {line[:80]!r}")
    return said

"""One plugin host process, as its worker has it: a question in, the word that it was heard, and an answer out."""

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
    """The process ended before it heard the question: none of its code has run for that."""


class PluginProcess:
    """A plugin host, as its worker starts, asks and closes it. An error of its start or of a question leaves it
    unusable: it is to be closed."""

    def __init__(self, folder: Path | None, *, memory_bytes: int) -> None:
        """Without a folder it answers for connectors that we ship. `memory_bytes` is what it may have; 0: no bound."""
        self._words = [str(folder or ""), str(memory_bytes), json.dumps(log_form())]
        self._pipes: _Pipes | None = None
        self._code: int | None = None

    @property
    def death(self) -> str:
        """How it ended, to follow `its process died`, once it is closed; empty where it was killed, by us perhaps."""
        if self._code is None or self._code == -signal.SIGKILL:
            return ""
        return f" with exit code {self._code}" if self._code >= 0 else f" of {signal.Signals(-self._code).name}"

    @property
    def pid(self) -> int | None:
        """The process, or the reaper that ends it with all that it has started; None before its start."""
        return None if self._pipes is None else self._pipes.process.pid

    async def start(self) -> None:
        """Returns when it can be asked. Raises EOFError, OSError."""
        if self._pipes is None:
            self._pipes = await _start(self._words)
            await self._pipes.line()

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer. Raises Unheard, EOFError, OSError, ValueError when there is none; waits for ever when it hangs.

        The process says when it has heard a question, as nobody else can know: the pipe takes one, too, whose reader
        will be killed before it reads on.
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
        """Ends it, if there is one, with all that it has started."""
        if (pipes := self._pipes) is not None:
            await pipes.end()
            self._pipes, self._code = None, pipes.process.returncode


class _Pipes(SubprocessStreamProtocol):
    """Both ways to a process, and its reaper, which leads a group of its own and ends as the process does."""

    process: Process

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._both = cast(asyncio.SubprocessTransport, transport)
        self.process = Process(self._both, self, asyncio.get_running_loop())

    async def write(self, data: bytes) -> None:
        """Raises ConnectionError where it is known that nobody can read it; that it does not says nothing."""
        assert self.stdin is not None
        self.stdin.write(data)
        await self.stdin.drain()

    async def line(self) -> bytes:
        """Raises EOFError, OSError; ValueError for one that is too long."""
        assert self.stdout is not None
        try:
            line = await self.stdout.readline()
        except ValueError:
            raise ValueError(f"it is longer than {LONGEST_ANSWER_BYTES >> 20} MiB") from None
        if not line.endswith(b"\n"):
            raise EOFError
        return line

    async def end(self) -> None:
        """Returns when the process is gone and all that it has started, even if another process has its pipes."""
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
    """Raises ValueError unless it is about this question and of whole characters, as its caller stores it."""
    said = json.loads(line.decode())
    if b"\\u" in line:  # what such an escape stands for may be half of a surrogate pair
        json.dumps(said, ensure_ascii=False).encode()
    if not isinstance(said, dict) or said.get("id") != request["id"]:
        raise ValueError(f"it is not about the question: {line[:80]!r}")
    return said

"""A client of Couchbase's in a process of its own, which prints the changes it sees."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from keelman.runtime.processes.die_with_parent import tethered
from support.eventually import eventually

LINE_BYTES = 1 << 20


class Follower:
    """Takes each line's kind and the rest of its words; `other` has the lines of kinds that `take` does not know."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.other: list[str] = []
        self._process = process
        self._reading = asyncio.ensure_future(self._read())

    def take(self, kind: str, rest: Sequence[str]) -> bool:
        """Whether it is a change that the client saw."""
        raise NotImplementedError

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for raw in self._process.stdout:
            kind, *rest = raw.decode().rstrip("\n").split(" ")
            if not self.take(kind, rest):
                self.other.append(raw.decode().strip())

    async def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reading


F = TypeVar("F", bound=Follower)


@asynccontextmanager
async def following(kind: type[F], command: Sequence[str], *, stderr: int = subprocess.DEVNULL) -> AsyncIterator[F]:
    """A client from the beginning, once it streams."""
    process = await asyncio.create_subprocess_exec(
        *tethered(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, limit=LINE_BYTES
    )
    follower = kind(process)
    try:
        await eventually(lambda: "streaming" in follower.other)
        yield follower
    finally:
        await follower.end()

"""The interface of all targets of log delivery."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from keelman.agent.shipping.kept import Kept
from keelman.agent.shipping.source import Batch, Source

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """What a thread's work returns. Who is cancelled waits for its end: files that it uses stay open."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class Writer(Protocol):
    """A target that is open for one stream, by one agent. What it raises ends it; the next one goes on where the target
    says."""

    async def resume(self, kept: Kept) -> Kept:
        """Where to go on, as the target knows: called once, first. What a killed agent left half done is undone."""

    async def write(self, batch: Batch, kept: Kept) -> Kept:
        """Writes a batch that was read at `kept`; returns what is to be kept then, when the target has it for good."""


class Target(Protocol):
    """A target of one stream."""

    @property
    def most_bytes(self) -> int:
        """Of the log, in one write."""

    def is_due(self, waiting: int, seconds: float) -> bool:
        """Whether so many bytes, the oldest of which have waited so long, are to be written now."""

    def opened(self, source: Source) -> contextlib.AbstractAsyncContextManager[Writer]:
        """Opens it. Raises KeelmanError and OSError when that cannot be now."""

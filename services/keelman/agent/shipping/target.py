"""The interface of all targets of log delivery."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from keelman.agent.shipping.progress import DeliveryProgress
from keelman.agent.shipping.source import Batch, Source

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of a thread's work. Waits for its end also when cancelled: files that it uses stay open."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class LogWriter(Protocol):
    """A target that is open for one stream, by one agent. An error that it raises ends it; the next writer continues
    from the position that the target returns."""

    async def resume(self, progress: DeliveryProgress) -> DeliveryProgress:
        """Returns the position to continue from, as the target knows it: called once, first. Undoes the half-done work
        of a killed agent."""

    async def write(self, batch: Batch, progress: DeliveryProgress) -> DeliveryProgress:
        """Writes a batch that was read at `progress`; returns the new state to keep, when the target has the batch for
        good."""


class LogTarget(Protocol):
    """A target of one stream."""

    @property
    def most_bytes(self) -> int:
        """The most bytes of the log in one write."""

    def is_due(self, waiting: int, seconds: float) -> bool:
        """Returns whether `waiting` bytes, the oldest of which have waited for `seconds`, have to be written now."""

    def opened(self, source: Source) -> contextlib.AbstractAsyncContextManager[LogWriter]:
        """Opens it. Raises KeelmanError and OSError when that is impossible now."""

"""Lets many callers of the same work, or of the same read, share one run of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Coalesced:
    """Awaiting it returns once `do` has run from beginning to end after the call; at most one run at a time.

    So of any number of simultaneous callers all but the first few wait for one run. An error of `do` reaches the caller
    in whose turn it ran; the next caller tries again.
    """

    def __init__(self, do: Callable[[], Awaitable[object]]) -> None:
        self._do = do
        self._lock = asyncio.Lock()
        self._begun = 0
        self._done = 0

    async def __call__(self) -> None:
        """Raises what `do` raises."""
        run = self._begun + 1  # the current run may have begun with an older state
        async with self._lock:
            if self._done >= run:
                return
            self._begun += 1
            number = self._begun
            await self._do()
            self._done = number


class Shared(Generic[T]):
    """Awaiting it returns the result of a `read` that began after the call; at most one runs at a time.

    Callers during a run wait for the next run, which they share, with its error too. Cancelling a caller does not end a
    run that others wait for.
    """

    def __init__(self, read: Callable[[], Awaitable[T]]) -> None:
        self._read = read
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[T] | None = None
        self._running: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """Raises what `read` raises."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._run())
            self._next.add_done_callback(_retrieved)
        return await asyncio.shield(self._next)

    async def _run(self) -> T:
        async with self._lock:
            self._running, self._next = self._next, None
            return await self._read()


def _retrieved(task: asyncio.Task[T]) -> None:
    if not task.cancelled():
        task.exception()

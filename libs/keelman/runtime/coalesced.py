"""Lets many callers who want the same thing done share one run of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Coalesced:
    """Awaiting it returns once `do` has run from beginning to end after the call; at most one runs at a time.

    So of any number of callers at once all but the first few wait for one run. What `do` raises reaches the caller in
    whose turn it ran; the next caller tries again.
    """

    def __init__(self, do: Callable[[], Awaitable[object]]) -> None:
        self._do = do
        self._lock = asyncio.Lock()
        self._begun = 0
        self._done = 0

    async def __call__(self) -> None:
        """Raises what `do` raises."""
        wanted = self._begun + 1  # one that is under way may have begun with an older state
        async with self._lock:
            if self._done >= wanted:
                return
            self._begun += 1
            number = self._begun
            await self._do()
            self._done = number

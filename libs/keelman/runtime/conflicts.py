"""Does a change again that lost to another writer: reads the resource once more, and writes what that makes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from keelman.model.errors import Conflict

T = TypeVar("T")


async def again(work: Callable[[], Awaitable[T]], *, tries: int = 2) -> T:
    """Does what reads and then writes, so often at most where others write in between. Raises Conflict when they do so
    each time, and what `work` raises."""
    for _ in range(tries - 1):
        try:
            return await work()
        except Conflict:
            continue
    return await work()

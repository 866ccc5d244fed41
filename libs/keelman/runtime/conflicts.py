"""Repeats a change that lost to another writer: reads the resource again, and writes the result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from keelman.model.errors import Conflict

T = TypeVar("T")


async def again(work: Callable[[], Awaitable[T]], *, tries: int = 2) -> T:
    """Runs `work`, which reads and then writes, at most `tries` times if others write in between. Raises Conflict if
    they do so each time, and the errors of `work`."""
    for _ in range(tries - 1):
        try:
            return await work()
        except Conflict:
            continue
    return await work()

"""Calls of the state service for the objects of this API: shared reads, and writes that are repeated on conflicts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from keelman.gateway.calls import Calls
from keelman.gateway.ohara.wire.errors import illegal_state
from keelman.model.errors import AlreadyExists, Conflict
from keelman.rpc.channels import Channel
from keelman.rpc.generated import stub_of
from keelman.runtime.coalesced import Shared

T = TypeVar("T")

TRIES, PAUSE_SECONDS = 20, 0.01
"""The attempts at a read and write that conflicts with others, and the step by which the longest pause grows."""


class OharaControl(Calls):
    """`plugins` has the calls that are streams."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self.plugins: Any = stub_of(channel, "connect", "plugin")
        self._shared: dict[Any, Shared[Any]] = {}

    async def shared(self, read: Callable[[OharaControl], Awaitable[T]]) -> T:
        """Returns the result of a read that begins after this call; concurrent callers of the same read share it."""
        if read not in self._shared:
            self._shared[read] = Shared(lambda: read(self))
        result: T = await self._shared[read]()
        return result


async def again(work: Callable[[], Awaitable[T]]) -> T:
    """Calls `work`, which reads and then writes, again if others wrote in between. Raises OharaError if
    they always do."""
    for number in range(TRIES):
        try:
            return await work()
        except (Conflict, AlreadyExists):
            await asyncio.sleep(random.random() * PAUSE_SECONDS * number)
    raise illegal_state("others change this at the same time: try again")


class WriteTurns:
    """Lets the writers of an object take turns in this process, since a slow writer would lose every race. Conflicts
    with other gateways are left to `again`."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    async def take(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Waits for its turn, and returns the result of `work`."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            return await again(work)

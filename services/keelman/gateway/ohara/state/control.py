"""Calls of the state service, as the objects of this API make them: shared, and made again where others write too."""

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
"""How often what reads and writes is tried where others write too, and the longest pause, more each time."""


class Control(Calls):
    """`plugins` has the calls that are streams."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self.plugins: Any = stub_of(channel, "connect", "plugin")
        self._shared: dict[Any, Shared[Any]] = {}

    async def shared(self, read: Callable[[Control], Awaitable[T]]) -> T:
        """What a read returns that begins after this call; who asks for the same at the same time shares it."""
        if read not in self._shared:
            self._shared[read] = Shared(lambda: read(self))
        found: T = await self._shared[read]()
        return found


async def again(work: Callable[[], Awaitable[T]]) -> T:
    """Does what reads and then writes, again where others wrote in between. Raises OharaError when they always do."""
    for number in range(TRIES):
        try:
            return await work()
        except (Conflict, AlreadyExists):
            await asyncio.sleep(random.random() * PAUSE_SECONDS * number)
    raise illegal_state("others change this at the same time: try again")


class WriteTurns:
    """Has those that change an object one after another wait for each other here, where each would lose its races
    against all who are faster. Other gateways are met in `again`."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    async def take(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` returns, when its turn has come."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            return await again(work)

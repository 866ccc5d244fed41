"""Writes what many sessions wait for in few transactions: a thousand agents come at once after a restart."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Transaction

T = TypeVar("T")
MOST_TOGETHER = 100
"""Writes in one transaction: what is derived from them takes a tenth of a second, in which no heartbeat is read."""


@dataclass(slots=True, eq=False)
class _Waiting:
    change: Callable[[Transaction], Awaitable[Any]]
    since: float
    result: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class WriteQueue:
    """The waiting writes, in the order in which they came. Whoever has the turn writes what waits by then, the others'
    too: a transaction costs as much for one as for many."""

    def __init__(self, store: ResourceStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._waiting: deque[_Waiting] = deque()
        self._turn = asyncio.Lock()

    @property
    def waited_seconds(self) -> float:
        """How long the first of the waiting writes has waited; 0 while none waits."""
        return self._clock() - self._waiting[0].since if self._waiting else 0.0

    async def write(self, change: Callable[[Transaction], Awaitable[T]]) -> T:
        """Calls `change` in a transaction, perhaps with others' changes, and returns its result once that is stored.

        `change` may be called again, if the transaction is given up, and must raise before it has changed anything, if
        at all: then it alone fails. Raises the errors of the transaction.
        """
        mine = _Waiting(change, self._clock())
        self._waiting.append(mine)
        try:
            async with self._turn:
                while not mine.result.done():
                    await self._write_some()
        finally:
            if mine in self._waiting:
                self._waiting.remove(mine)
            mine.result.cancel()
        result: T = mine.result.result()
        return result

    async def _write_some(self) -> None:
        """Writes the first of what waits, which stays in the queue until it is stored or has failed."""
        together: list[_Waiting] = []
        results: list[Callable[[], None]] = []
        try:
            async with self._store.write() as tx:
                together = [next_one for next_one, _ in zip(self._waiting, range(MOST_TOGETHER), strict=False)]
                results = [await _result(waiting, tx) for waiting in together]
        except Exception as error:
            for waiting in together or [self._waiting[0]]:
                self._fail(waiting, error)
            return
        for settle in results:
            settle()
        for waiting in together:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    def _fail(self, waiting: _Waiting, error: Exception) -> None:
        if not waiting.result.done():
            waiting.result.set_exception(error)
        if waiting in self._waiting:
            self._waiting.remove(waiting)


async def _result(waiting: _Waiting, tx: Transaction) -> Callable[[], None]:
    """Makes the change; returns what tells its caller, once all is stored."""
    try:
        result = await waiting.change(tx)
    except Exception as error:
        problem = error
        return lambda: None if waiting.result.done() else waiting.result.set_exception(problem)
    return lambda: None if waiting.result.done() else waiting.result.set_result(result)

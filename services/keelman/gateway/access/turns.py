"""Gives refusals their turns: however many strangers call, answers to them take a bounded share of a gateway's time."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

A_SECOND = 250
"""The refusals that are answered in a second."""
AT_ONCE = 25
"""The refusals that are answered without a pause after a time with few of them."""
MAX_WAITING = 2_500
"""The refusals that wait for their turns; of more the newest are answered at once, so that waiting has a bounded cost
in memory."""


class Turns:
    """The turns of refusals, in the order in which they came. Used in one loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = 0.0
        self._waiting: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    async def take(self) -> None:
        """Returns when a refusal may be answered. A refused client that does not wait gives its turn up."""
        if len(self._waiting) >= MAX_WAITING or (not self._waiting and self._is_due()):
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting[turn] = None
        self._await_next(loop)
        try:
            await turn
        finally:
            self._waiting.pop(turn, None)

    def _is_due(self) -> bool:
        """Takes a turn, if there is one now."""
        now = self._clock()
        if now < self._next:
            return False
        self._next = max(self._next, now - AT_ONCE / A_SECOND) + 1 / A_SECOND
        return True

    def _await_next(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is None and self._waiting:
            self._timer = loop.call_later(max(0.0, self._next - self._clock()), self._give, loop)

    def _give(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self._waiting and self._is_due():
            turn, _ = self._waiting.popitem(last=False)
            if not turn.done():  # its client may have gone just now
                turn.set_result(None)
        self._await_next(loop)

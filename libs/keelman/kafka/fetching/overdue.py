"""Notices an answer that is late: by the time that its broker was to wait, it may never come."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

OVERDUE_SECONDS, OVERDUE_AGAIN_SECONDS = 2.0, 1.0
"""An answer that is so late may never come: others are asked whether its broker still leads, and again so often."""


@contextlib.contextmanager
def overdue(loop: asyncio.AbstractEventLoop, seconds: float, late: Callable[[], None]) -> Iterator[None]:
    """Around a wait for an answer that is due in so many seconds: calls `late` again and again once it is overdue."""
    timers: list[asyncio.TimerHandle] = []

    def is_late() -> None:
        late()
        timers[:] = [loop.call_later(OVERDUE_AGAIN_SECONDS, is_late)]

    timers.append(loop.call_later(seconds + OVERDUE_SECONDS, is_late))
    try:
        yield
    finally:
        timers[0].cancel()

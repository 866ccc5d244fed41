"""Has the timers of one process fire together: to wake a process up costs more than what most of them then do.

A worker that has nothing to copy looks at some eight things about once a second each.
"""

from __future__ import annotations

import asyncio
import os
import time

SOON = 0.05
"""A tick that is nearer than this part of its interval is left out: a timer may fire a little early."""


async def tick(seconds: float) -> None:
    """Sleeps until the next multiple of `seconds`, by a clock that all of this process share: so long at most, but for
    the part that is left out. Each process has a clock of its own, so that many of one host do not wake together."""
    await asyncio.sleep(until_tick(seconds, time.monotonic() + _phase()))


def until_tick(seconds: float, now: float) -> float:
    """Seconds until the next tick after `now`."""
    left = seconds - now % seconds
    return left if left > SOON * seconds else left + seconds


def _phase() -> float:
    """Seconds, spread evenly over the processes of a host, also over those that were forked."""
    return os.getpid() * 0.618034 % 60.0

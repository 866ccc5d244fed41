"""Lets the timers of one process fire together: waking a process costs more than most timers' work.

A worker that has nothing to copy checks some eight things about once a second each.
"""

from __future__ import annotations

import asyncio
import os
import time

SOON = 0.05
"""A tick that is nearer than this part of its interval is skipped: a timer may fire a little early."""


async def tick(seconds: float) -> None:
    """Sleeps until the next multiple of `seconds`, by a clock that the whole process shares: `seconds` at most, plus
    the skipped part. Each process has a clock of its own, so that many on one host do not wake together."""
    await asyncio.sleep(until_tick(seconds, time.monotonic() + _phase()))


def until_tick(seconds: float, now: float) -> float:
    """Returns the seconds until the next tick after `now`."""
    left = seconds - now % seconds
    return left if left > SOON * seconds else left + seconds


def _phase() -> float:
    """Returns an offset in seconds, spread evenly over the processes of a host, also over forked ones."""
    return os.getpid() * 0.618034 % 60.0

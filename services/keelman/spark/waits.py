"""Waits for a condition of this service's own state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

LOOK_SECONDS = 0.02


async def settled(condition: Callable[[], bool], seconds: float) -> bool:
    """Returns True as soon as the condition holds; False when it does not within `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                if condition():
                    return True
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        return False

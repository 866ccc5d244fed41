"""Detects operations that take too long, repeatedly, without a timer of the loop for each time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Alarm:
    """An alarm, used in one loop. Its timer stays when the operation it was set for has ended, and is set anew when it
    fires too early."""

    def __init__(self, ring: Callable[[], object]) -> None:
        """`ring` is called in the loop once the time is over."""
        self._loop = asyncio.get_running_loop()
        self._ring = ring
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Rings in `seconds`, and not at an earlier set time."""
        self._due = due = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > due:
            self._start(due)

    def off(self) -> None:
        """Switches the alarm off."""
        self._due = None

    def close(self) -> None:
        """Cancels its timer."""
        self._due = None
        if self._timer is not None:
            self._timer.cancel()

    def _start(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        self._timer, due = None, self._due
        if due is None:
            return
        if due > self._loop.time():
            self._start(due)
        else:
            self._due = None
            self._ring()

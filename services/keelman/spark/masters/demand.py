"""Decides whether Spark is wanted: always, or for a standby only while it has workers. Pure but for the clock.

A standby serves its port without a Spark application, so that it costs the cluster nothing. Its Spark starts when the
first worker links, and ends when there has been neither a link, nor a lease, nor a live copy run for the idle time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class Demand:
    """Notified again and again of the number of users: workers with a link or a lease, and live copy runs.

    `begun` is set while Spark is wanted, `over` while it is not; one of them always is.
    """

    def __init__(self, idle_seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """`idle_seconds` is the time without users after which Spark is not wanted any more; None: it always is."""
        self._idle_seconds, self._clock = idle_seconds, clock
        self._idle_since: float | None = None
        self.begun, self.over = asyncio.Event(), asyncio.Event()
        (self.begun if idle_seconds is None else self.over).set()

    @property
    def is_wanted(self) -> bool:
        """Whether Spark is wanted now."""
        return self.begun.is_set()

    def note(self, users: int) -> None:
        """Takes the present number of users."""
        if self._idle_seconds is None:
            return
        if users:
            self._idle_since = None
            self.begun.set()
            self.over.clear()
        elif self.is_wanted:
            now = self._clock()
            self._idle_since = now if self._idle_since is None else self._idle_since
            if now - self._idle_since >= self._idle_seconds:
                self._idle_since = None
                self.begun.clear()
                self.over.set()

"""Paces a run that finds nothing to copy: it waits longer and longer, and after a while it may be parked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from keelman.connect.config.copying_keys import PARK_AFTER

SHORTEST_WAIT_SECONDS = 0.005
LONGEST_WAIT_SECONDS = 0.08
QUIET_SECONDS = 3.0
QUIET_WAIT_SECONDS = 0.25
WAKEFUL_SECONDS = 0.01


class Idle:
    """Only the run's thread uses it."""

    def __init__(self, park_after_seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """`park_after_seconds`: how long a run must have copied nothing before it may be parked; None is never."""
        self._park_after = park_after_seconds
        self._clock = clock
        self._since = clock()
        self._wait = SHORTEST_WAIT_SECONDS

    def copied(self) -> None:
        """There was something."""
        self._since = self._clock()
        self._wait = SHORTEST_WAIT_SECONDS

    def wait_seconds(self, read_seconds: float) -> float:
        """Returns the wait after an empty read that took this long: none if the read waited itself."""
        wait = self._wait
        longest = QUIET_WAIT_SECONDS if wait >= LONGEST_WAIT_SECONDS and self.quiet else LONGEST_WAIT_SECONDS
        self._wait = min(wait * 1.5, longest)
        return max(0.0, wait - read_seconds)

    @property
    def wakeful(self) -> bool:
        """Whether there was something just now, so that the next may come at any moment."""
        return self._wait < WAKEFUL_SECONDS

    @property
    def quiet(self) -> bool:
        """Whether there was nothing for some seconds."""
        return self._clock() - self._since >= QUIET_SECONDS

    @property
    def may_park(self) -> bool:
        """Whether there was nothing for long enough."""
        return self._park_after is not None and self._clock() - self._since >= self._park_after


def park_after_seconds(worker: Mapping[str, str], connector: Mapping[str, str]) -> float | None:
    """`keelman.park.after.ms` of the connector, else of the worker, else 10 s; None for -1. Raises ConfigValueError."""
    after: int = PARK_AFTER.among(connector, worker)
    return None if after < 0 else after / 1000

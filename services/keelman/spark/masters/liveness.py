"""Decides when a session is dead: slots wait and no executor answers, whatever state Spark reports. Pure but for the
clock."""

from __future__ import annotations

import time
from collections.abc import Callable

RESTARTED_SECONDS = 1.0
"""The time for which slots wait, while none runs, before a session on a restarted master is given up: the master has
forgotten its applications, and its workers end their executors."""
FIRST_SECONDS = 20.0
MOST_SECONDS = 300.0
"""The time that they wait otherwise, doubled by each session without an executor: the cluster may have no room."""


class Liveness:
    """Notified again and again of executors, jobs and the master's returns, in one session after the other."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._patience = FIRST_SECONDS
        self._since: float | None = None  # since when jobs have waited without any executor in this session
        self._silent: float | None = None  # since when they have waited without any slot that is attached
        self._returns = 0

    def begin(self, returns: int) -> None:
        """Begins with another session; `returns` counts how often the master has come back until now."""
        self._since, self._silent, self._returns = None, None, returns

    def note(self, *, executors: int, jobs: int, attached: int, returns: int) -> str:
        """Takes the numbers, `attached` that of slots that have called home; returns why the session is dead, empty
        while it may live."""
        now = self._clock()
        if attached or not jobs:
            self._silent = None
        elif self._silent is None:
            self._silent = now
        if self._silent is not None and returns != self._returns and now - self._silent >= RESTARTED_SECONDS:
            return "its master was away, and no slot is left"
        if executors:
            self._patience = FIRST_SECONDS
        if executors or not jobs:
            self._since = None
            return ""
        self._since = now if self._since is None else self._since
        waited = now - self._since
        if waited < self._patience:
            return ""
        self._patience = min(MOST_SECONDS, 2 * self._patience)
        return f"slots have waited for {waited:.0f} s and no executor answers"

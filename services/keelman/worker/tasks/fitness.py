"""Decides from the comings and goings of the link to the Spark service whether a worker takes tasks. Pure but for the
clock.

A worker without its link copies nothing: its tasks are other workers'. A Spark service that restarts is back in some
seconds, and moving its tasks to and fro would cost more than these; so the worker is patient with it. When a service
comes and goes again and again, the worker first waits to see that it stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from keelman.worker.intervals import LEASE_SECONDS

MOST_SECONDS = 60.0
FORGIVEN_SECONDS = 600.0


class Fitness:
    """Notified when the link comes and goes. Times are seconds of the monotonic clock."""

    def __init__(self, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`patience` is for how many seconds the link may be away before the tasks are given back."""
        self.fit = False
        self._patience = patience
        self._clock = clock
        self._came: float | None = None  # None while it is away
        self._went: float | None = None  # when it was last there for long enough to copy
        self._fit_since = 0.0
        self._given_back = 0  # times, with less than FORGIVEN_SECONDS between them

    def came(self) -> bool:
        """Takes note that the link is up; returns whether the worker takes tasks since now."""
        self._came = self._clock()
        return self.look()

    def went(self, since: float) -> None:
        """Takes note that the link is away, and silent since then."""
        if self._went is None or (self._came is not None and since - self._came >= LEASE_SECONDS):
            self._went = since
        self._came = None

    def look(self) -> bool:
        """Returns whether time has changed `fit`."""
        now, fit = self._clock(), self.fit
        if self._came is not None:
            self.fit = fit or now - self._came >= self._proof_seconds
        elif self._went is not None:
            self.fit = fit and now - self._went < self._patience
        if self.fit and not fit:
            self._fit_since = now
        elif fit and not self.fit:
            self._given_back = 1 if now - self._fit_since >= FORGIVEN_SECONDS else self._given_back + 1
        return fit != self.fit

    @property
    def _proof_seconds(self) -> float:
        """The time for which the link has to stay before the worker takes tasks: none the first two times."""
        return 0.0 if self._given_back < 2 else min(MOST_SECONDS, self._patience * 2.0 ** (self._given_back - 2))

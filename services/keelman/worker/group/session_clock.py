"""Decides by its heartbeats whether a member still has its place in the group. Pure but for the clock.

The group's coordinator gives a member's work to others once it has had no heartbeat of it for a session: not sooner
than a session after the last answered one was sent. A new coordinator counts again for all members. So a member without
an answer may let its copy runs continue for so long, and no longer: its coordinator may be away, or only its way there.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from keelman.worker.intervals import LEASE_SECONDS

CUT_SECONDS = 1.0  # seconds before the possible end of the session at which its work is cut
AGAIN_SECONDS = 0.2
LIVELY_SECONDS = 5.0
SOON_SECONDS = 0.1


class SessionClock:
    """Notified of each heartbeat. Times are seconds of the monotonic clock."""

    def __init__(self, *, session: float, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`session` and `interval` are seconds."""
        self._session = session
        self._interval = interval
        self._clock = clock
        self._patience = max(interval, session / 3)
        self._lease = max(session - LEASE_SECONDS, interval + self._patience)
        self._sent = self._answered = self._placed = float("-inf")
        self.failing = False

    def placed(self) -> None:
        """Takes note of a new place: the next round may follow soon."""
        self._placed = self._clock()

    def answered(self, sent: float) -> None:
        """Takes note of an answer, as to a member, to a message sent at that time."""
        self._sent, self._answered, self.failing = sent, self._clock(), False

    def unanswered(self) -> None:
        """Takes note that the last heartbeat was not answered."""
        self.failing = True

    @property
    def answered_at(self) -> float:
        """The time of the coordinator's last answer as to a member."""
        return self._answered

    @property
    def fresh(self) -> bool:
        """Whether the last heartbeat was answered, a moment ago."""
        return not (self.failing or self.over) and self._clock() - self._answered < self._interval + self._patience

    @property
    def lasts(self) -> bool:
        """Whether a lease that is renewed now lapses before the session may be over."""
        return self._clock() - self._sent < self._lease

    @property
    def over(self) -> bool:
        """Whether the session may be over before all work has ended."""
        return self._clock() - self._sent >= max(self._session - CUT_SECONDS, self._lease)

    @property
    def pause_seconds(self) -> float:
        """The time until the next heartbeat: it shows a new round, and after one there often comes another."""
        if self.failing:
            return min(AGAIN_SECONDS, self._interval)
        lively = self._clock() - self._placed < LIVELY_SECONDS
        return min(SOON_SECONDS, self._interval) if lively else self._interval

    @property
    def patience_seconds(self) -> float:
        """The time that an answer may take: not longer than until the session may be over."""
        left = max(self._session - CUT_SECONDS, self._lease) - (self._clock() - self._sent)
        return max(AGAIN_SECONDS, min(self._patience, left))

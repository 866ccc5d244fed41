"""Times a sink's commits."""

from __future__ import annotations

import time
from collections.abc import Callable


class CommitClock:
    """Tells when the next commit of one copy run is due; its thread alone uses it."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """A commit is due each so many seconds."""
        self._seconds, self._clock = seconds, clock
        self.restart()

    def restart(self) -> None:
        """A commit begins now."""
        self._due_at = self._clock() + self._seconds

    @property
    def left_seconds(self) -> float:
        """The time until the next commit; 0 once it is due."""
        return max(0.0, self._due_at - self._clock())

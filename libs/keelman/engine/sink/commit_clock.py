"""Times a sink's commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from keelman.connect.config.copying_keys import COMMIT_INTERVAL
from keelman.engine.source.boundary import DEFAULT_INTERVAL_MS, commit_interval_seconds

FLUSH_KEY = "offset.flush.interval.ms"


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


def flush_seconds(worker: Mapping[str, str], connector: Mapping[str, str]) -> float:
    """The time between two commits of a task of Kafka Connect's: the worker's `offset.flush.interval.ms`, unless
    `keelman.commit.interval.ms` is set. Raises ConfigValueError."""
    if any(config.get(COMMIT_INTERVAL.name, "").strip() for config in (connector, worker)):
        return commit_interval_seconds(worker, connector)
    return int(worker.get(FLUSH_KEY, "").strip() or DEFAULT_INTERVAL_MS) / 1000

"""Has a worker notice that its Spark service has been out of its reach for long, for its agent to report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from keelman.model.workload import SPARK_UNREACHABLE
from keelman.worker.intervals import SPARK_AWAY_SECONDS
from keelman.workers.reach_note import ReachNote

START_SECONDS = 60.0
"""The time that a service without a first answer may take to start: on a busy machine it takes half of that."""


class SparkReach:
    """Makes the note from the link's state. Pure but for the clock."""

    def __init__(self, why_away: Callable[[], str], clock: Callable[[], float] = time.monotonic) -> None:
        """`why_away` returns why the worker can copy nothing, empty while it can."""
        self._why_away, self._clock = why_away, clock
        self._since = clock()
        self._patience = START_SECONDS
        self._why = ""

    async def problem(self) -> ReachNote | None:
        """Returns why it does not answer; None while it does, or has not been silent for long."""
        why_away = self._why_away()
        if not why_away:
            self._since, self._patience, self._why = self._clock(), SPARK_AWAY_SECONDS, ""
        elif self._clock() - self._since >= self._patience:
            self._why = self._why or why_away  # it must not change with each try
            return ReachNote(os.getpid(), SPARK_UNREACHABLE, self._why)
        return None

"""Decides from the executors that a Spark has whether it can run all slots. Pure but for the clock."""

from __future__ import annotations

import time
from collections.abc import Callable

from keelman.spark.slots.shortage import Shortage, no_executors, waiting_for_cores

WITHOUT_SECONDS = 10.0
"""The time that jobs may wait without any executor: one takes some seconds to start."""
IDLE_SECONDS = 5.0
"""The time without jobs after which no executor is wanted: jobs of a session that ended begin again in the next one."""
SHORT_SECONDS = 15.0
"""The time that jobs may wait for cores, since the last executor came: more of them may still be starting."""


class ExecutorWatch:
    """Notified again and again of the numbers of executors and jobs. A job needs one core."""

    def __init__(self, master: str, cores: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`master` is its name for people, `cores` those of each executor."""
        self._master, self._cores, self._clock = master, cores, clock
        self._without: float | None = None  # since when jobs have waited without any executor
        self._idle: float | None = None  # since when there have been neither executors nor jobs
        self._short: float | None = None  # since when jobs have waited for cores, and no executor has come
        self._executors = self._jobs = 0
        self._noted = False

    def note(self, *, executors: int, jobs: int) -> bool:
        """Takes the numbers; returns whether slots have begun to wait without any executor for too long just now."""
        now, has_grown = self._clock(), executors > self._executors
        self._executors, self._jobs = executors, jobs
        self._idle = None if executors or jobs else now if self._idle is None else self._idle
        if executors or (self._idle is not None and now - self._idle >= IDLE_SECONDS):
            self._without, self._noted = None, False
        elif jobs and self._without is None:
            self._without = now
        if jobs <= executors * self._cores:
            self._short = None
        elif self._short is None or has_grown:
            self._short = now
        shortage = self.shortage
        is_new = shortage is not None and shortage.nothing_runs and not self._noted
        self._noted |= is_new
        return is_new

    @property
    def cores(self) -> tuple[int, int]:
        """The cores that executors have, and those that jobs need."""
        return self._executors * self._cores, self._jobs

    @property
    def shortage(self) -> Shortage | None:
        """Why slots wait; None while none does, or not for long."""
        now = self._clock()
        if self._without is not None:
            waits = now - self._without >= WITHOUT_SECONDS
            return no_executors(self._master, self._jobs) if waits else None
        if self._short is not None and now - self._short >= SHORT_SECONDS:
            return waiting_for_cores(self._master, self._executors * self._cores, self._jobs)
        return None

"""Decides from the executors that a Spark has whether it can run slots. Pure but for the clock."""

from __future__ import annotations

import time
from collections.abc import Callable

WITHOUT_SECONDS = 10.0
"""The time that jobs may wait without any executor: one takes some seconds to start."""


class ExecutorWatch:
    """Notified again and again of the numbers of executors and jobs."""

    def __init__(self, master: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`master` is its name for people."""
        self._master, self._clock = master, clock
        self._since: float | None = None
        self._noted = False

    def note(self, *, executors: int, jobs: int) -> bool:
        """Takes the numbers; returns whether a problem has begun just now."""
        if executors or not jobs:
            self._since, self._noted = None, False
        elif self._since is None:
            self._since = self._clock()
        is_new = bool(self.problem) and not self._noted
        self._noted |= is_new
        return is_new

    @property
    def problem(self) -> str:
        """Why no slot can run, for people; empty while one can, or no job waits."""
        if self._since is None or self._clock() - self._since < WITHOUT_SECONDS:
            return ""
        return (
            f"{self._master} gives it no executor: start workers of that cluster, or give them free cores and memory "
            "for one"
        )

"""Decides which tasks copy so much that each gets a slot of its own. No I/O and no clock; times come with the calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

BUSY_SECONDS = 3.0
CALM_SECONDS = 60.0

Task: TypeAlias = tuple[str, str, int]  # worker cluster, connector, number


@dataclass(slots=True)
class Rate:
    """A task's recent activity, times in seconds."""

    busy_since: float | None = None
    last_busy: float = 0.0
    is_busy: bool = False


class Busy:
    """Remembers tasks, not copy runs: so the next copy run of a busy task is placed as one."""

    def __init__(self, bytes_per_second: float) -> None:
        """A task is busy once it has copied that much for three seconds, and calm after a minute of less. 0: never."""
        self._most = bytes_per_second
        self._rates: dict[Task, Rate] = {}

    def note(self, task: Task, bytes_per_second: float, now: float) -> None:
        """Takes a task's present rate. Called each second or so."""
        if self._most <= 0:
            return
        if bytes_per_second < self._most:
            task_rate = self._rates.get(task)
            if task_rate is not None:
                task_rate.busy_since = None
            return
        rate = self._rates.setdefault(task, Rate())
        rate.busy_since = now if rate.busy_since is None else rate.busy_since
        rate.last_busy = now
        rate.is_busy = rate.is_busy or now - rate.busy_since >= BUSY_SECONDS

    def has(self, task: Task, now: float) -> bool:
        """Returns whether the task is busy."""
        rate = self._rates.get(task)
        return rate is not None and rate.is_busy and now - rate.last_busy < CALM_SECONDS

    def forget(self, now: float) -> None:
        """Forgets the tasks that have been calm."""
        for task in [t for t, rate in self._rates.items() if now - rate.last_busy >= CALM_SECONDS]:
            del self._rates[task]

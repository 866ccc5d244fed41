"""Processor time of a process and of all that it started."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import psutil


@dataclass
class ProcessorTime:
    """Counts processor seconds of this process, of the processes below it, and of those that these have waited for.

    A process that outlives its parent is not counted from then on.
    """

    _counted: dict[tuple[int, float], float] = field(default_factory=dict)

    def since_last(self) -> float:
        """Seconds since the last call; since its start for a process that is new."""
        now = _seconds_by_process()
        used = sum(now.values()) - sum(self._counted.values())
        self._counted = now
        return max(used, 0.0)


def _seconds_by_process() -> dict[tuple[int, float], float]:
    own = psutil.Process(os.getpid())
    seconds: dict[tuple[int, float], float] = {}
    for process in (own, *own.children(recursive=True)):
        try:
            with process.oneshot():
                seconds[process.pid, process.create_time()] = sum(process.cpu_times()[:4])
        except psutil.Error:  # it ended meanwhile, and counts to the time of its parent
            continue
    return seconds

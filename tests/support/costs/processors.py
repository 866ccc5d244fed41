"""Processor time of a process and of all its descendants."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import psutil


@dataclass
class ProcessorTime:
    """Counts processor seconds of this process, of its descendants, and of ended children.

    A process that outlives its parent is not counted from then on.
    """

    _counted: dict[tuple[int, float], float] = field(default_factory=dict)

    def since_last(self) -> float:
        """Seconds since the last call; since its start for a new process."""
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
        except psutil.Error:  # it ended meanwhile, and its parent's time includes it
            continue
    return seconds

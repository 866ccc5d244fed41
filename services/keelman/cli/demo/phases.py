"""Measures named phases, which may overlap."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Phase:
    """One phase; begin and end in seconds since the job began. `end` is None while it lasts."""

    name: str
    begin: float
    end: float | None = None


class Phases:
    """The phases of one job, in the order of their beginnings."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._zero = clock()
        self.all: list[Phase] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measures a block; an error in the block leaves the phase open."""
        self.begin(name)
        yield
        self.end(name)

    def begin(self, name: str) -> None:
        """Begins a phase, unless it has begun before."""
        if all(p.name != name for p in self.all):
            self.all.append(Phase(name, self._now()))

    def end(self, name: str) -> None:
        """Ends a phase, unless it has ended before."""
        for phase in self.all:
            if phase.name == name and phase.end is None:
                phase.end = self._now()

    def _now(self) -> float:
        return self._clock() - self._zero

    def lines(self) -> list[str]:
        """Returns a table for people: each phase with its length, and its position as a bar on one scale."""
        total = max(self._now(), 1e-9)
        width = 30
        lines = []
        for phase in self.all:
            end = total if phase.end is None else phase.end
            first = round(phase.begin / total * width)
            bar = " " * first + "#" * max(1, round((end - phase.begin) / total * width))
            lines.append(f"  {phase.name:<11}{end - phase.begin:7.1f} s  |{bar[:width]:<{width}}|")
        return [*lines, f"  {'in all':<11}{total:7.1f} s"]

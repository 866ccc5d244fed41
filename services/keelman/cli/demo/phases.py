"""Measures named stretches of time, which may overlap."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Phase:
    """One stretch; both ends in seconds since the job began. `end` is None while it lasts."""

    name: str
    begin: float
    end: float | None = None


class Phases:
    """The stretches of one job, in the order of their beginnings."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._zero = clock()
        self.all: list[Phase] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measures a block; one that is left by an error stays open."""
        self.begin(name)
        yield
        self.end(name)

    def begin(self, name: str) -> None:
        """A stretch begins; once begun, its beginning stands."""
        if all(p.name != name for p in self.all):
            self.all.append(Phase(name, self._now()))

    def end(self, name: str) -> None:
        """A stretch ends; once ended, its end stands."""
        for phase in self.all:
            if phase.name == name and phase.end is None:
                phase.end = self._now()

    def _now(self) -> float:
        return self._clock() - self._zero

    def lines(self) -> list[str]:
        """A table for people: each stretch with its length and when it began, as a bar on one scale."""
        total = max(self._now(), 1e-9)
        width = 30
        made = []
        for phase in self.all:
            end = total if phase.end is None else phase.end
            first = round(phase.begin / total * width)
            bar = " " * first + "#" * max(1, round((end - phase.begin) / total * width))
            made.append(f"  {phase.name:<11}{end - phase.begin:7.1f} s  |{bar[:width]:<{width}}|")
        return [*made, f"  {'in all':<11}{total:7.1f} s"]

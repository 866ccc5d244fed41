"""Computes the delay before the next try: exponential with jitter, pure but for its random source."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Delays in seconds: random between half and whole of first, first*2, ... up to most. `reset()` after a success."""

    first: float = 0.2
    most: float = 10.0
    source: random.Random = field(default_factory=lambda: random.Random(random.getrandbits(64)))
    """Depends on the seed of `random` if that is set."""
    _tries: int = 0
    _failures: set[str] = field(default_factory=set)

    @property
    def is_first(self) -> bool:
        """True until the first delay since the beginning, or since a success."""
        return self._tries == 0

    def is_new(self, failure: str) -> bool:
        """Returns whether a failure is new since the beginning, or since a success: during an outage each failure is
        logged once."""
        seen = failure in self._failures
        self._failures.add(failure)
        return not seen

    def next(self) -> float:
        """Returns the next delay in seconds."""
        whole: float = min(self.most, self.first * 2**self._tries)
        self._tries = min(self._tries + 1, 32)
        return whole * (0.5 + self.source.random() / 2)

    def reset(self) -> None:
        """Begins again with the first delay."""
        self._tries = 0
        self._failures.clear()

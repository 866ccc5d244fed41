"""How much of the processors one slot may use: what it used too much is rested off by its loops."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

BURST_SECONDS = 0.1
MOST_REST_SECONDS = 0.5


class CpuShare:
    """One for each slot process. Thread-safe: the slot's event loop sets the bound, every task loop asks when to rest.

    A debt of processor seconds grows with what the process uses and shrinks with time; all loops rest while there is
    one, so those that use most give up most.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, used: Callable[[], float] = time.process_time
    ) -> None:
        """`used` gives the processor seconds of this process so far, of all its threads."""
        self._clock, self._used = clock, used
        self._lock = threading.Lock()
        self._cpus = 0.0
        self._debt = 0.0
        self._seen = (clock(), used())

    def bound(self, cpus: float) -> None:
        """Use no more than this many processors from now on; 0 is without bound."""
        with self._lock:
            if self._cpus == 0.0:
                self._debt, self._seen = 0.0, (self._clock(), self._used())
            self._cpus = cpus

    def rest(self) -> float:
        """Seconds that a loop should rest now: 0 while the process keeps to its share, half a second at most."""
        if self._cpus == 0.0:
            return 0.0
        with self._lock:
            if self._cpus == 0.0:
                return 0.0
            (then, before), self._seen = self._seen, (self._clock(), self._used())
            now, used = self._seen
            # An idle process saves up a little, so that a short burst is not slowed.
            self._debt = max(-BURST_SECONDS, self._debt + (used - before) - (now - then) * self._cpus)
            return min(MOST_REST_SECONDS, max(0.0, self._debt / self._cpus))

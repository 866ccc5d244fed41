"""Keeps the garbage collector from looking again and again at lasting objects: with 10,000 tasks it would hold up the
loop for a second each time."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Mapping

LEAST = 1000
WHOLE_SECONDS = 86_400.0


class Heap:
    """The heap of this process; `watched` puts it into force.

    Objects that outlive a full collection are set aside, so that the next one looks at newer objects alone. Those that
    end in cycles, as tasks do, stay until all are looked at: when a quarter of the tasks have ended, and once a day.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ended = 0
        self._since = clock()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Is in force for the block."""
        gc.callbacks.append(self._collected)
        try:
            yield
        finally:
            gc.callbacks.remove(self._collected)
            gc.unfreeze()

    def ended(self, tasks: int) -> None:
        """Takes note that a task has ended; `tasks` are left."""
        self._ended += 1
        self.look(tasks)

    def look(self, tasks: int) -> None:
        """Collects everything when it is due; called now and then: where no task ever ends, other objects end in cycles
        too."""
        if self._ended >= max(LEAST, tasks // 4) or self._clock() - self._since >= WHOLE_SECONDS:
            self._ended, self._since = 0, self._clock()
            gc.unfreeze()
            gc.collect()

    @staticmethod
    def _collected(phase: str, info: Mapping[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            gc.freeze()

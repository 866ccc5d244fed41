"""Decides which of several Spark services a worker links to: the drivers of a Spark cluster. Pure but for the clock.

A worker tries them in the order of its setting, stays with the first that answers while that link holds, and tries the
others at once when it breaks. No election is needed: two drivers that both have workers are correct, only dearer.

A driver that answers and has no Spark is left as well, but not soon. Its master mostly refuses the other drivers too,
and each change of the driver costs the cluster another application. Yet it may be the driver's host that cannot reach
the master, has no memory for a virtual machine, or no Java: then the other driver serves. So the worker leaves it after
30 s without Spark, in which nothing of its was copied, and returns in the same way; as long as none has Spark, it stays
twice as long each time, 8 minutes at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from keelman.model.errors import InvalidArgument
from keelman.rpc.channels import addresses

FIRST_PATIENCE, MOST_PATIENCE = 30.0, 480.0
"""Seconds that a driver may be without Spark before another is tried."""
FIRST_CONNECT, MOST_CONNECT = 1.0, 5.0
"""Seconds that a connection may take while there are others to try; a busy host takes longer, so they grow."""


class Drivers:
    """The addresses of one worker's Spark services, one of which is the `present`."""

    def __init__(self, text: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`text` has addresses with commas between. Raises InvalidArgument for an empty address among them, and one
        that is there twice."""
        self._addresses, self._clock = addresses(text), clock
        if not all(self._addresses) or len(set(self._addresses)) < len(self._addresses):
            legal = "host:port, or several different ones with commas between"
            raise InvalidArgument.of("worker.spark_address", text, legal)
        self._at = self._failures = 0
        self._patience = FIRST_PATIENCE
        self._without: float | None = None  # since when the present one has no Spark

    @property
    def present(self) -> str:
        """The address to link to now."""
        return self._addresses[self._at]

    @property
    def are_several(self) -> bool:
        """Whether there are others than the present one."""
        return len(self._addresses) > 1

    @property
    def connect_seconds(self) -> float | None:
        """How long a connection to the present one may take; None for as long as it takes."""
        rounds = min(self._failures // len(self._addresses), 8)
        return min(MOST_CONNECT, FIRST_CONNECT * 2.0**rounds) if self.are_several else None

    @property
    def is_without_spark(self) -> bool:
        """Whether the present one has been without Spark for so long that another is tried."""
        return self.are_several and self._without is not None and self._clock() - self._without >= self._patience

    def note_spark(self, there: bool) -> None:
        """Takes note whether the present one has Spark."""
        if there:
            self._without, self._patience = None, FIRST_PATIENCE
        elif self._without is None:
            self._without = self._clock()

    def linked(self) -> None:
        """Takes note that the present one answers."""
        self._failures = 0

    def failed(self) -> bool:
        """Takes note that the present one did not answer, or its link broke, and goes on to the next; returns whether
        that is worth a try at once: all others have not been tried since."""
        if self.is_without_spark:
            self._patience = min(MOST_PATIENCE, 2 * self._patience)
        self._without = None
        self._failures += 1
        self._at = (self._at + 1) % len(self._addresses)
        return self._failures % len(self._addresses) != 0

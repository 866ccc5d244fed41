"""Lets the workers of a node start a few at a time: a start takes a processor for seconds, and running workloads would
starve beside a hundred of them, brokers first. Pure: the clock comes in as an argument."""

from __future__ import annotations

from collections.abc import Callable

TURN_SECONDS = 30.0
"""Seconds after which a worker that is not ready no longer keeps others waiting."""


class StartTurns:
    """The workers that may start now. For one thread; times are of the monotonic clock, in seconds."""

    def __init__(self, most: int) -> None:
        """`most` may be starting at once."""
        self._most = most
        self._since: dict[str, float] = {}
        self._waiting: dict[str, Callable[[], None]] = {}

    def take(self, name: str, now: float, wake: Callable[[], None]) -> float | None:
        """Returns None where this worker may start now, in the order of the first calls; else the latest time of its
        next call. Calls `wake` when it is its turn earlier than that."""
        self._since = {name: since for name, since in self._since.items() if now - since < TURN_SECONDS}
        self._waiting.setdefault(name, wake)
        if name not in self._first():
            return min(self._since.values(), default=now) + TURN_SECONDS
        del self._waiting[name]
        self._since[name] = now
        return None

    def give_back(self, name: str) -> None:
        """Takes note that this worker is ready, or is not starting any more: wakes the next."""
        if self._since.pop(name, None) is not None or self._waiting.pop(name, None) is not None:
            for waiting in self._first():
                self._waiting[waiting]()

    def _first(self) -> list[str]:
        return list(self._waiting)[: max(0, self._most - len(self._since))]

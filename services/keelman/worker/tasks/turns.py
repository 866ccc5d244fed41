"""How many copy runs of a worker wait for their slots at a time: the tasks behind them wait here, at no cost.

A Spark service looks at all that waits there whenever a place is free, and what a lost link leaves behind has to be
cleared up task by task: with thousands of tasks that begin at once neither would ever be done.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable

MOST = 100


class Turns:
    """Of one worker. Tasks of a kind (the folder of their plugin, empty for our own connectors) wait for each other
    alone: other kinds have slots of their own."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._under_way: dict[str, set[object]] = defaultdict(set)
        self._waiting: dict[str, deque[tuple[object, Callable[[], None]]]] = defaultdict(deque)

    def take(self, kind: str, who: object, called: Callable[[], None]) -> bool:
        """Whether it is this one's turn; `called` once it is, where it is not yet. Asked again it keeps its place."""
        mine, waiting = self._under_way[kind], self._waiting[kind]
        if who in mine:
            return True
        if len(mine) < self._most and not waiting:
            mine.add(who)
            return True
        if all(other != who for other, _ in waiting):
            waiting.append((who, called))
        return False

    def has(self, who: object) -> bool:
        """Whether this one has its turn."""
        return any(who in mine for mine in self._under_way.values())

    def give(self, who: object) -> None:
        """Its copy run has a slot, or is wanted no more: the next one's turn."""
        for kind, mine in self._under_way.items():
            waiting = self._waiting[kind]
            if who in mine:
                mine.discard(who)
            elif any(other == who for other, _ in waiting):
                self._waiting[kind] = waiting = deque(pair for pair in waiting if pair[0] != who)
            while waiting and len(mine) < self._most:
                following, called = waiting.popleft()
                mine.add(following)
                called()

"""How many copy runs of a worker wait for their slots at a time: the tasks behind them wait here, at no cost.

A Spark service looks at all that waits there whenever a place is free, and what a lost link leaves behind has to be
cleared up task by task: with thousands of tasks that begin at once neither would ever be done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

MOST = 100


class Turns:
    """Of one worker. Tasks of a kind (the folder of their plugin, empty for our own connectors) wait for each other
    alone: other kinds have slots of their own."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._under_way: dict[str, set[object]] = defaultdict(set)
        self._waiting: dict[str, dict[object, Callable[[], None]]] = defaultdict(dict)
        self._kinds: dict[object, str] = {}  # of those under way and those that wait

    def take(self, kind: str, who: object, called: Callable[[], None]) -> bool:
        """Whether it is this one's turn; `called` once it is, where it is not yet. Asked again it keeps its place,
        unless its kind is another by now."""
        if self._kinds.get(who, kind) != kind:
            self.give(who)
        self._kinds[who] = kind
        mine, waiting = self._under_way[kind], self._waiting[kind]
        if who not in mine and len(mine) < self._most and not waiting:
            mine.add(who)
        if who in mine:
            return True
        waiting.setdefault(who, called)
        return False

    def has(self, who: object) -> bool:
        """Whether this one has its turn."""
        kind = self._kinds.get(who)
        return kind is not None and who in self._under_way[kind]

    def give(self, who: object) -> None:
        """Its copy run has a slot, or is wanted no more: the next one's turn."""
        kind = self._kinds.pop(who, None)
        if kind is None:
            return
        mine, waiting = self._under_way[kind], self._waiting[kind]
        mine.discard(who)
        waiting.pop(who, None)
        while waiting and len(mine) < self._most:
            following = next(iter(waiting))
            mine.add(following)
            waiting.pop(following)()

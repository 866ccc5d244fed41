"""Limits how many copy runs of a worker wait for slots at a time: further tasks wait here, at no cost.

A Spark service looks at all waiting copy runs whenever a place is free, and the leftovers of a lost link have to be
cleared up task by task: with thousands of tasks that begin at once neither would ever be done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

MOST = 100


class StartQueue:
    """The queue of one worker. Tasks of a kind (the folder of their plugin, empty for our own connectors) wait for each
    other alone: other kinds have slots of their own."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._under_way: dict[str, set[object]] = defaultdict(set)
        self._waiting: dict[str, dict[object, Callable[[], None]]] = defaultdict(dict)
        self._ahead: dict[str, dict[object, Callable[[], None]]] = defaultdict(dict)  # of those whose turn comes first
        self._kinds: dict[object, str] = {}  # of those under way and those that wait

    def take(self, kind: str, who: object, called: Callable[[], None], *, ahead: bool = False) -> bool:
        """Returns whether it is this task's turn; if not yet, calls `called` once it is. A repeated call keeps the
        task's place, unless its kind has changed. A task that is `ahead` comes before all that are not."""
        if self._kinds.get(who, kind) != kind:
            self.give(who)
        self._kinds[who] = kind
        mine, waiting, first = self._under_way[kind], self._waiting[kind], self._ahead[kind]
        if who not in mine and len(mine) < self._most and not (waiting or first):
            mine.add(who)
        if who in mine:
            return True
        if who not in waiting:
            (first if ahead else waiting).setdefault(who, called)
        return False

    def has(self, who: object) -> bool:
        """Returns whether this one has its turn."""
        kind = self._kinds.get(who)
        return kind is not None and who in self._under_way[kind]

    def give(self, who: object) -> None:
        """Passes the turn to the next task: this one's copy run has a slot, or is no longer wanted."""
        kind = self._kinds.pop(who, None)
        if kind is None:
            return
        mine, waiting, first = self._under_way[kind], self._waiting[kind], self._ahead[kind]
        mine.discard(who)
        waiting.pop(who, None)
        first.pop(who, None)
        while (queue := first or waiting) and len(mine) < self._most:
            following = next(iter(queue))
            mine.add(following)
            queue.pop(following)()

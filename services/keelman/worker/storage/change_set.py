"""Collects the connectors that have changed, so that the worker looks at those alone among ten thousand."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable

from keelman.worker.intervals import LOOK_AGAIN_SECONDS

MOST = 200  # so many begin a copy run each within a tenth of a second or two
CALM = 5  # times as many may be looked at without a reported change: most of them are unchanged


class ChangeSet:
    """The connectors that one reader has still to look at: all of them first, and again now and then.

    In pieces, so that other work continues meanwhile. Added names come first, then the rest of all; after a round of
    all the next one is spread over its time. A reader that cannot finish a look adds its names again.
    """

    def __init__(
        self,
        everyone: Callable[[], Iterable[str]],
        *,
        all_seconds: float = LOOK_AGAIN_SECONDS,
        most: int = MOST,
        on_more: Callable[[], None] = lambda: None,
    ) -> None:
        """`everyone` returns the names of all; `most` are taken at a time; `on_more` is called as some are added."""
        self._everyone = everyone
        self._all_seconds = all_seconds
        self._most = most
        self._on_more = on_more
        self._added: dict[str, None] = {}
        self._rest: deque[str] = deque()  # of the round
        self._size = 0
        self._begun = -math.inf
        self._hurried = False  # the round, which then is not spread over its time
        self._all_added = True

    def add(self, names: Iterable[str]) -> None:
        """Adds connectors that have changed."""
        self._added.update(dict.fromkeys(names))
        self._on_more()

    def add_all(self) -> None:
        """Adds every connector: a change may concern them all."""
        self._all_added = True
        self._on_more()

    def begin_anew(self) -> None:
        """Returns to the initial state: added names are forgotten, and all have to be looked at."""
        self._added.clear()
        self._rest.clear()
        self._hurried, self._all_added = False, True

    @property
    def more(self) -> bool:
        """Whether there is more to look at now."""
        return bool(self._added) or self._all_added or (self._hurried and bool(self._rest))

    def take(self) -> set[str]:
        """Returns the names to look at now; some of them may be of deleted connectors."""
        now = time.monotonic()
        taken = set(list(self._added)[: self._most])
        for name in taken:
            del self._added[name]
        over = not self._rest and now - self._begun >= self._all_seconds
        if over or (self._all_added and not (self._hurried and self._rest)):
            self._rest = deque(self._everyone())
            self._size, self._begun = len(self._rest), now
            self._hurried, self._all_added = self._all_added, False
        due = self._begun + self._all_seconds
        left = 0.0 if self._hurried or now >= due else self._size * (due - now) / self._all_seconds
        most = self._most if self._hurried else CALM * self._most
        while len(self._rest) > left and len(taken) < most:
            taken.add(self._rest.popleft())
        return taken

"""Which connectors something has changed about: of ten thousand the worker looks at those alone."""

from __future__ import annotations

import time
from collections.abc import Iterable

ALL_SECONDS = 60.0


class News:
    """What one who looks at connectors has still to look at: all of them first, and again now and then.

    Whoever cannot finish a look tells again what it has taken.
    """

    def __init__(self, *, all_seconds: float = ALL_SECONDS) -> None:
        self._names: set[str] = set()
        self._all_seconds = all_seconds
        self._all_at = 0.0

    def tell(self, names: Iterable[str]) -> None:
        """Something has changed about these connectors."""
        self._names.update(names)

    def tell_all(self) -> None:
        """Something has changed that may concern every connector."""
        self._all_at = 0.0

    def take(self) -> set[str] | None:
        """The names told since the last call; None for all there are."""
        names, self._names = self._names, set()
        now = time.monotonic()
        if now < self._all_at:
            return names
        self._all_at = now + self._all_seconds
        return None

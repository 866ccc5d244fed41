"""Wakes waiting tasks at a change; does not tell them the change."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Hashable, Iterable, Iterator

EVERYTHING = ("everything",)


class Hub:
    """Commits wake it; planner, sessions, relay and watches wait on it, each for its own subjects."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, dict[asyncio.Event, None]] = {}
        """In the order of subscription: the order of a set of events would differ at each start."""

    def wake(self, subjects: Iterable[Hashable] = ()) -> None:
        """Wakes the subscribers of these subjects, and the subscribers of everything."""
        for subject in (EVERYTHING, *subjects):
            for event in self._waiting.get(subject, ()):
                event.set()

    @contextlib.contextmanager
    def subscribe(self, *subjects: Hashable) -> Iterator[asyncio.Event]:
        """Yields an event that is set at each change of these subjects, or of anything; its user clears it before it
        looks."""
        event = asyncio.Event()
        for subject in subjects or (EVERYTHING,):
            self._waiting.setdefault(subject, {})[event] = None
        try:
            yield event
        finally:
            for subject in subjects or (EVERYTHING,):
                self._waiting[subject].pop(event, None)
                if not self._waiting[subject]:
                    del self._waiting[subject]

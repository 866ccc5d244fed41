"""Wakes whoever waits for a change; never says what changed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator


class Hub:
    """Commits wake it; planner, sessions, relay and watches wait on it."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()

    def wake(self) -> None:
        """Wakes every subscriber."""
        for event in self._waiting:
            event.set()

    @contextlib.contextmanager
    def subscribe(self) -> Iterator[asyncio.Event]:
        """An event that is set at each change; its user clears it before it looks."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            yield event
        finally:
            self._waiting.discard(event)

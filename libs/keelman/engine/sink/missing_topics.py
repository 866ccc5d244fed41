"""Finds the missing topics that a sink waits for, so that people need not read its log to learn why it copies
nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from keelman.engine.sink.consumer.subscription import Subscription
from keelman.engine.sink.positions.positions import Positions
from keelman.engine.sink.positions.source_topics import SourceTopics

LOOK_SECONDS = 5.0
MAX_NAMES = 5
"""The most missing topics named in the text for people."""


class MissingTopics:
    """Finds the missing topics of one copy run, whose thread alone uses it. Queries brokers only while there is a
    reason to think that a topic is missing: an error of the consumer, or an assignment without partitions."""

    def __init__(
        self,
        subscription: Subscription,
        positions: Positions,
        topics: SourceTopics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._subscription, self._positions, self._topics, self._clock = subscription, positions, topics, clock
        self._suspected: set[str] = set()
        self._missing: list[str] = []
        self._looked_at: float | None = None

    def suspect(self, topic: str) -> None:
        """Notes the consumer's report that this topic cannot be read."""
        self._suspected.add(topic)

    def waits_for(self) -> str:
        """Returns one line for people; empty while no topic is missing."""
        if self._subscription.pattern:
            topics = self._subscription.topics
            return "" if topics else f"waits for a topic that matches {self._subscription.pattern}"
        if self._positions.assigned and not self._positions:
            self._suspected.update(self._subscription.topics)
        now = self._clock()
        if self._suspected and (self._looked_at is None or now - self._looked_at >= LOOK_SECONDS):
            self._looked_at = now
            absent = self._topics.absent(self._suspected)
            if absent is not None:  # else query again: the consumer may not report it twice
                self._suspected = absent
                self._missing = [topic for topic in self._subscription.topics if topic in absent]
        return _waits_for(self._missing)


def _waits_for(missing: Sequence[str]) -> str:
    if not missing:
        return ""
    more = len(missing) - MAX_NAMES
    named = ", ".join(missing[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
    return f"waits for the topic{'s' if len(missing) > 1 else ''} {named}"

"""Keeps the partitions of a task that are set aside while others are copied: their target does not take them, or they
may not be read."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from keelman.connect.records import TopicPartition
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger

FIRST_SECONDS, MOST_SECONDS = 1.0, 60.0
"""The pause before the first new try, twice as long before each next one; the longest pause."""

_log = get_logger()


@dataclass(slots=True)
class _Aside:
    partitions: set[TopicPartition] = field(default_factory=set)
    why: str = ""
    backoff: Backoff = field(default_factory=lambda: Backoff(FIRST_SECONDS, MOST_SECONDS))
    until: float = math.inf


class TopicsAside:
    """The partitions of one task that are set aside, by their topics; the thread of its copy run alone uses it.

    A topic whose pause is over is being tried: either its partitions are put back here, or they are taken off."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._topics: dict[str, _Aside] = {}

    def __bool__(self) -> bool:
        return bool(self._topics)

    def put(self, partitions: Collection[TopicPartition], reason: str) -> None:
        """Sets these partitions of one topic aside, for this reason."""
        topic = next(iter(partitions)).topic
        aside = self._topics.setdefault(topic, _Aside())
        if aside.why != reason:
            _log.warning(
                "topic_set_aside", topic=topic, partitions=sorted(p.partition for p in partitions), error=reason
            )
        aside.partitions.update(partitions)
        aside.why, aside.until = reason, self._clock() + aside.backoff.next()

    def due(self) -> set[TopicPartition]:
        """Returns the partitions whose next try is due, each once."""
        now = self._clock()
        topic_partitions: set[TopicPartition] = set()
        for aside in self._topics.values():
            if aside.until <= now:
                aside.until = math.inf
                topic_partitions |= aside.partitions
        return topic_partitions

    def taken(self, partitions: Collection[TopicPartition]) -> None:
        """The target has taken something of these: where they were being tried they are set aside no more."""
        for topic in {partition.topic for partition in partitions} & self._topics.keys():
            aside = self._topics[topic]
            if aside.until == math.inf and aside.partitions & {*partitions}:
                del self._topics[topic]
                _log.info("topic_taken_up", topic=topic)

    def forget(self) -> None:
        """Forgets all partitions set aside."""
        self._topics.clear()

    @property
    def partitions(self) -> set[TopicPartition]:
        """All that are set aside, those that are being tried among them."""
        return set().union(*(aside.partitions for aside in self._topics.values()))

    def counts(self) -> Mapping[str, int]:
        """Returns the number of partitions set aside of each topic."""
        return {topic: len(aside.partitions) for topic, aside in sorted(self._topics.items())}

    def text(self) -> str:
        """Returns the topics set aside with their reasons, one line for people; empty without any."""
        texts = [f"topic {topic} is set aside: {aside.why}" for topic, aside in sorted(self._topics.items())]
        return "; ".join(texts) + (" (tried again)" if texts else "")

"""The topics that a sink reads: a list, or all whose whole name a Java regular expression matches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException

from keelman.connect.errors import ConfigValueError
from keelman.connect.java.regex import JavaPattern, PatternError
from keelman.kafka.leaders.topic_names import TopicNames

REFRESH_SECONDS = (5.0, 15.0)
"""The default interval of searches for a pattern's topics; longer if a search is much work, as with ten thousand
topics."""
SHARE = 0.02
"""Of a processor, for looking then."""
ANSWER_SECONDS = 5.0


class Subscription:
    """Keeps a consumer subscribed. The client's own patterns are POSIX ones, so matching is done here."""

    def __init__(
        self,
        config: Mapping[str, str],
        refresh_seconds: float | None = None,
        is_internal: Callable[[str], bool] = lambda topic: topic.startswith("__"),
    ) -> None:
        """`refresh_seconds` is the configured interval of searches for a pattern's topics, None without one.
        `is_internal` returns whether a pattern never means a topic. Raises ConfigValueError unless exactly one of
        `topics` and `topics.regex` is given, or for a bad pattern."""
        topics, pattern = config.get("topics", "").strip(), config.get("topics.regex", "").strip()
        if topics and pattern:
            whole = "topics and topics.regex are mutually exclusive options, but both are set."
            raise ConfigValueError("topics", topics, whole=whole)
        if not topics and not pattern:
            raise ConfigValueError("topics", None, whole="Must configure one of topics or topics.regex")
        self._topics = list(dict.fromkeys(name.strip() for name in topics.split(",") if name.strip()))
        try:
            self._pattern = JavaPattern(pattern) if pattern else None
        except PatternError as error:
            raise ConfigValueError("topics.regex", pattern, f"Invalid regex: {error}") from None
        self._callbacks: dict[str, Callable[..., Any]] = {}
        self._refresh_seconds = refresh_seconds
        self._is_internal = is_internal
        self.look: Callable[[], TopicNames | None] = lambda: None
        """Queries the brokers for topics once the consumer reads: its own connections are busy then with waiting
        fetches. None if no broker answers: then the consumer is queried."""
        self._look_at = 0.0

    @property
    def topics(self) -> Sequence[str]:
        """The topics that are subscribed: the list, or those found so far that match the pattern."""
        return self._topics

    @property
    def pattern(self) -> str:
        """The regular expression; empty where the topics are a list."""
        return self._pattern.pattern if self._pattern else ""

    def begin(
        self,
        consumer: Consumer,
        assigned: Callable[..., None],
        revoked: Callable[..., None],
        lost: Callable[..., None],
    ) -> None:
        """Subscribes with these callbacks."""
        self._callbacks = {"on_assign": assigned, "on_revoke": revoked, "on_lost": lost}
        if self._pattern is None:
            consumer.subscribe(self._topics, **self._callbacks)
        else:
            self.refresh(consumer)

    def refresh(self, consumer: Consumer) -> None:
        """Looks for new or lost topics of a pattern, once in a while."""
        begun = time.monotonic()
        if self._pattern is None or begun < self._look_at:
            return
        self._look_at, worked = begun + REFRESH_SECONDS[0], time.thread_time()
        told = self.look() or self._listed(consumer)
        names = self.names(told.names)
        self._look_at = begun + self._pause(time.thread_time() - worked + told.worked)
        if names != self._topics:
            self._topics = names
            if names:
                consumer.subscribe(names, **self._callbacks)

    @staticmethod
    def _listed(consumer: Consumer) -> TopicNames:
        try:
            return TopicNames(tuple(consumer.list_topics(timeout=ANSWER_SECONDS).topics), 0.0)
        except KafkaException:
            consumer.poll(0)  # why the brokers do not answer goes to the client's callback, which may raise
            raise

    def _pause(self, worked: float) -> float:
        if self._refresh_seconds is not None:
            return self._refresh_seconds
        least, most = REFRESH_SECONDS
        return min(max(least, worked / SHARE), most)

    def names(self, topics: Iterable[str]) -> list[str]:
        """Returns the topics to read; for a pattern those of all existing topics that match."""
        if self._pattern is None:
            return self._topics
        return sorted(name for name in topics if self._pattern.matches(name) and not self._is_internal(name))

    def complete(self, consumer: Consumer) -> bool:
        """Returns whether the subscription can gain no topic: all are named, and all exist. Queries the brokers; False
        while they do not answer."""
        if self._pattern is not None:
            return False
        try:
            topics = consumer.list_topics(timeout=ANSWER_SECONDS).topics
        except KafkaException:
            return False
        return all(name in topics and topics[name].partitions for name in self._topics)

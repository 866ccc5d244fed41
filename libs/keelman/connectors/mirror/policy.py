"""Decides which topics are mirrored and how their copies are called: MirrorMaker 2's policies and filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from keelman.connect.errors import ConfigValueError
from keelman.connect.java.regex import JavaPattern
from keelman.connect.policy.topics import InternalTopics

DEFAULT_POLICY = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
IDENTITY_POLICY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
CHOOSING = (
    *("topics", "topics.exclude", "heartbeats.replication.enabled", "source.cluster.alias", "target.cluster.alias"),
    *("replication.policy.class", "replication.policy.separator"),
    "replication.policy.internal.topic.separator.enabled",
)
_INTERNAL = InternalTopics({})


class ReplicationPolicy:
    """DefaultReplicationPolicy: a copy is named after its source cluster, e.g. `us-west.orders`."""

    def __init__(
        self, separator: str = ".", *, internal_separator: bool = True, heartbeats: str = "heartbeats"
    ) -> None:
        """With `internal_separator` false the internal topics are named with a dot whatever the separator."""
        self._separator = separator
        self._internal = separator if internal_separator else "."
        self._heartbeats = heartbeats

    def remote_topic(self, alias: str, topic: str) -> str:
        """The copy's name in the target cluster."""
        return f"{alias}{self._separator}{topic}"

    def source_of(self, topic: str) -> str | None:
        """Alias of the cluster that a topic was copied from, None for a topic of the cluster's own."""
        # Java's split drops empty strings at the end, so that "a." is one part and no remote topic.
        parts = topic.split(self._separator)
        while parts and not parts[-1]:
            parts.pop()
        return parts[0] if len(parts) > 1 else None

    def upstream_topic(self, topic: str) -> str | None:
        """The name in the cluster that the topic was copied from, None for a topic of the cluster's own."""
        source = self.source_of(topic)
        return None if source is None else topic[len(source) + len(self._separator) :]

    def original_topic(self, topic: str) -> str:
        """The name in the first cluster of a chain of copies."""
        upstream = self.upstream_topic(topic)
        return topic if upstream is None or upstream == topic else self.original_topic(upstream)

    def offset_syncs_topic(self, alias: str) -> str:
        """Where offsets of source and copy are noted."""
        return f"mm2-offset-syncs{self._internal}{alias}{self._internal}internal"

    def is_heartbeats(self, topic: str) -> bool:
        """The heartbeats topic or a copy of it."""
        # A copy's name ends with its topic's: most topics need no closer look.
        return topic.endswith(self._heartbeats) and self.original_topic(topic) == self._heartbeats

    def is_internal(self, topic: str) -> bool:
        """Never mirrored: topics of Kafka, of Connect and of mirroring itself."""
        return topic.startswith(("__", ".")) or topic.endswith((f"{self._internal}internal", "-internal", ".internal"))


class IdentityPolicy(ReplicationPolicy):
    """IdentityReplicationPolicy: copies keep their names, but for heartbeats. It cannot see cycles."""

    def __init__(self, source_alias: str | None, separator: str = ".", **more: Any) -> None:
        super().__init__(separator, **more)
        self._source_alias = source_alias

    def remote_topic(self, alias: str, topic: str) -> str:
        """Returns the unchanged name, except for heartbeats."""
        return super().remote_topic(alias, topic) if self._looks_like_heartbeats(topic) else topic

    def source_of(self, topic: str) -> str | None:
        """Returns the configured source for every topic, except for heartbeats."""
        return super().source_of(topic) if self._looks_like_heartbeats(topic) else self._source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Returns the unchanged name, except for heartbeats."""
        return super().upstream_topic(topic) if self._looks_like_heartbeats(topic) else topic

    def _looks_like_heartbeats(self, topic: str) -> bool:
        return topic.endswith(self._heartbeats)


def policy_for(parsed: Mapping[str, Any]) -> ReplicationPolicy:
    """The policy of a parsed configuration. Raises ConfigValueError for a class that we do not have."""
    name = parsed["replication.policy.class"]
    more: dict[str, Any] = {"internal_separator": parsed["replication.policy.internal.topic.separator.enabled"]}
    separator = parsed["replication.policy.separator"]
    if name == DEFAULT_POLICY:
        return ReplicationPolicy(separator, **more)
    if name == IDENTITY_POLICY:
        return IdentityPolicy(parsed["source.cluster.alias"], separator, **more)
    raise ConfigValueError("replication.policy.class", name, f"Class {name} could not be found.")


def matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Returns a function that tells whether a whole name matches one of the names or Java patterns; an empty list
    matches nothing. Raises PatternError, a ValueError, for an illegal pattern.
    """
    joined = "|".join(patterns)
    if not joined:
        return lambda _name: False
    return JavaPattern(joined).matches


class TopicChoice:
    """The topics that a flow from source to target mirrors: DefaultTopicFilter, without cycles and internal topics.

    Two with the same `key` choose the same.
    """

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        """Raises ConfigValueError or ValueError for what cannot be a filter."""
        self.policy = policy_for(parsed)
        self.key = tuple(str(parsed[name]) for name in CHOOSING)
        self._target = parsed["target.cluster.alias"]
        self._included = matcher(parsed["topics"])
        self._excluded = matcher(parsed["topics.exclude"])
        self._heartbeats = parsed["heartbeats.replication.enabled"]

    def wanted(self, topic: str) -> bool:
        """Returns whether to mirror a topic of the source cluster."""
        if _INTERNAL.has(topic):
            return False
        chosen = self._included(topic) and not self._excluded(topic)
        chosen = chosen or (self._heartbeats and self.policy.is_heartbeats(topic))
        return chosen and not self.policy.is_internal(topic) and not self._from_target(topic)

    def _from_target(self, topic: str) -> bool:
        source = self.policy.source_of(topic)
        if source is None or source == self._target:
            return source is not None
        upstream = self.policy.upstream_topic(topic)
        return upstream is not None and upstream != topic and self._from_target(upstream)

"""Makes topics from their brokers' answers, as far as these go. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from keelman.kafka.leaders.metadata import TopicInfo
from keelman.kafka.topic_brokers import DescribedTopics, TopicConfigValue
from keelman.model.topic import Topic


@dataclass(frozen=True, slots=True)
class SeenPartition:
    """A partition with its leader (-1: none) and its replicas, by node id; its begin and end offsets, if known."""

    number: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offsets: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class SeenTopic:
    """A topic as its brokers have it; `config` is None while unknown."""

    topic_id: str
    partitions: tuple[SeenPartition, ...]
    config: Mapping[str, TopicConfigValue] | None = field(default=None, repr=False)

    @property
    def own_config(self) -> dict[str, str]:
        """The configuration set for this topic, without the brokers' defaults."""
        return {key: value.value for key, value in sorted((self.config or {}).items()) if value.own}

    @property
    def replicas(self) -> int:
        """The number of replicas of the first partition."""
        return len(self.partitions[0].replicas) if self.partitions else 0


@dataclass(frozen=True, slots=True)
class Seen:
    """The brokers' last report of a topic; `topic` is None when they do not have it, or have not answered."""

    time: datetime | None = None
    problem: str = "its brokers have not been queried yet"
    """Why there is no answer; empty when they have answered."""
    topic: SeenTopic | None = None
    brokers: Mapping[int, tuple[str, int]] = field(default_factory=dict)


NOT_SEEN = Seen()


def seen_of(
    described: DescribedTopics,
    name: str,
    offsets: Mapping[tuple[str, int], tuple[int, int]],
    config: Mapping[str, TopicConfigValue] | None,
    now: datetime,
) -> Seen:
    """Returns the brokers' report of one topic."""
    info = described.topics.get(name)
    addresses = {node: (broker.host, broker.port) for node, broker in described.brokers.items()}
    topic = None if info is None else _topic(info, offsets, config)
    return Seen(now, "", topic, addresses)


def _topic(
    info: TopicInfo, offsets: Mapping[tuple[str, int], tuple[int, int]], config: Mapping[str, TopicConfigValue] | None
) -> SeenTopic:
    parts = tuple(
        SeenPartition(number, leader.node, leader.replicas, leader.isr, offsets.get((info.name, number)))
        for number, leader in sorted(info.partitions.items())
    )
    return SeenTopic(info.id, parts, config)


class TopicsSeen(Protocol):
    """Knows the brokers' answers about topics."""

    def seen(self, topic: Topic) -> Seen:
        """Returns the brokers' last answer at once."""

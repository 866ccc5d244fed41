"""Keeps the newest partition leaders that any broker has reported; an older report changes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.kafka.leaders.metadata import NO_EPOCH, Leader, Part, TopicInfo


class Leaders:
    """Pure. A broker that is cut off from its cluster keeps reporting its last known state, above all its leadership.
    Leader epochs only grow, so the larger epoch is the newer one (KIP-320). Topic ids have no order: a new id for a
    topic's name is accepted when two brokers report it, or at once if there is a single broker."""

    def __init__(self) -> None:
        self._leaders: dict[Part, Leader] = {}
        self._ids: dict[str, str] = {}
        self._words: dict[str, dict[int, str]] = {}
        self._brokers = 0

    def of(self, part: Part) -> Leader | None:
        """Returns the leader of a partition in the newest known epoch; None when no broker has reported one."""
        return self._leaders.get(part)

    def topic_id(self, topic: str) -> str:
        """Returns the topic's id; empty when no broker has reported it."""
        return self._ids.get(topic, "")

    def agreed(self, topic: str) -> bool:
        """Whether two brokers, or the only broker, reported the current id last."""
        return self._agreed(topic, self.topic_id(topic))

    def disputed(self, topic: str) -> bool:
        """Whether a broker reported another id last and no two brokers this one: a third broker must be queried."""
        return not self.agreed(topic) and any(
            word != self.topic_id(topic) for word in self._words.get(topic, {}).values()
        )

    def learn(self, topics: Mapping[str, TopicInfo], node: int, brokers: int) -> dict[str, TopicInfo]:
        """Returns the report of one of `brokers` brokers, with outdated leaders replaced by newer ones."""
        self._brokers = brokers
        return {name: self._newest(topic, node) for name, topic in topics.items()}

    def _agreed(self, topic: str, topic_id: str) -> bool:
        return self._brokers == 1 or list(self._words.get(topic, {}).values()).count(topic_id) > 1

    def _newest(self, topic: TopicInfo, node: int) -> TopicInfo:
        known_id = self._ids.get(topic.name, "")
        if topic.code or not topic.partitions:
            return topic
        if topic.id:
            self._words.setdefault(topic.name, {})[node] = topic.id
            if known_id and topic.id != known_id:
                if not self._agreed(topic.name, topic.id):
                    mine = {number: leader for (name, number), leader in self._leaders.items() if name == topic.name}
                    return TopicInfo(topic.name, known_id, 0, mine, topic.internal)
                for part in [part for part in self._leaders if part[0] == topic.name]:
                    del self._leaders[part]
            self._ids[topic.name] = topic.id
        newest: dict[int, Leader] = {}
        for number, leader in topic.partitions.items():
            before = self._leaders.get((topic.name, number))
            # Without topic ids a smaller epoch may belong to another topic of the same name.
            behind = topic.id and before is not None and leader.epoch != NO_EPOCH and leader.epoch < before.epoch
            newest[number] = self._leaders[topic.name, number] = before if before is not None and behind else leader
        return TopicInfo(topic.name, topic.id, 0, newest, topic.internal)

"""The newest that any broker has told of partitions' leaders: what a broker tells that is behind changes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.kafka.fetched import Part
from keelman.kafka.leader_epochs import NO_EPOCH, Leader, TopicInfo


class Leaders:
    """Pure. A broker that is cut off from its cluster goes on to tell what it last knew, itself as a leader first of
    all; the epochs of leaders only ever grow, so the larger one is the newer (KIP-320). A topic that was replaced by
    another of its name does not come back."""

    def __init__(self) -> None:
        self._leaders: dict[Part, Leader] = {}
        self._ids: dict[str, str] = {}
        self._former: dict[str, set[str]] = {}

    def of(self, part: Part) -> Leader | None:
        """The leader of a partition in the newest known epoch; None when no broker has told of one."""
        return self._leaders.get(part)

    def topic_id(self, topic: str) -> str:
        """Empty when no broker has told it."""
        return self._ids.get(topic, "")

    def learn(self, topics: Mapping[str, TopicInfo]) -> dict[str, TopicInfo]:
        """What a broker has told, with all in it that is behind put right."""
        return {name: self._newest(topic) for name, topic in topics.items()}

    def _newest(self, topic: TopicInfo) -> TopicInfo:
        known = self._ids.get(topic.name, "")
        if topic.code or not topic.partitions:
            return topic
        if topic.id and topic.id != known:
            if topic.id in self._former.get(topic.name, ()):
                mine = {number: one for (name, number), one in self._leaders.items() if name == topic.name}
                return TopicInfo(topic.name, known, 0, mine, topic.internal)
            if known:
                self._former.setdefault(topic.name, set()).add(known)
                for part in [part for part in self._leaders if part[0] == topic.name]:
                    del self._leaders[part]
            self._ids[topic.name] = topic.id
        newest: dict[int, Leader] = {}
        for number, told in topic.partitions.items():
            before = self._leaders.get((topic.name, number))
            # Without ids nobody can say that a smaller epoch is not that of another topic.
            behind = topic.id and before is not None and told.epoch != NO_EPOCH and told.epoch < before.epoch
            newest[number] = self._leaders[topic.name, number] = before if before is not None and behind else told
        return TopicInfo(topic.name, topic.id, 0, newest, topic.internal)

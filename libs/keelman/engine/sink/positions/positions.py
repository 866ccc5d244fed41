"""Keeps a sink's position in each of its partitions, and the offsets that its group may show."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Mapping
from typing import TypeAlias

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect.java.text import json_text
from keelman.connect.plugin import KeptOffset
from keelman.connect.records import TopicPartition
from keelman.engine.failure import RunFailure, judge_kafka
from keelman.engine.sink.consumer.own_consumer import OwnRecords
from keelman.engine.sink.positions.offsets import NO_EPOCH, Mirror
from keelman.runtime.logs.logging import get_logger

LastMessages: TypeAlias = Mapping[tuple[str, int], Message]
"""By topic and partition."""

_log = get_logger()


class Positions:
    """The assigned partitions of one sink task. Only the run's thread uses it."""

    def __init__(self) -> None:
        self._next: dict[TopicPartition, int] = {}
        self._mirrors: dict[TopicPartition, Mirror] = {}
        self._topic_ids: dict[TopicPartition, str] = {}
        self._epochs: dict[TopicPartition, int] = {}
        self._taken: dict[TopicPartition, int] = {}
        self._allowed: Mapping[TopicPartition, int] | None = None
        self.assigned = False
        """Whether the group gave an assignment, even one of no partitions."""
        self.assignments = 0
        """Counts what was given and taken."""
        self.in_flight = 0
        """Commits to the group that are under way."""
        self.overdue = False
        """Whether the group lacks a commit: one failed that may succeed another time, or the last run ended between its
        writer's commit and the group's."""
        self.topics: list[str] = []
        """Those of which records were written, sorted: as in Connect an empty one is not in use."""

    def __bool__(self) -> bool:
        return bool(self._next)

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._mirrors

    def forget(self) -> None:
        """The partitions are not ours any more."""
        self.assigned = False
        self.assignments += 1
        self._allowed = None
        self.overdue = False
        for one in (self._next, self._mirrors, self._topic_ids, self._epochs, self._taken):
            one.clear()

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """These are not ours any more; others are."""
        self.assignments += 1
        if self._allowed is not None:
            self._allowed = {where: at for where, at in self._allowed.items() if where not in partitions}
        for where in partitions:
            for one in (self._next, self._mirrors, self._topic_ids, self._epochs, self._taken):
                one.pop(where, None)

    def begin(
        self,
        partition: TopicPartition,
        shown: int | None,
        start: int | None,
        topic_id: str = "",
        leader_epoch: int = NO_EPOCH,
    ) -> None:
        """A partition is ours: what the group shows for it, the offset to read next where that is known, the id of its
        topic and the epoch of the last record before that offset, where they are known."""
        self._mirrors[partition] = Mirror(shown)
        self._topic_ids[partition], self._epochs[partition] = topic_id, leader_epoch
        if start is not None:
            self._next[partition] = start
            self.overdue |= start != shown

    def last_of_each(self, messages: list[Message] | OwnRecords) -> LastMessages:
        """The last of these messages of each partition; at least one."""
        if isinstance(messages, OwnRecords):
            return messages.last_of_each()
        if len(self._mirrors) == 1:
            return {(messages[-1].topic(), messages[-1].partition()): messages[-1]}
        topics = {one.topic for one in self._mirrors}
        if len(topics) == 1:
            (topic,) = topics
            return {
                (topic, n): m for n, m in dict(zip(map(Message.partition, messages), messages, strict=True)).items()
            }
        where = zip(map(Message.topic, messages), map(Message.partition, messages), strict=True)
        return dict(zip(where, messages, strict=True))

    def check(self, messages: list[Message] | OwnRecords, last: LastMessages) -> None:
        """Raises RunFailure when the consumer went back, as it does where a log has lost its end: what it reads then
        was copied before, or is not behind what was. Only another leader's log can have lost it."""
        if not any(self._odd(TopicPartition(*where), message) for where, message in last.items()):
            return
        for where, message in self.last_of_each(list(messages[::-1])).items():
            due = self._next.get(TopicPartition(*where), 0)
            if message.offset() < due:
                topic, number = where
                raise RunFailure(
                    "LOG_TRUNCATED", f"partition {number} of topic {topic} went back to {message.offset()} from {due}"
                )

    def _odd(self, partition: TopicPartition, message: Message) -> bool:
        return message.offset() < self._next.get(partition, 0) or _epoch(message) != self._epochs.get(partition)

    def advance(self, last: LastMessages) -> None:
        """All messages up to these are written."""
        for (topic, number), message in last.items():
            partition = TopicPartition(topic, number)
            self._next[partition] = self._taken[partition] = message.offset() + 1
            self._epochs[partition] = _epoch(message)
            self._met(topic)

    def _met(self, topic: str) -> None:
        if topic not in self.topics:
            insort(self.topics, topic)

    def reached(self, partition: TopicPartition, end: int) -> bool:
        """The partition's end was read; whether that is news.

        The end lies behind control records that are never delivered; to commit it shows a lag of 0 to everyone.
        """
        if partition not in self._mirrors or end <= self._next.get(partition, -1):
            return False
        self._next[partition] = end
        return True

    def due(self, partition: TopicPartition) -> tuple[int | None, int]:
        """The offset to read next, None before anything was read, and the leader epoch of the last record before it."""
        return self._next.get(partition), self._epochs.get(partition, NO_EPOCH)

    def move(self, partition: TopicPartition, offset: int) -> None:
        """It goes on there, which is not behind the last record that was taken."""
        self._next[partition], self._epochs[partition] = offset, NO_EPOCH

    def rewind(self, partition: TopicPartition, offset: int) -> None:
        """It goes on there because its writer wants that."""
        self.move(partition, offset)
        self._taken.pop(partition, None)

    def allow(self, offsets: Mapping[TopicPartition, int] | None) -> bool:
        """No more than this may be committed to the group from now on, None for all there is; whether that is news."""
        before = self._committable()
        self._allowed = offsets
        return self._committable() != before

    @property
    def held_back(self) -> bool:
        """Whether something was taken that may not be committed to the group yet."""
        allowed = self._allowed
        return allowed is not None and any(allowed.get(p, -1) < offset for p, offset in self._taken.items())

    def _committable(self) -> dict[TopicPartition, int]:
        """The offsets to commit to the group."""
        if self._allowed is None:
            return self._next
        return {p: offset for p, offset in self._allowed.items() if offset <= self._next.get(p, -1)}

    def kept(self, only: Collection[TopicPartition] | None = None) -> dict[TopicPartition, KeptOffset]:
        """What a writer that keeps offsets is to keep now; of these partitions alone where they are given."""
        return {
            p: KeptOffset(
                offset, self._mirrors[p].candidates, self._topic_ids.get(p, ""), self._epochs.get(p, NO_EPOCH)
            )
            for p, offset in self._next.items()
            if only is None or p in only
        }

    def texts(self) -> dict[str, str]:
        """The offsets for people."""
        found = self._committable()
        return {json_text({"topic": p.topic, "partition": p.partition}): str(o) for p, o in found.items()}

    def partitions(self) -> list[ClientPartition]:
        """All assigned ones, for the client."""
        return [ClientPartition(p.topic, p.partition) for p in self._mirrors]

    def send(self, consumer: Consumer, *, asynchronous: bool) -> None:
        """Commits to the group. Raises KafkaException."""
        due = self._committable()
        self.overdue = False
        for partition, offset in due.items():
            self._mirrors[partition].sent(offset)
        listed = [ClientPartition(p.topic, p.partition, o, leader_epoch=self._epoch_at(p, o)) for p, o in due.items()]
        if not listed:
            return
        if asynchronous:
            self.in_flight += 1
            consumer.commit(offsets=listed, asynchronous=True)
        else:
            consumer.commit(offsets=listed, asynchronous=False)
            for partition, offset in due.items():
                self._mirrors[partition].acknowledged(offset)

    def _epoch_at(self, partition: TopicPartition, offset: int) -> int:
        return self._epochs.get(partition, NO_EPOCH) if offset == self._next[partition] else NO_EPOCH

    def answered(self, error: KafkaError | None, partitions: list[ClientPartition]) -> None:
        """The client's answer to a commit to the group."""
        self.in_flight = max(0, self.in_flight - 1)
        for one in partitions:
            problem = error or one.error
            if problem is not None:
                self.overdue |= judge_kafka(problem)[1]
                _log.warning("group_commit_failed", topic=one.topic, partition=one.partition, error=str(problem))
            elif (mirror := self._mirrors.get(TopicPartition(one.topic, one.partition))) is not None:
                mirror.acknowledged(one.offset)

    @property
    def mirrored(self) -> bool:
        """Whether the group is known to show just these positions."""
        return all(m.candidates == (self._next.get(p),) for p, m in self._mirrors.items())

    def lag(self, consumer: Consumer) -> int | None:
        """Records that wait in all assigned partitions; None before the first fetch of one of them."""
        if not self._mirrors:
            return None
        lag = 0
        for partition in self._mirrors:
            known = _known_ends(consumer, partition)
            if known is None:
                return None
            low, end = known
            lag += max(0, end - self._next.get(partition, max(0, low)))
        return lag

    def at_ends(self, consumer: Consumer) -> dict[TopicPartition, int] | None:
        """The positions when each of them is at its partition's end, behind the last record of anyone; else None."""
        if not self.assigned:
            return None
        for partition in self._mirrors:
            known = _known_ends(consumer, partition)
            if known is None or self._next.get(partition) != known[1]:
                return None
        return dict(self._next)


def _epoch(message: Message) -> int:
    epoch = message.leader_epoch()
    return NO_EPOCH if epoch is None else epoch


def _known_ends(consumer: Consumer, partition: TopicPartition) -> tuple[int, int] | None:
    """First offset and end as of the last fetch."""
    known: tuple[int, int] | None = consumer.get_watermark_offsets(
        ClientPartition(partition.topic, partition.partition), cached=True
    )
    return None if known is None or known[1] < 0 else known

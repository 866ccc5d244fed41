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
from keelman.engine.clients import partition_of
from keelman.engine.failure import RunFailure, judge_kafka
from keelman.engine.sink.consumer.own_consumer import OwnRecords
from keelman.engine.sink.positions.offsets import NO_EPOCH, Mirror
from keelman.runtime.logs.logging import get_logger

LastMessages: TypeAlias = Mapping[tuple[str, int], Message]
"""The last message of each partition, by topic and partition."""

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
        """Whether the group has made an assignment, even of no partitions."""
        self.assignments = 0
        """The number of changes of the assignment."""
        self.in_flight = 0
        """Commits to the group that are under way."""
        self.overdue = False
        """Whether the group lacks a commit: a commit failed that may succeed later, or the last run ended between its
        writer's commit and the group's."""
        self.topics: list[str] = []
        """The topics with written records, sorted: as in Connect an empty topic is not in use."""

    def __bool__(self) -> bool:
        return bool(self._next)

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._mirrors

    def forget(self) -> None:
        """Forgets all partitions: they are revoked."""
        self.assigned = False
        self.assignments += 1
        self._allowed = None
        self.overdue = False
        for table in (self._next, self._mirrors, self._topic_ids, self._epochs, self._taken):
            table.clear()

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forgets these partitions: they are revoked; others stay."""
        self.assignments += 1
        if self._allowed is not None:
            self._allowed = {where: at for where, at in self._allowed.items() if where not in partitions}
        for where in partitions:
            for table in (self._next, self._mirrors, self._topic_ids, self._epochs, self._taken):
                table.pop(where, None)

    def begin(
        self,
        partition: TopicPartition,
        shown: int | None,
        start: int | None,
        topic_id: str = "",
        leader_epoch: int = NO_EPOCH,
    ) -> None:
        """Adds an assigned partition: with the value that the group shows, the offset to read next, the id of its topic
        and the epoch of the last record before that offset, where these are known."""
        self._mirrors[partition] = Mirror(shown)
        self._topic_ids[partition], self._epochs[partition] = topic_id, leader_epoch
        if start is not None:
            self._next[partition] = start
            self.overdue |= start != shown

    def last_of_each(self, messages: list[Message] | OwnRecords) -> LastMessages:
        """Returns the last message of each partition among these; `messages` must not be empty."""
        if isinstance(messages, OwnRecords):
            return messages.last_of_each()
        if len(self._mirrors) == 1:
            return {(messages[-1].topic(), messages[-1].partition()): messages[-1]}
        topics = {mirror.topic for mirror in self._mirrors}
        if len(topics) == 1:
            (topic,) = topics
            return {
                (topic, n): m for n, m in dict(zip(map(Message.partition, messages), messages, strict=True)).items()
            }
        where = zip(map(Message.topic, messages), map(Message.partition, messages), strict=True)
        return dict(zip(where, messages, strict=True))

    def check(self, messages: list[Message] | OwnRecords, last: LastMessages) -> None:
        """Raises RunFailure when the consumer went back, as it does if a log has lost its end: the records that it
        reads then were copied before, or do not follow the copied ones. Only another leader's log can have lost its
        end."""
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
        """Notes that all messages up to these are written."""
        for (topic, number), message in last.items():
            partition = TopicPartition(topic, number)
            self._next[partition] = self._taken[partition] = message.offset() + 1
            self._epochs[partition] = _epoch(message)
            self._met(topic)

    def _met(self, topic: str) -> None:
        if topic not in self.topics:
            insort(self.topics, topic)

    def reached(self, partition: TopicPartition, end: int) -> bool:
        """Notes that the partition's end was read. Returns whether the position changed.

        The end lies behind control records that are never delivered; its commit shows every client a lag of 0.
        """
        if partition not in self._mirrors or end <= self._next.get(partition, -1):
            return False
        self._next[partition] = end
        return True

    def due(self, partition: TopicPartition) -> tuple[int | None, int]:
        """Returns the next offset, None before the first read, and the leader epoch of the last record before it."""
        return self._next.get(partition), self._epochs.get(partition, NO_EPOCH)

    def move(self, partition: TopicPartition, offset: int) -> None:
        """Moves a position to an offset that does not follow the last taken record."""
        self._next[partition], self._epochs[partition] = offset, NO_EPOCH

    def rewind(self, partition: TopicPartition, offset: int) -> None:
        """Moves a position to an offset that its writer seeks to."""
        self.move(partition, offset)
        self._taken.pop(partition, None)

    def allow(self, offsets: Mapping[TopicPartition, int] | None) -> bool:
        """Limits commits to the group to these offsets, None for no limit. Returns whether the offsets to commit
        changed."""
        before = self._committable()
        self._allowed = offsets
        return self._committable() != before

    @property
    def held_back(self) -> bool:
        """Whether there are taken records that may not be committed to the group yet."""
        allowed = self._allowed
        return allowed is not None and any(allowed.get(p, -1) < offset for p, offset in self._taken.items())

    def _committable(self) -> dict[TopicPartition, int]:
        """Returns the offsets to commit to the group."""
        if self._allowed is None:
            return self._next
        return {p: offset for p, offset in self._allowed.items() if offset <= self._next.get(p, -1)}

    def kept(self, only: Collection[TopicPartition] | None = None) -> dict[TopicPartition, KeptOffset]:
        """Returns the offsets that a writer must keep now; with `only` those of these partitions alone."""
        return {
            p: KeptOffset(
                offset, self._mirrors[p].candidates, self._topic_ids.get(p, ""), self._epochs.get(p, NO_EPOCH)
            )
            for p, offset in self._next.items()
            if only is None or p in only
        }

    def texts(self) -> dict[str, str]:
        """Returns the offsets as texts for people."""
        committable = self._committable()
        return {json_text({"topic": p.topic, "partition": p.partition}): str(o) for p, o in committable.items()}

    def partitions(self) -> list[ClientPartition]:
        """Returns all assigned partitions, for the client."""
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
        """Handles the client's answer to a commit to the group."""
        self.in_flight = max(0, self.in_flight - 1)
        for partition in partitions:
            problem = error or partition.error
            if problem is not None:
                self.overdue |= judge_kafka(problem)[1]
                _log.warning(
                    "group_commit_failed", topic=partition.topic, partition=partition.partition, error=str(problem)
                )
            elif (mirror := self._mirrors.get(partition_of(partition))) is not None:
                mirror.acknowledged(partition.offset)

    @property
    def mirrored(self) -> bool:
        """Whether the group is known to show exactly these positions."""
        return all(m.candidates == (self._next.get(p),) for p, m in self._mirrors.items())

    def lag(self, consumer: Consumer) -> int | None:
        """Returns the number of records waiting in all assigned partitions; None until each was fetched once."""
        if not self._mirrors:
            return None
        lag = 0
        for partition in self._mirrors:
            known_ends = _known_ends(consumer, partition)
            if known_ends is None:
                return None
            low, end = known_ends
            lag += max(0, end - self._next.get(partition, max(0, low)))
        return lag

    def at_ends(self, consumer: Consumer) -> dict[TopicPartition, int] | None:
        """Returns the positions if each is at its partition's end, behind its last record; else None."""
        if not self.assigned:
            return None
        for partition in self._mirrors:
            known_ends = _known_ends(consumer, partition)
            if known_ends is None or self._next.get(partition) != known_ends[1]:
                return None
        return dict(self._next)


def _epoch(message: Message) -> int:
    epoch = message.leader_epoch()
    return NO_EPOCH if epoch is None else epoch


def _known_ends(consumer: Consumer, partition: TopicPartition) -> tuple[int, int] | None:
    """Returns the first offset and the end as of the last fetch."""
    watermarks: tuple[int, int] | None = consumer.get_watermark_offsets(
        ClientPartition(partition.topic, partition.partition), cached=True
    )
    return None if watermarks is None or watermarks[1] < 0 else watermarks

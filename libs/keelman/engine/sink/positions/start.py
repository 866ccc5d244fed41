"""Finds a sink's first position in a new partition, from its kept offset, the group's offset, and the log."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect import contract
from keelman.connect.plugin import KeptOffset, Writer
from keelman.connect.records import TopicPartition
from keelman.connect.tasks.kept_offsets import Assignment, SinkReader
from keelman.connect.watches import TopicWatch
from keelman.engine.clients import partition_of
from keelman.engine.sink.positions.offsets import NO_EPOCH, GroupOffset, SourceLog, Start, altered_ms, start_of
from keelman.engine.sink.positions.relocation import Found
from keelman.engine.sink.positions.source_topics import SourceTopics
from keelman.kafka.properties.connector_clients import sink_group
from keelman.runtime.logs.logging import get_logger

ANSWER_SECONDS = 8.0

_log = get_logger()


@dataclass(frozen=True, slots=True)
class Begun:
    """A partition at the assignment: the group's offset, the start, the id of its topic and the epoch of the last
    record before the start, where they are known; and its log's begin and end, if they were queried."""

    where: TopicPartition
    group: GroupOffset
    start: Start
    topic_id: str = ""
    leader_epoch: int = NO_EPOCH
    bounds: tuple[int, int] | None = None


class Beginnings:
    """Finds the first positions of one copy run."""

    def __init__(
        self,
        worker: Mapping[str, str],
        config: Mapping[str, str],
        connector: str,
        topics: SourceTopics,
        parked: TopicWatch | None = None,
    ) -> None:
        """`parked` has the positions at which the sink was parked."""
        self._workers = worker.get("group.id", "").strip()
        self._group = sink_group(worker, config, connector)
        self._topics = topics
        self._parked = parked or TopicWatch({}, {})
        self._cluster = ""
        self._reads = False

    def of(self, consumer: Consumer, writer: Writer, partitions: list[ClientPartition]) -> list[Begun]:
        """Returns the start in each partition; a writer that keeps offsets takes the partitions over.

        Raises KafkaException, Unavailable, and what the writer raises.
        """
        groups = self._shown(consumer, partitions)
        if not groups:
            return []
        kept_offsets: Mapping[TopicPartition, KeptOffset] = {}
        ids: Mapping[str, str] = {}
        if writer.keeps_offsets:
            kept_offsets = self._taken_over(consumer, writer, groups)
            expected = {
                where.topic: kept_offsets[where].topic_id
                for where in groups
                if where in kept_offsets and kept_offsets[where].topic_id
            }
            ids = self._topics.ids({where.topic for where in groups}, expected)
        epochs = {where: kept_offsets.get(where, group).leader_epoch for where, group in groups.items()}
        ends = self._topics.epoch_ends({where: epoch for where, epoch in epochs.items() if epoch > NO_EPOCH})
        begun = []
        bounds = self._topics.bounds(groups) if self._reads else {}  # else no fetch is under way yet
        self._reads = True
        parked = self._parked_at([w for w, group in groups.items() if w not in kept_offsets and group.shown is None])
        for where, group in groups.items():
            topic_id = ids.get(where.topic, "")
            end = None
            if where in bounds:
                end = bounds[where][1]
            elif where in kept_offsets:
                client = ClientPartition(where.topic, where.partition)
                end = consumer.get_watermark_offsets(client, timeout=ANSWER_SECONDS)[1]
            start = parked.get(where) or start_of(
                kept_offsets.get(where), group, SourceLog(end, topic_id, ends.get(where))
            )
            if start.reason:
                _log.warning(
                    "source_log_truncated" if start.truncated else "kept_offset_not_used",
                    partition=str(where),
                    start=start.offset,
                    why=start.reason,
                )
            stands = start.offset == kept_offsets.get(where, group).offset
            begun.append(Begun(where, group, start, topic_id, epochs[where] if stands else NO_EPOCH, bounds.get(where)))
        return begun

    def _parked_at(self, forgotten: Collection[TopicPartition]) -> dict[TopicPartition, Start]:
        """Returns starts for partitions without a group offset: the parked positions, in topics with the same ids as
        then."""
        at, known_ids = self._parked.positions, self._parked.ids
        lost = [where for where in forgotten if where in at and where.topic in known_ids]
        ids = self._topics.ids({where.topic for where in lost}, known_ids) if lost else {}
        starts = {where: Start(at[where]) for where in lost if ids.get(where.topic) == known_ids[where.topic]}
        for where, start in starts.items():
            _log.warning("group_offset_forgotten", group=self._group, partition=str(where), goes_on=start.offset)
        return starts

    def found(self, consumer: Consumer, where: TopicPartition, leader_epoch: int) -> Found:
        """Returns the present state of a log. Raises KafkaException, and Unavailable if its leader does not answer."""
        begin, end = consumer.get_watermark_offsets(ClientPartition(*where), timeout=ANSWER_SECONDS)
        if leader_epoch == NO_EPOCH:
            return Found(begin, end)
        return Found(begin, end, self._topics.epoch_ends({where: leader_epoch}).get(where))

    def _shown(self, consumer: Consumer, partitions: list[ClientPartition]) -> dict[TopicPartition, GroupOffset]:
        committed = consumer.committed(partitions, timeout=ANSWER_SECONDS) if partitions else []
        for committed_partition in committed:
            if committed_partition.error is not None:
                raise KafkaException(committed_partition.error)
        return {
            partition_of(partition): GroupOffset(
                partition.offset if partition.offset >= 0 else None,
                altered_ms(partition.metadata),
                NO_EPOCH if partition.leader_epoch is None else partition.leader_epoch,
            )
            for partition in committed
        }

    def _taken_over(
        self, consumer: Consumer, writer: Writer, groups: Mapping[TopicPartition, GroupOffset]
    ) -> Mapping[TopicPartition, KeptOffset]:
        if type(writer).take_over is Writer.take_over:
            return contract.KEPT.of(writer.kept)
        if not self._cluster:
            self._cluster = consumer.list_topics(next(iter(groups)).topic, ANSWER_SECONDS).cluster_id
        reader = SinkReader(self._workers, self._group, self._cluster)
        return contract.TAKE_OVER.of(
            writer.take_over, Assignment(reader, {where: group.shown for where, group in groups.items()})
        )

"""Where a sink begins in the partitions that its group gives it, by what is kept, what the group shows, and the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect import answers
from keelman.connect.kept_offsets import Assignment, SinkReader
from keelman.connect.plugin import KeptOffset, Writer
from keelman.connect.records import TopicPartition
from keelman.engine.sink_consumer import watch_properties
from keelman.engine.sink_offsets import NO_EPOCH, GroupOffset, Log, Start, altered_ms, start_of
from keelman.engine.sink_relocation import Found
from keelman.kafka.client_properties import sink_group
from keelman.kafka.clients import Client, ClientError, TooOld, low_level_client
from keelman.kafka.error_codes import name_of
from keelman.kafka.leader_epochs import epoch_ends, metadata_of
from keelman.model.errors import Unavailable
from keelman.runtime.logging import get_logger
from keelman.runtime.side_loop import KAFKA_LOOP

ANSWER_SECONDS = 8.0
EPOCH_SECONDS = 5.0

_log = get_logger()


@dataclass(frozen=True, slots=True)
class Begun:
    """A partition at the assignment: what the group shows for it, where to begin, the id of its topic and the epoch of
    the last record before that, where they are known."""

    where: TopicPartition
    group: GroupOffset
    start: Start
    topic_id: str = ""
    leader_epoch: int = NO_EPOCH


class Beginnings:
    """Of one copy run."""

    def __init__(
        self, worker: Mapping[str, str], config: Mapping[str, str], connector: str, beat: Callable[[], None]
    ) -> None:
        self._workers = worker.get("group.id", "").strip()
        self._group = sink_group(worker, config, connector)
        self._client = watch_properties(worker, config)
        self._beat = beat
        self._cluster = ""

    def of(self, consumer: Consumer, writer: Writer, partitions: list[ClientPartition]) -> list[Begun]:
        """Where to begin in each; a writer that keeps offsets takes the partitions over.

        Raises KafkaException, Unavailable, and what the writer raises.
        """
        groups = self._shown(consumer, partitions)
        if not writer.keeps_offsets or not groups:
            return [Begun(where, group, start_of(None, group, Log())) for where, group in groups.items()]
        kept = self._taken_over(consumer, writer, groups)
        ids, ends = KAFKA_LOOP.call(self._look(list(groups), kept), self._beat)
        found = []
        for where, group in groups.items():
            topic_id = ids.get(where.topic, "")
            end = None
            if where in kept:
                client = ClientPartition(where.topic, where.partition)
                end = consumer.get_watermark_offsets(client, timeout=ANSWER_SECONDS)[1]
            start = start_of(kept.get(where), group, Log(end, topic_id, ends.get(where)))
            if start.reason:
                _log.warning(
                    "source_log_truncated" if start.truncated else "kept_offset_not_used",
                    partition=str(where),
                    start=start.offset,
                    why=start.reason,
                )
            stands = where in kept and start.offset == kept[where].offset
            found.append(Begun(where, group, start, topic_id, kept[where].leader_epoch if stands else NO_EPOCH))
        return found

    def found(self, consumer: Consumer, where: TopicPartition, leader_epoch: int) -> Found:
        """The partition's log as it is now. Raises KafkaException, and Unavailable where its leader does not tell."""
        begin, end = consumer.get_watermark_offsets(ClientPartition(*where), timeout=ANSWER_SECONDS)
        if leader_epoch == NO_EPOCH:
            return Found(begin, end)
        return Found(begin, end, KAFKA_LOOP.call(self._epoch_end(where, leader_epoch), self._beat))

    async def _epoch_end(self, where: TopicPartition, leader_epoch: int) -> int | None:
        async with low_level_client(self._client, client_id="connector-leader-epochs", timeout_ms=10_000) as client:
            return (await self._ends(client, {(where.topic, where.partition): leader_epoch})).get(where)

    def _shown(self, consumer: Consumer, partitions: list[ClientPartition]) -> dict[TopicPartition, GroupOffset]:
        told = consumer.committed(partitions, timeout=ANSWER_SECONDS) if partitions else []
        for one in told:
            if one.error is not None:
                raise KafkaException(one.error)
        return {
            TopicPartition(one.topic, one.partition): GroupOffset(
                one.offset if one.offset >= 0 else None, altered_ms(one.metadata)
            )
            for one in told
        }

    def _taken_over(
        self, consumer: Consumer, writer: Writer, groups: Mapping[TopicPartition, GroupOffset]
    ) -> Mapping[TopicPartition, KeptOffset]:
        if type(writer).take_over is Writer.take_over:
            return answers.KEPT.of(writer.kept)
        if not self._cluster:
            self._cluster = consumer.list_topics(next(iter(groups)).topic, ANSWER_SECONDS).cluster_id
        reader = SinkReader(self._workers, self._group, self._cluster)
        return answers.TAKE_OVER.of(
            writer.take_over, Assignment(reader, {where: group.shown for where, group in groups.items()})
        )

    async def _look(
        self, partitions: list[TopicPartition], kept: Mapping[TopicPartition, KeptOffset]
    ) -> tuple[dict[str, str], dict[TopicPartition, int]]:
        """Ids of the topics, and where the epochs end of the last records that were copied; nothing of either from
        brokers that do not tell."""
        epochs = {
            (one.topic, one.partition): kept[one].leader_epoch
            for one in partitions
            if one in kept and kept[one].leader_epoch > NO_EPOCH
        }
        expected = {one.topic: kept[one].topic_id for one in partitions if one in kept and kept[one].topic_id}
        async with low_level_client(self._client, client_id="connector-leader-epochs", timeout_ms=10_000) as client:
            ids = await self._ids(client, {one.topic for one in partitions}, expected)
            return ids, await self._ends(client, epochs)

    async def _ids(self, client: Client, topics: set[str], expected: Mapping[str, str]) -> dict[str, str]:
        """A broker that is cut off from its cluster tells the id of before for ever, and ids have no order: where one
        is not the expected one, another broker is asked. Raises Unavailable where they differ."""
        nodes = sorted(broker.nodeId for broker in client.cluster.brokers())
        told = await self._told(client, topics, nodes[:1])
        if len(nodes) > 1 and any(told.get(topic, known) != known for topic, known in expected.items()):
            again = await self._told(client, topics, nodes[1:])
            if again != told:
                raise Unavailable(f"brokers tell different ids of topics {', '.join(sorted(topics))}")
        return told

    async def _told(self, client: Client, topics: set[str], first: list[int]) -> dict[str, str]:
        try:
            told = await metadata_of(client, topics, first=first)
        except TooOld as error:
            _log.info("topic_ids_not_told", error=repr(error))
            return {}
        except (ClientError, OSError) as error:
            raise Unavailable(f"no broker tells about topics: {error!r}") from None
        return {name: one.id for name, one in told.topics.items() if one.id}

    async def _ends(self, client: Client, epochs: Mapping[tuple[str, int], int]) -> dict[TopicPartition, int]:
        """Raises Unavailable where a leader does not tell: it may be one no longer."""
        try:
            told = await epoch_ends(client, epochs, seconds=EPOCH_SECONDS)
        except TooOld as error:
            _log.info("epoch_ends_not_told", error=repr(error))
            return {}
        for (topic, number), end in told.items():
            if end.code:
                why = f"{name_of(end.code)} where epoch {epochs[topic, number]} ends"
                raise Unavailable(f"partition {number} of topic {topic}: {why}")
        return {TopicPartition(*where): end.offset for where, end in told.items() if end.offset >= 0}

"""KafkaSink: copies topics to topics of this or another Kafka cluster, exactly once by transactions.

Records and their source offsets are committed in one transaction of the target cluster, so neither exists
without the other. A task has one producer with its own id: its successor fences it at once, and so does a
sibling that takes over its partitions, by the claims in the kept topic (`engine.sink.exactly_once.claims`). In addition
the group waits for longer than a transaction of a frozen task can stay open before it gives its partitions away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance, Type, non_empty, one_of
from keelman.connect.plugin import Assignment, Connector, Direction, KeptOffset, SinkTask, Writer
from keelman.connect.records import Column, Origin, SinkBatch, SourceBatch, TopicPartition
from keelman.engine.commit_interval import commit_interval_seconds
from keelman.engine.control import Control
from keelman.engine.failure import RunFailure, TopicRefused, refuses_topic
from keelman.engine.producing.producer import OffsetRecord, RunProducer
from keelman.engine.producing.producer_options import producer_options
from keelman.engine.producing.transactions import AtLeastOnceProducer, TransactionalProducer
from keelman.engine.records.size import Sizes, may_be_over
from keelman.engine.sink.exactly_once.claims import Claims
from keelman.engine.sink.exactly_once.kept_topic import KeptTopic
from keelman.engine.sink.target import SERVERS, FewPartitions, TargetCluster, TargetTopics, source_cluster
from keelman.engine.topics_aside import TopicsAside
from keelman.kafka.batches.producer import ProduceFailure
from keelman.kafka.fencing import fence_all
from keelman.kafka.properties.connector_clients import merged
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.side_loop import KAFKA_LOOP

TRANSACTION_SECONDS = 10.0
# The interval in which a coordinator looks for transactions that timed out, the brokers'
# transaction.abort.timed.out.transaction.cleanup.interval.ms.
CLEANUP_SECONDS = 10.0
FENCE_SECONDS = 30.0

_log = get_logger()


class KafkaSink(Connector):
    """The connector; any number of tasks share the partitions of its source topics."""

    names = ("keelman.connectors.KafkaSinkConnector", "KafkaSinkConnector", "KafkaSink")
    version = "1.0.0"
    direction = Direction.SINK
    runs_on = "anywhere"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """`topic`, `partitions`, `target.cluster.*`."""
        high, text = Importance.HIGH, Type.STRING
        topic = "Name of the topic to write, where ${topic} stands for the topic that is read."
        partitions = "`same` keeps each record's partition number, `by-key` chooses by the key as Java's producer does."
        servers = (
            "Brokers of the cluster to write to; the worker's own when absent. Other target.cluster.* keys are "
            "properties of its clients."
        )
        return ConfigDef(
            ConfigKey("topic", text, REQUIRED, high, topic, non_empty),
            ConfigKey("partitions", text, "same", Importance.MEDIUM, partitions, one_of("same", "by-key")),
            ConfigKey("target.cluster.bootstrap.servers", text, None, high, servers),
        )

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """Returns `max_tasks` equal configurations."""
        return [dict(config) for _ in range(max_tasks)]

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """Returns True."""
        return True

    @classmethod
    def open_task_writer(cls, config: Mapping[str, str], task: SinkTask, *, exactly_once: bool) -> Writer:
        """Returns the writer. Fences the task's predecessor. Raises ConnectError, KafkaException or RunFailure."""
        parsed = cls.config_def().parse(config)
        whole = {**config, "topic": parsed["topic"], "partitions": parsed["partitions"]}
        return KafkaWriter(whole, task, exactly_once=exactly_once)


class KafkaWriter(Writer):
    """Writes to the target cluster; with exactly-once one transaction after another."""

    wants_keys = True
    wants_payloads = True
    wants_origin = True

    def __init__(self, config: Mapping[str, str], task: SinkTask, *, exactly_once: bool) -> None:
        """Opens the producer and fences its predecessor. Raises ConnectError, KafkaException or RunFailure."""
        self._beat = task.beat
        self._report = task.report
        self._by_key = config["partitions"] == "by-key"
        target = TargetCluster(config, task.worker)
        self._topics = TargetTopics(config, task, target)
        self._kept_topic = KeptTopic(task.connector, target)
        self._log = _log.bind(connector=task.connector, task=task.task)
        self._target = target
        self._claims: Claims | None = None
        self._kept: dict[TopicPartition, KeptOffset] = {}
        self._source = task.source
        self._assigned: set[TopicPartition] = set()
        self._aside = TopicsAside()
        self._written = False
        self._spent: RunFailure | None = None
        self.keeps_offsets = self.hides_until_commit = exactly_once
        self._producer = self._open(target, config, task, exactly_once=exactly_once)
        near = merged(task.worker, config, "producer").get(SERVERS) == target.producer.get(SERVERS)
        if exactly_once and near:  # dead letters are for the worker's own cluster
            self.letter_outlet = self._producer
        try:
            self._producer.fence()
            if exactly_once:
                self._kept_topic.ensure(self._producer)
        except BaseException:
            self._producer.close()
            raise

    def _open(
        self, target: TargetCluster, config: Mapping[str, str], task: SinkTask, *, exactly_once: bool
    ) -> RunProducer:
        client_id, control = f"connector-sink-producer-{task.connector}-{task.task}", _Beats(task.beat)
        if not exactly_once:
            return AtLeastOnceProducer(producer_options(target.producer, client_id=client_id), control)
        interval = commit_interval_seconds(task.worker, config)
        options = producer_options(
            target.producer,
            client_id=client_id,
            transactional_id=self._transactional_id(target, config, task),
            transaction_seconds=TRANSACTION_SECONDS + (interval if interval > 1 else 0),
        )
        assert options.settings.transactional_id is not None
        self._claims = Claims(
            self._kept_topic, options.settings.transactional_id, commit=self._commit, fence=self._fence, beat=task.beat
        )
        self.zombie_seconds = options.settings.transaction_timeout_ms / 1000 + CLEANUP_SECONDS
        return TransactionalProducer(options, control, commits_when_full=True)

    @property
    def full(self) -> bool:
        """Whether, while the target cluster is slow, it has enough for a transaction."""
        return self._producer.full

    @property
    def most_bytes(self) -> int | None:
        """The bytes that the target cluster takes in time: each write goes into one transaction."""
        return self._producer.read_bytes

    @staticmethod
    def _transactional_id(target: TargetCluster, config: Mapping[str, str], task: SinkTask) -> str:
        """Returns an id of worker cluster, connector and task; also of the source cluster if that differs from the
        target, since tasks that read other clusters may have the same names there."""
        worker = task.worker.get("group.id", "").strip() or "connect"
        name = f"{worker}-{task.connector}-{task.task}-sink"
        source = merged(task.worker, config, "consumer")
        if source.get(SERVERS) == target.producer.get(SERVERS):
            return name
        return f"{name}-{KAFKA_LOOP.call(source_cluster(source), task.beat)}"

    def _fence(self, transactional_ids: Collection[str]) -> None:
        fencing = fence_all(
            self._target.producer, sorted(transactional_ids), client_id="connector-sink-fencing", seconds=FENCE_SECONDS
        )
        KAFKA_LOOP.call(fencing, self._beat)

    def take_over(self, assignment: Assignment) -> Mapping[TopicPartition, KeptOffset]:
        """Returns the offsets kept on the target cluster for the partitions. Raises ConnectError, RunFailure,
        Unavailable."""
        self._raise_spent()
        assert self._claims is not None
        self._kept = self._claims.take_over(assignment)
        return dict(self._kept)

    def hand_over(self) -> None:
        """Takes the task's claims back."""
        if self._claims is not None and self._spent is None:
            self._claims.hand_over()

    def assigned(self, partitions: Mapping[TopicPartition, int | None]) -> None:
        """Notes the assignment, and tries topics set aside again, since all partitions are read."""
        self._assigned = set(partitions)
        self._aside.forget()

    def idle(self) -> None:
        """Tries topics set aside again when that is due."""
        if self._source is not None and (due := self._aside.due()):
            self._source.resume(due)

    def waits_for(self) -> str:
        """Returns a text about the topics set aside, which wait for their targets."""
        return self._aside.text()

    def aside(self) -> Mapping[str, int]:
        """Returns the counts of partitions set aside, by topic."""
        return self._aside.counts()

    def write(self, batch: SinkBatch) -> None:
        """Queues the records. Raises ConnectError, KafkaException or RunFailure."""
        self._raise_spent()
        origin = batch.origin
        assert origin is not None
        assert batch.keys is not None
        self.idle()
        names, left_out = self._targets(origin)  # before the transaction
        self.left_out = len(left_out)
        self._written = True
        left_out |= self._too_large(batch.values.values, batch.keys.values, origin)
        if len(names) == 1 and not left_out:
            (name,) = names.values()
            self._send(name, batch.values.values, batch.keys.values, origin)
            return
        for topic, name in names.items():
            at = [
                index
                for index, origin_topic in enumerate(origin.topics)
                if origin_topic == topic and index not in left_out
            ]
            values, keys = _picked(batch.values.values, at), _picked(batch.keys.values, at)
            columns = (origin.topics, origin.partitions, origin.offsets, origin.timestamps_ms, origin.headers)
            self._send(name, values, keys, Origin(*(_picked(column, at) for column in columns)))

    def _targets(self, origin: Origin) -> tuple[dict[str, str], set[int]]:
        """Returns each topic's target, and the records of partitions that have no target and are set aside."""
        names: dict[str, str] = {}
        left_out: set[int] = set()
        topics = dict.fromkeys(origin.topics)
        for topic in topics:
            last = max(origin.partitions if len(topics) == 1 else _of_topic(origin, topic))
            try:
                names[topic] = self._topics.name(topic, self._producer, last)
            except (TopicRefused, RunFailure, ProduceFailure) as error:
                if not refuses_topic(error):
                    raise
                first = error.there if isinstance(error, FewPartitions) else 0
                left_out |= self._set_aside(topic, first, origin, error)
                if first:
                    names[topic] = self._topics.name(topic, self._producer, first - 1)
        if self._aside:
            at = zip(origin.topics, origin.partitions, strict=True)
            self._aside.taken({TopicPartition(*partition) for n, partition in enumerate(at) if n not in left_out})
        return names, left_out

    def _set_aside(self, topic: str, first: int, origin: Origin, error: Exception) -> set[int]:
        """Sets aside the topic's partitions from `first` on: they are read again, from their first record here, once
        the target may take them. Returns the places of their records. Raises the error if the task has no other
        partitions."""
        aside = {partition for partition in self._assigned if partition.topic == topic and partition.partition >= first}
        if self._source is None or not self._assigned - aside - self._aside.partitions:
            raise error
        at = list(zip(origin.topics, origin.partitions, strict=True))
        theirs = {
            n: TopicPartition(*partition) for n, partition in enumerate(at) if TopicPartition(*partition) in aside
        }
        self._source.pause(aside)
        for n in sorted(theirs, reverse=True):  # the last seek of each partition is to its first record
            self._source.seek(theirs[n], origin.offsets[n])
        self._aside.put(aside, str(error))
        return set(theirs)

    def _too_large(self, values: list[bytes | None], keys: list[bytes | None], origin: Origin) -> set[int]:
        """Returns the records that are too large for the target's producer; reports each."""
        headers = [header or () for header in origin.headers] if any(origin.headers) else None
        sizes = Sizes(self._producer.request_bytes)
        large: set[int] = set()
        if may_be_over(values, keys, headers, sizes.least):
            for index, (value, key) in enumerate(zip(values, keys, strict=True)):
                fault = sizes.fault(key, value, origin.headers[index])
                if fault is not None:
                    self._report(index, fault)
                    large.add(index)
        return large

    def _send(self, name: str, values: list[bytes | None], keys: list[bytes | None], origin: Origin) -> None:
        batch = SourceBatch(
            name,
            Column(values),
            Column(keys),
            partitions=None if self._by_key else origin.partitions,
            timestamps_ms=origin.timestamps_ms,
            headers=[h or () for h in origin.headers] if any(origin.headers) else None,
            raw=True,
        )
        self._producer.send(batch, values, keys)

    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        """Commits records and new offsets in one transaction. Raises KafkaException or RunFailure.

        If the producer becomes unusable with this commit, the commit still counts: only the next use fails.
        """
        if self._spent is not None and clean and not self._written:
            return  # only a later mirrored offset would be kept, which is useful but never needed
        self._raise_spent()
        news = (
            {p: offset for p, offset in offsets.items() if self._kept.get(p) != offset}
            if self._claims is not None
            else {}
        )
        if not news and not self._written:
            return
        self._commit(self._claims.kept(news) if self._claims is not None else [])
        self._kept.update(news)
        self._written = False

    def _commit(self, records: Sequence[OffsetRecord]) -> None:
        """Commits these records of the kept topic with all written records."""
        try:
            self._producer.commit(self._kept_topic.name, records)
        except RunFailure as failure:
            if not self._producer.committed:
                raise
            self._log.warning("producer_given_up", why=str(failure))
            self._spent = failure

    def _raise_spent(self) -> None:
        if self._spent is not None:
            raise self._spent

    def close(self) -> None:
        """Aborts uncommitted records, and closes the producer."""
        self._producer.abort()
        self._producer.close()


class _Beats(Control):
    """Lets a producer beat for its writer's run."""

    def __init__(self, beat: Callable[[], None]) -> None:
        super().__init__()
        self._run_beat = beat

    def beat(self) -> None:
        self._run_beat()


def _of_topic(origin: Origin, topic: str) -> list[int]:
    """Returns the partitions of a topic's records."""
    return [
        number for origin_topic, number in zip(origin.topics, origin.partitions, strict=True) if origin_topic == topic
    ]


def _picked(column: Sequence[Any], at: list[int]) -> list[Any]:
    return [column[index] for index in at]

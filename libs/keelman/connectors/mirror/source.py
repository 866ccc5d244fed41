"""MirrorSource: copies topics of another Kafka cluster record by record, with keys, headers and timestamps."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any

from keelman.connect.config.connector_keys import common_keys
from keelman.connect.config.definition import ConfigDef
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.offsets import AlteredOffsets, in_json
from keelman.connect.plugin import Configured, Connector, Direction, Reader
from keelman.connect.records import Offset, Partition, TopicPartition
from keelman.connect.watches import TopicWatch, Watch
from keelman.connectors.mirror.clusters import CLUSTERS, Glances
from keelman.connectors.mirror.config import (
    MIRROR,
    admin_settings,
    client_properties,
    consumer_settings,
    producer_settings,
    reader_properties,
    source_keys,
)
from keelman.connectors.mirror.login import addresses, completed
from keelman.connectors.mirror.offsets import backlogs, check_mirrored, dealt
from keelman.connectors.mirror.policy import IDENTITY_POLICY, policy_for
from keelman.connectors.mirror.reader import MirrorReader, starts_at
from keelman.connectors.mirror.syncs import OffsetSyncs
from keelman.connectors.mirror.topics import MirrorTopics
from keelman.kafka.fetching.isolation import reads_committed
from keelman.model.errors import KeelmanError

ASSIGNED = "task.assigned.partitions"
SOURCE_SERVERS = "source.cluster.bootstrap.servers"
_TENDED = ("refresh.topics", "sync.topic.configs", "sync.topic.acls")
_OLD_NAMES = {"topics.blacklist": "topics.exclude", "config.properties.blacklist": "config.properties.exclude"}


class MirrorSource(Connector):
    """MirrorMaker 2's source connector: its keys, its offsets, its topics.

    Records are copied unchanged, whatever the converters; MirrorMaker is always run with ByteArrayConverter. Only
    committed records are, unless `source.consumer.isolation.level` changes that: so delivery is exactly once by
    default.
    """

    names = (f"{MIRROR}.MirrorSourceConnector", "MirrorSourceConnector", "MirrorSource")
    version = "4.3.0"
    direction = Direction.SOURCE
    runs_on = "anywhere"
    planning_keys = frozenset(
        {"topics", "topics.exclude", "topics.blacklist"}
        | {f"{kind}.enabled" for kind in _TENDED}
        | {f"{kind}.interval.seconds" for kind in _TENDED}
    )

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns MirrorMaker 2's keys, which include those of every connector."""
        return common_keys() + source_keys()

    @classmethod
    def completed(cls, config: Mapping[str, str], worker: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the configuration with the worker's login for clients that call the worker's own brokers."""
        return completed(config, worker)

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[ConfigValueError]:
        """Refuses to mirror a cluster into itself under the same names: its topics would grow without end."""
        written = config.get("producer.override.bootstrap.servers") or config.get("target.cluster.bootstrap.servers")
        named = config.get("replication.policy.class", "").strip() == IDENTITY_POLICY
        if named and not config.get("transforms") and addresses(written) & addresses(config.get(SOURCE_SERVERS)):
            text = f"{SOURCE_SERVERS} names the cluster that is written to: its topics would be copied to themselves"
            return [ConfigValueError("replication.policy.class", IDENTITY_POLICY, text)]
        return ()

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """Returns tasks with the source cluster's partitions, dealt out one by one; no task without partitions."""
        parsed = _parsed(config)
        if not parsed["enabled"]:
            return []
        partitions = _topics(config).partitions()
        count = min(max_tasks, len(partitions))
        return [
            {**config, ASSIGNED: ",".join(map(str, partitions[task::count])), "task.index": str(task)}
            for task in range(count)
        ]

    @classmethod
    def alter_offsets(cls, config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
        """Checks that the offsets are positions in the source cluster's topics."""
        return check_mirrored(offsets)

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """Returns True if only committed records are read."""
        return reads_committed(client_properties(config, "source", "consumer"), default="read_committed")

    @classmethod
    def refresh_seconds(cls, config: Mapping[str, str]) -> float | None:
        """Returns the shortest enabled interval."""
        parsed = _parsed(config)
        intervals = [float(parsed[f"{kind}.interval.seconds"]) for kind in _TENDED if parsed[f"{kind}.enabled"]]
        return max(1.0, min(intervals)) if parsed["enabled"] and intervals else None

    @classmethod
    def tend(cls, config: Mapping[str, str]) -> None:
        """Brings the copies' topics in line with the source's. Raises RetriableConnectError."""
        parsed = _parsed(config)
        if parsed["enabled"]:
            _topics(config).tend()

    @classmethod
    def tend_again(cls, config: Mapping[str, str], tasks: Sequence[Mapping[str, str]]) -> bool:
        """Tends only the topics that are mirrored already, if topics are not refreshed; else returns False. Raises
        RetriableConnectError."""
        mirrored = _mirrored(config, tasks)
        if mirrored is None:
            return False
        _topics(config, mirrored).tend()
        return True

    @classmethod
    def settled(cls, asked: Sequence[Configured]) -> list[bool]:
        """Returns for each connector, by one look at the clusters for all, whether there is nothing to tend and its
        tasks have all partitions to mirror, or keep theirs."""
        glances, looks = Glances(), {}
        for number, (config, tasks) in enumerate(asked):
            with contextlib.suppress(ConnectError, KeelmanError):
                at = cache(partial(glances.at, config))
                look = MirrorTopics(_parsed(config), at, _mirrored(config, tasks))
                for side, topics in look.compared().items():
                    at(side).want(topics)
                looks[number] = look
        keeping = [False] * len(asked)
        for number, look in looks.items():
            with contextlib.suppress(ConnectError, KeelmanError):
                keeps = look.only is not None or sorted(_assigned(asked[number][1])) == look.partitions()
                keeping[number] = keeps and not look.changes()
        return keeping

    @classmethod
    def open_reader(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Reader:
        """Returns the reader of a task's partitions. Raises ConnectError for illegal offsets."""
        parsed = _parsed(config)
        alias, policy = parsed["source.cluster.alias"], policy_for(parsed)
        side = parsed["offset-syncs.topic.location"]
        syncs = None
        if parsed["emit.offset-syncs.enabled"]:
            other = parsed["target.cluster.alias"] if side == "source" else alias
            settings = producer_settings(config, side)
            syncs = OffsetSyncs(settings, policy.offset_syncs_topic(other), parsed["offset.lag.max"])
        return MirrorReader(
            reader_properties(config),
            alias,
            lambda topic: policy.remote_topic(alias, topic),
            _starts(config, alias, offset),
            syncs=syncs,
            plan=lambda topic: _topics(config).plan(topic),
        )

    @classmethod
    def resting(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Watch | None:
        """Returns a watch on the ends of its partitions: behind the last copied record, or at offset 0 if no record was
        copied yet and a reader would begin there."""
        starts = _starts(config, config.get("source.cluster.alias", "").strip(), offset)
        properties = reader_properties(config)
        new = [partition for partition, at in starts.items() if at is None]
        if len(new) == len(starts) or (new and starts_at(properties) != "earliest"):
            return None
        return TopicWatch(
            properties, {partition: 0 if at is None else int(at["offset"]) + 1 for partition, at in starts.items()}
        )

    @classmethod
    def split(
        cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None], *, slots: int, least: int
    ) -> list[dict[str, str]]:
        """Splits by partition, so that every partition keeps its order: each part about the same number of records."""
        starts = _starts(config, _parsed(config)["source.cluster.alias"], offset)
        if len(starts) < 2:
            return []
        settings = consumer_settings(config)
        if str(settings.get("auto.offset.reset", "earliest")) != "earliest":
            starts = {partition: at for partition, at in starts.items() if at is not None}
        behind = backlogs(settings, admin_settings(config, "source"), starts)
        parts = dealt(
            {partition: behind.get(partition, 0) for partition in _assigned([config])}, slots=slots, least=least
        )
        return [{ASSIGNED: ",".join(map(str, part))} for part in parts]


def _starts(
    config: Mapping[str, str], alias: str, offset: Callable[[Partition], Offset | None]
) -> dict[TopicPartition, Offset | None]:
    """Returns the task's partitions with their committed offsets, those of the last copied records."""
    return {
        partition: _checked(offset({"cluster": alias, "partition": partition.partition, "topic": partition.topic}))
        for partition in _assigned([config])
    }


def _assigned(tasks: Sequence[Mapping[str, str]]) -> list[TopicPartition]:
    return [decoded(text) for task in tasks for text in task.get(ASSIGNED, "").split(",") if text]


def _mirrored(config: Mapping[str, str], tasks: Sequence[Mapping[str, str]]) -> frozenset[str] | None:
    """Returns the topics that these tasks mirror if no others may be added (`refresh.topics.enabled=false`), else
    None."""
    return (
        None
        if _parsed(config)["refresh.topics.enabled"]
        else frozenset(partition.topic for partition in _assigned(tasks))
    )


def decoded(text: str) -> TopicPartition:
    """Parses a partition in `task.assigned.partitions`, e.g. `orders-3`. Raises ConnectError."""
    topic, _, number = text.strip().rpartition("-")
    if not topic or not number.isdigit():
        raise ConnectError(f"{text!r} in {ASSIGNED} is not a partition, <topic>-<number>")
    return TopicPartition(topic, int(number))


def _checked(offset: Offset | None) -> Offset | None:
    if offset is None:
        return None
    value: Any = offset.get("offset")
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConnectError(f"The source offset is not a number: {in_json(offset)}")
    return None if value < 0 else offset


def _parsed(config: Mapping[str, str]) -> Mapping[str, Any]:
    return _parsed_once(frozenset(config.items()))


@lru_cache(maxsize=64)  # each look calls it several times, and the looks of all connectors run concurrently
def _parsed_once(config: frozenset[tuple[str, str]]) -> Mapping[str, Any]:
    properties = dict(config)
    for old, new in _OLD_NAMES.items():
        if old in properties and new not in properties:
            properties[new] = properties[old]
    return source_keys().parse(properties)


def _topics(config: Mapping[str, str], only: Collection[str] | None = None) -> MirrorTopics:
    return MirrorTopics(_parsed(config), cache(lambda side: CLUSTERS.at(admin_settings(config, side))), only)

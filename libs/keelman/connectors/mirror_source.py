"""MirrorSource: topics of another Kafka cluster, copied record by record with all that they carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from keelman.connect.config.connector_keys import common_keys
from keelman.connect.config.definition import ConfigDef
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.offsets import AlteredOffsets, in_json
from keelman.connect.plugin import Connector, Direction, Reader
from keelman.connect.records import Offset, Partition, TopicPartition
from keelman.connectors.mirror_config import (
    MIRROR,
    admin_settings,
    client_properties,
    consumer_settings,
    producer_settings,
    reader_properties,
    source_keys,
)
from keelman.connectors.mirror_offsets import check_mirrored
from keelman.connectors.mirror_policy import IDENTITY_POLICY, policy_for
from keelman.connectors.mirror_reader import MirrorReader
from keelman.connectors.mirror_split import backlogs, dealt
from keelman.connectors.mirror_syncs import OffsetSyncs
from keelman.connectors.mirror_topics import MirrorTopics

ASSIGNED = "task.assigned.partitions"
SOURCE_SERVERS = "source.cluster.bootstrap.servers"
_TENDED = ("refresh.topics", "sync.topic.configs", "sync.topic.acls")
_OLD_NAMES = {"topics.blacklist": "topics.exclude", "config.properties.blacklist": "config.properties.exclude"}


class MirrorSource(Connector):
    """MirrorMaker 2's source connector: its keys, its offsets, its topics.

    Records are copied as they are, whatever the converters; MirrorMaker is always run with ByteArrayConverter. Only
    committed ones are, unless `source.consumer.isolation.level` says otherwise: so delivery is exactly once by default.
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
        """MirrorMaker 2's, which have those of every connector among them."""
        return common_keys() + source_keys()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[ConfigValueError]:
        """A cluster that is mirrored into itself under the same names would have its topics grow without end."""
        written = config.get("producer.override.bootstrap.servers") or config.get("target.cluster.bootstrap.servers")
        named = config.get("replication.policy.class", "").strip() == IDENTITY_POLICY
        if named and not config.get("transforms") and _servers(written) & _servers(config.get(SOURCE_SERVERS)):
            text = f"{SOURCE_SERVERS} names the cluster that is written to: its topics would be copied to themselves"
            return [ConfigValueError("replication.policy.class", IDENTITY_POLICY, text)]
        return ()

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """The source cluster's partitions, dealt out one by one; no task at all without any."""
        parsed = _parsed(config)
        if not parsed["enabled"]:
            return []
        found = _topics(parsed, config).partitions()
        count = min(max_tasks, len(found))
        return [
            {**config, ASSIGNED: ",".join(map(str, found[task::count])), "task.index": str(task)}
            for task in range(count)
        ]

    @classmethod
    def alter_offsets(cls, config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
        """Positions in the source cluster's topics."""
        return check_mirrored(offsets)

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """When only committed records are read."""
        asked = client_properties(config, "source", "consumer").get("isolation.level", "read_committed")
        return asked.strip() == "read_committed"

    @classmethod
    def refresh_seconds(cls, config: Mapping[str, str]) -> float | None:
        """The shortest of the intervals that are on."""
        parsed = _parsed(config)
        found = [float(parsed[f"{kind}.interval.seconds"]) for kind in _TENDED if parsed[f"{kind}.enabled"]]
        return max(1.0, min(found)) if parsed["enabled"] and found else None

    @classmethod
    def tend(cls, config: Mapping[str, str]) -> None:
        """Brings the copies' topics in line with the source's. Raises RetriableConnectError."""
        parsed = _parsed(config)
        if parsed["enabled"]:
            _topics(parsed, config).tend()

    @classmethod
    def open_reader(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Reader:
        """The reader of a task's partitions. Raises ConnectError for offsets that are none."""
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
            plan=lambda topic: _topics(parsed, config).plan(topic),
        )

    @classmethod
    def split(
        cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None], *, slots: int, least: int
    ) -> list[dict[str, str]]:
        """By partition, so that every partition keeps its order: each part about the same number of records."""
        starts = _starts(config, _parsed(config)["source.cluster.alias"], offset)
        if len(starts) < 2:
            return []
        settings = consumer_settings(config)
        if str(settings.get("auto.offset.reset", "earliest")) != "earliest":
            starts = {one: at for one, at in starts.items() if at is not None}
        behind = backlogs(settings, admin_settings(config, "source"), starts)
        everything = [decoded(text) for text in config.get(ASSIGNED, "").split(",") if text]
        parts = dealt({one: behind.get(one, 0) for one in everything}, slots=slots, least=least)
        return [{ASSIGNED: ",".join(map(str, part))} for part in parts]


def _starts(
    config: Mapping[str, str], alias: str, offset: Callable[[Partition], Offset | None]
) -> dict[TopicPartition, Offset | None]:
    """The task's partitions with their committed offsets, those of the last records copied."""
    partitions = [decoded(text) for text in config.get(ASSIGNED, "").split(",") if text]
    return {
        one: _checked(offset({"cluster": alias, "partition": one.partition, "topic": one.topic})) for one in partitions
    }


def _servers(text: str | None) -> set[str]:
    return {one.strip().lower() for one in (text or "").split(",") if one.strip()}


def decoded(text: str) -> TopicPartition:
    """A partition in `task.assigned.partitions`, e.g. `orders-3`. Raises ConnectError."""
    topic, _, number = text.strip().rpartition("-")
    if not topic or not number.isdigit():
        raise ConnectError(f"{text!r} in {ASSIGNED} is no partition of a topic")
    return TopicPartition(topic, int(number))


def _checked(offset: Offset | None) -> Offset | None:
    if offset is None:
        return None
    value: Any = offset.get("offset")
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConnectError(f"Source offset is no number: {in_json(offset)}")
    return None if value < 0 else offset


def _parsed(config: Mapping[str, str]) -> Mapping[str, Any]:
    return _parsed_once(frozenset(config.items()))


@lru_cache(maxsize=64)  # each look asks several times, and as many looks as there are connectors go on side by side
def _parsed_once(config: frozenset[tuple[str, str]]) -> Mapping[str, Any]:
    known = dict(config)
    for old, new in _OLD_NAMES.items():
        if old in known and new not in known:
            known[new] = known[old]
    return source_keys().parse(known)


def _topics(parsed: Mapping[str, Any], config: Mapping[str, str]) -> MirrorTopics:
    return MirrorTopics(parsed, admin_settings(config, "source"), admin_settings(config, "target"))

"""Translates Ohara's settings of a topic into the spec of ours that they are kept in, and back. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from keelman.api.connect.v1.topic_pb2 import Topic, TopicSpec
from keelman.gateway.ohara.definitions.config import kafka_name
from keelman.gateway.ohara.definitions.topic import (
    BROKER_CLUSTER_KEY,
    CLEANUP_POLICY,
    COMPRESSION,
    DIRTY_RATIO,
    PARTITIONS,
    REPLICATIONS,
    RETENTION_TIME,
    SEGMENT_BYTES,
    SEGMENT_MS,
    SEGMENT_TIME,
    TOPIC,
)
from keelman.gateway.ohara.state.structs import struct_of, value_of
from keelman.gateway.ohara.wire.keys import API, ObjectKey
from keelman.gateway.ohara.wire.values import Settings, default_of

SETTINGS = "settings"
"""In a topic's extra: all of its settings as they were sent."""
RETENTION_MS = "retention.ms"
_TIMES = {SEGMENT_TIME: SEGMENT_MS, RETENTION_TIME: RETENTION_MS}
"""Durations, and the configuration in which Kafka has them in milliseconds."""
_DIRECT = (SEGMENT_BYTES, SEGMENT_MS, CLEANUP_POLICY, DIRTY_RATIO, COMPRESSION)
"""Settings that have the same name in Kafka."""
_UNITS = {
    "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1, "µs": 0.001, "ns": 0.000_001,
}  # fmt: skip
_LONG_UNITS = (
    ("day", "d"), ("hour", "h"), ("milli", "ms"), ("micro", "µs"), ("nano", "ns"), ("min", "m"), ("sec", "s"),
)  # fmt: skip


def spec_of(key: ObjectKey, settings: Settings, broker_cluster: str) -> TopicSpec:
    """The spec of a topic with these settings."""
    return TopicSpec(
        broker_cluster=broker_cluster,
        topic=kafka_name(key),
        partitions=settings[PARTITIONS],
        replication_factor=settings[REPLICATIONS],
        config=config_of(settings),
        origin=key.origin,
        extra=struct_of({SETTINGS: {k: v for k, v in settings.items() if k not in ("group", "name")}}),
    )


def config_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """The configuration that Kafka gets."""
    config = {key: _text(settings[key]) for key in _DIRECT if key in settings}
    for key, kafka in _TIMES.items():
        if key in settings:
            config[kafka] = str(milliseconds(settings[key]))
    return config


def settings_of(key: ObjectKey, topic: Topic, broker: ObjectKey | None) -> Settings:
    """The settings of a topic: as sent, and where somebody has changed them elsewhere, as they are."""
    spec = topic.spec
    if spec.origin.api == API:
        stored = dict(value_of(spec.extra).get(SETTINGS, {}))
    else:
        stored = {setting.key: default for setting in TOPIC if (default := default_of(setting)) is not None}
        stored |= {
            "tags": {k: v for k, v in spec.labels.items() if v},
            REPLICATIONS: _replicas(topic),
            PARTITIONS: len(_partitions(topic)) or 1,
        }
    stored |= {name: value for name, value in ((PARTITIONS, spec.partitions), (REPLICATIONS, spec.replication_factor))
             if value}  # fmt: skip
    times = {kafka for name, kafka in _TIMES.items() if name in stored}
    stored |= {name: _value(name, spec.config[name]) for name in _DIRECT if name in spec.config and name not in times}
    if broker is not None:
        stored[BROKER_CLUSTER_KEY] = broker.json
    return stored | key.json


def milliseconds(duration: str) -> int:
    """The milliseconds of a duration such as "7 days"."""
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?) ?(\D+)", duration)
    assert match is not None, "it was checked"
    number, unit = match.groups()
    short = next((short for word, short in _LONG_UNITS if unit.startswith(word)), unit)
    return round(float(number) * _UNITS[short])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _value(name: str, text: str) -> Any:
    try:
        match name:
            case "segment.bytes" | "segment.ms":
                return int(text)
            case "min.cleanable.dirty.ratio":
                return float(text)
    except ValueError:
        return text
    return text


def _partitions(topic: Topic) -> list[Any]:
    return list(topic.status.brokers.partitions)


def _replicas(topic: Topic) -> int:
    return max((len(partition.replicas) for partition in _partitions(topic)), default=0) or 1

"""Five million records at full speed: Kafka to Kafka, file to Kafka, Kafka to file."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.measuring.data import LINE_BYTES, PARTITIONS, Topics, arrival_rate
from bench.measuring.systems import BATCHES, System, create, delete

NUMBERS = itertools.count(1)
FILE = "org.apache.kafka.connect.file.FileStream"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
SHIPPED = "as shipped"
OVERRIDES = {f"producer.override.{key}": value for key, value in BATCHES.items()}
MORE_POLLED = {"source.consumer.max.poll.records": "5000"}
BY_INTERVAL = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "500"}

JSON = "org.apache.kafka.connect.json.JsonConverter"
TRANSFORMS = "org.apache.kafka.connect.transforms"
CHAIN = {
    "value.converter": JSON,
    "transforms": "hoist,insert",
    "transforms.hoist.type": f"{TRANSFORMS}.HoistField$Value",
    "transforms.hoist.field": "line",
    "transforms.insert.type": f"{TRANSFORMS}.InsertField$Value",
    "transforms.insert.static.field": "source",
    "transforms.insert.static.value": "file",
}

MIRROR_PEERS: Mapping[str, Mapping[str, str]] = {
    SHIPPED: {},
    "1 MB batches, 5000 polled": {**OVERRIDES, **MORE_POLLED},
    "1 MB batches, 5000 polled, interval": {**OVERRIDES, **MORE_POLLED, **BY_INTERVAL},
}
FILE_SOURCE_BEST_PEER: Mapping[str, Mapping[str, str]] = {"1 MB batches": OVERRIDES}
FILE_SOURCE_PEERS: Mapping[str, Mapping[str, str]] = {SHIPPED: {}, **FILE_SOURCE_BEST_PEER}
FILE_SINK_PEERS: Mapping[str, Mapping[str, str]] = {
    SHIPPED: {},
    "5000 polled": {"consumer.override.max.poll.records": "5000"},
}


@dataclass(frozen=True, slots=True)
class Load:
    """The data that all the copies of a run copy."""

    topics: Topics
    bootstrap: str
    count: int
    topic: str
    file: Path
    folder: Path
    replication: int = 1


def mirror_config(load: Load, alias: str, more: Mapping[str, str]) -> dict[str, str]:
    """Kafka to Kafka: both clusters are the one broker, so the copy gets the alias as prefix."""
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "tasks.max": "2",
        "source.cluster.alias": alias,
        "target.cluster.alias": "here",
        "source.cluster.bootstrap.servers": load.bootstrap,
        "target.cluster.bootstrap.servers": load.bootstrap,
        "source.consumer.isolation.level": "read_committed",
        "topics": load.topic,
        "replication.factor": str(load.replication),
        "offset-syncs.topic.replication.factor": str(load.replication),
        "sync.topic.acls.enabled": "false",
        "key.converter": BYTES,
        "value.converter": BYTES,
        **more,
    }


async def mirror(system: System, load: Load, more: Mapping[str, str]) -> float:
    """Records a second that become visible to readers of committed records."""
    number = next(NUMBERS)
    alias, name = f"m{number}", f"mirror-{number}"
    copy = f"{alias}.{load.topic}"
    load.topics.create(copy)
    await create(system, name, mirror_config(load, alias, more))
    try:
        return await arrival_rate(lambda: load.topics.visible(copy, list(range(PARTITIONS))), load.count)
    finally:
        await delete(system, name)
        load.topics.delete(copy)


async def file_source(system: System, load: Load, more: Mapping[str, str]) -> float:
    """Records a second from a file that become visible to readers of committed records."""
    number = next(NUMBERS)
    name = topic = f"lines-{number}"
    load.topics.create(topic)
    config = {"connector.class": f"{FILE}SourceConnector", "file": str(load.file), "topic": topic, "tasks.max": "1"}
    await create(system, name, {**config, "key.converter": STRING, "value.converter": STRING, **more})
    try:
        return await arrival_rate(lambda: load.topics.visible(topic, list(range(PARTITIONS))), load.count)
    finally:
        await delete(system, name)
        load.topics.delete(topic)


async def json_smt(system: System, load: Load, more: Mapping[str, str]) -> float:
    """The same through HoistField, InsertField and JSON with its schema."""
    return await file_source(system, load, {**CHAIN, **more})


async def file_sink(system: System, load: Load, more: Mapping[str, str]) -> float:
    """Records a second, written to a file."""
    number = next(NUMBERS)
    name, file = f"sink-{number}", load.folder / f"sink-{number}.txt"
    config = {
        "connector.class": f"{FILE}SinkConnector",
        "file": str(file),
        "topics": load.topic,
        "tasks.max": "1",
        "key.converter": STRING,
        "value.converter": STRING,
    }
    await create(system, name, {**config, **more})
    try:
        size = load.count * LINE_BYTES
        return await arrival_rate(lambda: file.stat().st_size if file.exists() else 0, size, per=LINE_BYTES)
    finally:
        await delete(system, name)
        file.unlink(missing_ok=True)

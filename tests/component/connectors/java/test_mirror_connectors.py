"""MirrorMaker's own connectors, from Connect's jars, on a worker.

A slot is killed, a topic is created later, and a group's offsets follow.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from keelman.connectors import registry
from support.eventually import eventually
from support.java.kit import needs_java
from support.java.published import MIRROR, plugin_path
from support.kafka.topics import commit, create_topic, messages
from support.spark.service import SparkService, kill_slot_of
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, pytest.mark.slow, needs_java()]
ROOM = "org.apache.kafka.connect.mirror.Mirror"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
RECORDS = 2000
NAME = "sailing"
REMOTE = f"{NAME}a.{NAME}"
READERS = f"{NAME}-readers"


def config(bootstrap: str, kind: str) -> dict[str, str]:
    """A configuration that mirrors from `sailinga` to `sailingb`, both of which are the one broker."""
    ours = {
        f"{what}.replication.factor": "1" for what in ("offset-syncs.topic", "checkpoints.topic", "heartbeats.topic")
    }
    return {
        "connector.class": registry.java_name(f"{ROOM}{kind}Connector"),
        "tasks.max": "2",
        **{f"{role}.converter": BYTES for role in ("key", "value", "header")},
        "source.cluster.alias": f"{NAME}a",
        "target.cluster.alias": f"{NAME}b",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "topics": f"{NAME},{NAME}-later",
        "groups": READERS,
        "replication.factor": "1",
        **ours,
        "offset.lag.max": "10",
        "refresh.topics.interval.seconds": "2",
        "refresh.groups.interval.seconds": "2",
        "sync.topic.acls.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "emit.checkpoints.interval.seconds": "1",
        "emit.heartbeats.interval.seconds": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
    }


def send(bootstrap: str, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in numbers:
        producer.produce(topic, str(number).encode(), key=b"k", partition=number % 2, headers=[("h", b"\x00\xff")])
    assert producer.flush(300) == 0


def committed(bootstrap: str, group: str, topic: str) -> int:
    """The group's offset in the topic's first partition; negative if it has none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=300)
        return int(committed.offset)
    finally:
        consumer.close()


async def test_mirror_makers_connectors(bootstrap: str, spark: SparkService, tmp_path: Path) -> None:
    path = {"plugin.path": await plugin_path(MIRROR), "keelman.plugin.answer.timeout.ms": "80000"}
    worker = WorkerProcess(tmp_path, bootstrap, "java-mirrors", spark.address, path)
    create_topic(bootstrap, NAME, 2)
    await asyncio.to_thread(send, bootstrap, NAME, range(RECORDS))
    commit(bootstrap, READERS, NAME, RECORDS // 2)

    async def read(topic: str) -> list[Any]:
        return await asyncio.to_thread(messages, bootstrap, topic)

    async def there(topic: str, count: int) -> bool:
        try:
            return len(await read(topic)) >= count
        except KafkaException:  # it does not exist yet
            return False

    async with workers(worker):
        for kind in ("Source", "Checkpoint", "Heartbeat"):
            name = f"{NAME}-{kind.lower()}"
            response = await worker.ask("PUT", f"/connectors/{name}/config", config(bootstrap, kind), timeout=300)
            assert (response.status_code, response.json().get("type")) == (201, "source"), response.text
            if kind == "Source":
                await eventually(lambda: there(REMOTE, RECORDS), what="all is mirrored")

        await asyncio.to_thread(send, bootstrap, NAME, range(RECORDS, RECORDS + 500))
        await kill_slot_of(f"{NAME}-source", spark)
        await asyncio.to_thread(send, bootstrap, NAME, range(RECORDS + 500, RECORDS + 1000))
        await eventually(lambda: there(REMOTE, RECORDS + 1000), what="all is mirrored after a kill")
        outcome = await read(REMOTE)
        assert sorted(int(message.value()) for message in outcome) == list(range(RECORDS + 1000)), "each once"
        assert all(
            (message.partition(), message.headers()) == (int(message.value()) % 2, [("h", b"\x00\xff")])
            for message in outcome
        )

        # The connector itself looks for topics, and requests new task configurations.
        await asyncio.to_thread(create_topic, bootstrap, f"{NAME}-later", 2)
        await asyncio.to_thread(send, bootstrap, f"{NAME}-later", range(100))
        later = f"{NAME}a.{NAME}-later"
        await eventually(lambda: there(later, 100), what="a topic that came later is mirrored")

        await eventually(lambda: there("heartbeats", 2), what="heartbeats are sent")
        await eventually(lambda: there(f"{NAME}a.checkpoints.internal", 1), what="a checkpoint is written")
        checkpoint = (await read(f"{NAME}a.checkpoints.internal"))[0]
        assert READERS.encode() in (checkpoint.key() or b"")

        async def follows() -> int:
            return max(0, await asyncio.to_thread(committed, bootstrap, READERS, REMOTE))

        behind = await eventually(follows, what="the group's offsets follow to the mirrored topic")
        read_before = [
            int(message.value()) for message in outcome if message.partition() == 0 and message.offset() < behind
        ]
        assert 0 < len(read_before) <= RECORDS // 2, "the mirrored topic has offsets that mark transactions, too"
        assert max(read_before) < RECORDS
        for kind in ("source", "heartbeat"):
            status = (await worker.ask("GET", f"/connectors/{NAME}-{kind}/status")).json()
            assert [task["state"] for task in status["tasks"]][:1] == ["RUNNING"], status
        assert await worker.end() == 0

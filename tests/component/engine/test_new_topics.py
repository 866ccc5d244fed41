"""A new topic of a sink's pattern is copied as soon as by a Kafka Connect worker that reads the same topics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from support.copying.harness import Run, ticket
from support.eventually import eventually
from support.java.kit import needs_java
from support.kafka.topics import create_topic
from support.servers.connect_worker import ConnectProcess

pytestmark = [pytest.mark.component, needs_java()]
NEW = 6
AGE_SECONDS = 2.0
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
STRING = "org.apache.kafka.connect.storage.StringConverter"


def sink(name: str, path: Path) -> dict[str, str]:
    return {
        "name": name,
        "connector.class": SINK,
        "file": str(path),
        "topics.regex": f"{name}-[0-9]",
        "tasks.max": "1",
        "key.converter": STRING,
        "value.converter": STRING,
        "consumer.override.metadata.max.age.ms": str(round(AGE_SECONDS * 1000)),
    }


def copied(path: Path) -> int:
    return len(path.read_text().split()) if path.exists() else 0


async def seconds_until(path: Path, count: int) -> float:
    """The time until so many lines are copied."""
    begun = time.monotonic()
    await eventually(lambda: copied(path) >= count, what=f"{path.name} has {count} lines")
    return time.monotonic() - begun


async def test_a_new_topic_of_a_pattern_is_copied_as_soon_as_by_kafka_connect(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    producer = Producer({"bootstrap.servers": bootstrap})

    def write(number: int) -> None:
        create_topic(bootstrap, f"{name}-{number}")
        producer.produce(f"{name}-{number}", b"%d" % number)
        assert producer.flush(300) == 0

    connect = ConnectProcess(tmp_path / "connect", bootstrap, f"{name}-peer")
    try:
        await connect.start()
        config = sink(name, theirs)
        await connect.ask("PUT", f"/connectors/{name}-theirs/config", {**config, "name": f"{name}-theirs"})
        run = await asyncio.to_thread(runs, ticket(bootstrap, sink(name, ours)))
        await asyncio.to_thread(write, 0)
        await asyncio.gather(seconds_until(ours, 1), seconds_until(theirs, 1))
        took: list[tuple[float, float]] = []
        for number in range(1, NEW + 1):
            await asyncio.to_thread(write, number)
            took.append(await asyncio.gather(seconds_until(ours, number + 1), seconds_until(theirs, number + 1)))
        await asyncio.to_thread(run.drain)
    finally:
        await connect.end()
    text = ", ".join(f"{mine:.1f} beside {other:.1f}" for mine, other in took)
    print(f"\nseconds, ours beside Kafka Connect's: {text}")
    assert sum(mine for mine, _ in took) < sum(other for _, other in took) + NEW, text


async def test_a_new_topic_waits_for_no_more_than_one_fetch(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    """The fetch in progress when the consumer gets its new partitions."""
    wait_seconds = 3.0
    config = sink(name, tmp_path / "out") | {
        "consumer.override.fetch.max.wait.ms": str(round(wait_seconds * 1000)),
        "consumer.override.metadata.max.age.ms": "200",
    }
    create_topic(bootstrap, f"{name}-0")
    producer = Producer({"bootstrap.servers": bootstrap})
    run = await asyncio.to_thread(runs, ticket(bootstrap, config))
    for number in range(3):
        await asyncio.to_thread(create_topic, bootstrap, f"{name}-{number + 1}")
        producer.produce(f"{name}-{number + 1}", b"%d" % number)
        assert await asyncio.to_thread(producer.flush, 60) == 0
        took = await seconds_until(tmp_path / "out", number + 1)
        assert took < 3 * wait_seconds, f"the {number + 1}. took {took:.1f} s"
    await asyncio.to_thread(run.drain)

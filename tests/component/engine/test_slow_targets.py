"""Slow targets: a client quota and a slow link. Each copy commits, and no copy run fails."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Producer

from keelman.api.copy.v1 import ticket_pb2
from keelman.connectors.mirror.source import MirrorSource
from keelman.kafka.batches.producer import BatchProducer, ProducerSettings
from keelman.kafka.batches.record_batch import encode
from keelman.kafka.leaders.client import open_client
from support.brokers.broker import proxied_broker
from support.brokers.kafka_proxy import KafkaProxy
from support.brokers.quotas import limit_producer
from support.copying.harness import Run, ticket
from support.kafka.topics import create_topic, messages
from support.proxy import Weather

pytestmark = pytest.mark.component

NUMBERS = itertools.count()
QUOTA = 100_000
BEYOND_BURST = 12 * QUOTA
"""A broker lets some ten seconds' worth pass at once."""
SOME = 4 * QUOTA
ALL = 30 * QUOTA
"""The size of the backlog: less than a producer may hold, more than a transaction can deliver."""


def lines(path: Path) -> None:
    path.write_bytes(b"".join(b"%099d\n" % number for number in range(ALL // 100)))


def fill(bootstrap: str, topic: str, batch_bytes: int) -> None:
    """Writes records of 1,000 bytes in batches of about that size."""
    producer = Producer({"bootstrap.servers": bootstrap, "batch.size": batch_bytes, "linger.ms": 200})
    for number in range(ALL // 1_000):
        producer.produce(topic, b"%01000d" % number)
    producer.flush(300)


def limit(bootstrap: str, client_id: str, bytes_per_second: int) -> None:
    """Gives a client id its quota."""
    asyncio.run(limit_producer(bootstrap, client_id, bytes_per_second))


def source(bootstrap: str, name: str, runs: Callable[..., Run], folder: Path) -> None:
    create_topic(bootstrap, name)
    lines(folder / "in.log")
    limit(bootstrap, f"connector-producer-{name}-0", QUOTA)
    config = {"name": name, "connector.class": "FileStreamSource", "file": str(folder / "in.log"), "topic": name}
    runs(ticket(bootstrap, config)).copied(BEYOND_BURST // 100)


def at_least_once_source(bootstrap: str, name: str, runs: Callable[..., Run], folder: Path) -> None:
    create_topic(bootstrap, name)
    lines(folder / "in.log")
    limit(bootstrap, f"connector-producer-{name}-0", QUOTA // 4)
    config = {"name": name, "connector.class": "FileStreamSource", "file": str(folder / "in.log"), "topic": name}
    run = runs(ticket(bootstrap, config, delivery=ticket_pb2.DELIVERY_GUARANTEE_AT_LEAST_ONCE))
    run.until_records(SOME // 4 // 100)


def source_with_intervals(bootstrap: str, name: str, runs: Callable[..., Run], folder: Path) -> None:
    create_topic(bootstrap, name)
    lines(folder / "in.log")
    limit(bootstrap, f"connector-producer-{name}-0", QUOTA)
    config = {"name": name, "connector.class": "FileStreamSource", "file": str(folder / "in.log"), "topic": name}
    boundary = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "1000"}
    run = runs(ticket(bootstrap, {**config, **boundary}))
    run.until_records(SOME // 100)


def mirror_of_large_batches(bootstrap: str, name: str, runs: Callable[..., Run], folder: Path) -> None:
    create_topic(bootstrap, name)
    fill(bootstrap, name, 300_000)
    client_id = f"connector-producer-{name}-connector-0"
    limit(bootstrap, client_id, QUOTA)
    config = {
        "name": f"{name}-connector",
        "connector.class": "MirrorSource",
        "source.cluster.alias": f"{name}-there",
        "target.cluster.alias": f"{name}-here",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "topics": name,
        "heartbeats.replication.enabled": "false",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
    }
    MirrorSource.tend(config)
    run = runs(ticket(bootstrap, MirrorSource.task_configs(config, 1)[0]))
    run.until_records(SOME // 1_000)


def kafka_sink(bootstrap: str, name: str, runs: Callable[..., Run], folder: Path) -> None:
    create_topic(bootstrap, name)
    fill(bootstrap, name, 100_000)
    limit(bootstrap, f"connector-sink-producer-{name}-out-0", QUOTA)
    config = {"name": f"{name}-out", "connector.class": "KafkaSink", "topics": name, "topic": "to-${topic}"}
    runs(ticket(bootstrap, config, worker_config={"consumer.auto.offset.reset": "earliest"})).copied(SOME // 1_000)
    ints = [int(m.value() or b"") for m in messages(bootstrap, f"to-{name}")]
    assert ints == list(range(len(ints)))


COPIES = (source, at_least_once_source, source_with_intervals, mirror_of_large_batches, kafka_sink)


def test_each_commits_under_a_quota_in_one_copy_run(
    bootstrap: str, name: str, runs: Callable[..., Run], tmp_path: Path
) -> None:
    """Several runs side by side: each waits for its own quota."""

    def copies(copy: Callable[..., None]) -> None:
        folder = tmp_path / copy.__name__
        folder.mkdir()
        copy(bootstrap, f"{name}-{copy.__name__}", runs, folder)

    with ThreadPoolExecutor(len(COPIES)) as pool:
        for done in [pool.submit(copies, copy) for copy in COPIES]:
            done.result()


@pytest.fixture(scope="module")
async def thin(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[KafkaProxy]:
    """A broker behind a link whose rate a test limits."""
    async with proxied_broker(tmp_path_factory.mktemp("broker")) as proxy:
        yield proxy


@pytest.mark.parametrize("transactional", [True, False])
async def test_a_request_that_takes_long_on_a_thin_link_is_waited_for(thin: KafkaProxy, transactional: bool) -> None:
    """Each takes 3 s, the last is answered after 9: every answer renews the wait for the others."""
    topic = f"thin{next(NUMBERS)}"
    await asyncio.to_thread(create_topic, thin.address, topic)
    client = await open_client({"bootstrap.servers": thin.address}, client_id="producer", timeout_ms=30_000)
    settings = ProducerSettings(
        f"tx-{topic}" if transactional else None,
        transaction_timeout_ms=30_000,
        delivery_timeout_ms=10_000,
        request_timeout_ms=5_000,
    )
    producer = BatchProducer(client, settings)
    try:
        await producer.fence()
        assert await producer.partitions(topic) == 1
        thin.weather = Weather(bytes_per_second=100_000)
        for _ in range(3):
            producer.send(topic, 0, encode([bytes(300_000)], now_ms=0), 1)
        await producer.flush()
        await producer.end(commit=True)
        assert producer._sender.sent == 3, "each went out once"
    finally:
        thin.weather = Weather()
        await producer.close()
    actual_messages = await asyncio.to_thread(messages, thin.address, topic)
    assert len(actual_messages) == 3

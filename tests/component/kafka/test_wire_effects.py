"""Client properties of connectors as their brokers see them: in the requests of a sink, of a mirror and of a source."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from keelman.connectors.mirror.source import MirrorSource
from support.brokers.kafka_proxy import PRODUCE, Catch, Fate
from support.copying.fed_source import Brokers
from support.copying.harness import OFFSET_PARTITIONS, OFFSET_TOPIC, Run, ticket
from support.kafka.topics import create_topic
from support.waiting import until

pytestmark = pytest.mark.component
FETCH = 1
READ = {
    "client.id": "mine",
    "client.rack": "rack-7",
    "fetch.max.wait.ms": "77",
    "fetch.min.bytes": "7",
    "fetch.max.bytes": "7000001",
    "isolation.level": "read_committed",
}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    started = Brokers(tmp_path_factory.mktemp("broker"))
    create_topic(started.bootstrap, OFFSET_TOPIC, OFFSET_PARTITIONS, **{"cleanup.policy": "compact"})
    yield started
    started.close()


def watched(brokers: Brokers, api_key: int, client_id: str) -> Catch:
    return brokers.proxy.catch(api_key, Fate.WATCH, client_id=client_id)


def read_as(request: bytes, version: int, client_id: str) -> tuple[int, ...]:
    """The wait, least and most bytes and isolation level of a Fetch request."""
    at = 4 + 2 + 2 + 4 + 2 + len(client_id) + (1 if version >= 12 else 0) + (0 if version >= 15 else 4)
    return struct.unpack_from(">iiib", request, at)


def seen(brokers: Brokers, caught: Catch) -> None:
    brokers.seen(caught)
    request = caught.request
    assert request is not None
    assert request.client_id == "mine"
    wait, least, most, isolation = read_as(request.frame, request.version, "mine")
    assert (wait <= 77, least, most, isolation) == (True, 7, 7_000_001, 1)
    assert b"rack-7" in request.frame


def fill(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, 1)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"one")
    assert producer.flush(300) == 0


def test_a_sink_reads_as_it_is_told(brokers: Brokers, name: str, runs: Callable[..., Run], tmp_path: Path) -> None:
    fill(brokers.bootstrap, name)
    config = {"name": name, "connector.class": "FileStreamSink", "file": str(tmp_path / "out"), "topics": name}
    config |= {f"consumer.override.{key}": value for key, value in READ.items()}
    caught = watched(brokers, FETCH, "mine")
    run = runs(ticket(brokers.bootstrap, config))
    seen(brokers, caught)
    run.copied(1)


def test_a_mirror_reads_as_it_is_told(brokers: Brokers, name: str, runs: Callable[..., Run]) -> None:
    fill(brokers.bootstrap, name)
    config = {
        "name": name,
        "connector.class": "MirrorSource",
        "source.cluster.alias": "there",
        "source.cluster.bootstrap.servers": brokers.bootstrap,
        "target.cluster.bootstrap.servers": brokers.bootstrap,
        "topics": name,
        "emit.offset-syncs.enabled": "false",
        "replication.factor": "1",
        **{f"source.consumer.{key}": value for key, value in READ.items()},
    }
    MirrorSource.tend(config)
    caught = watched(brokers, FETCH, "mine")
    run = runs(ticket(brokers.bootstrap, MirrorSource.task_configs(config, 1)[0]))
    seen(brokers, caught)
    run.copied(1)


def test_a_source_writes_as_it_is_told_but_under_its_own_id_and_to_all_replicas(
    brokers: Brokers, name: str, runs: Callable[..., Run]
) -> None:
    create_topic(brokers.bootstrap, name, 1)
    config = {
        "name": name,
        "connector.class": "VerifiableSource",
        "topic": name,
        "max.records": "5",
        "output.file": "/dev/null",
        "producer.override.client.id": "mine",
        "producer.override.request.timeout.ms": "7000",
        "producer.override.delivery.timeout.ms": "20000",
        "producer.override.transaction.timeout.ms": "77000",
        "producer.override.transactional.id": "other",
        "producer.override.acks": "1",
    }
    caught = watched(brokers, PRODUCE, "mine")
    run = runs(ticket(brokers.bootstrap, config))
    brokers.seen(caught)
    run.copied(5)
    request = until(lambda: caught.request, "it was seen")
    assert (request.client_id, request.transactional_id) == ("mine", f"test-workers-{name}-0")
    at = request.frame.index(request.transactional_id.encode()) + len(request.transactional_id)
    assert struct.unpack_from(">h", request.frame, at) == (-1,), "acks"

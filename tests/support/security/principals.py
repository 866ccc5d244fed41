"""Worker clusters as principals of managed brokers: an installation with such brokers, and a program that has the
certificate of a worker cluster."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import javaproperties
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from keelman.api.connect.v1 import broker_cluster_pb2 as brokers
from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers_pb
from keelman.kafka.security.tls_sasl import for_librdkafka
from keelman.runtime.home import Home
from support.agent.nothing_left import nothing_left
from support.eventually import eventually
from support.state.service import Clients, free_range
from support.state.trust import Installation, installation

SECONDS = 20


class Holder:
    """A program that has the certificate of a worker cluster, or that for reports."""

    def __init__(self, properties: Mapping[str, str], bootstrap: str) -> None:
        self.client = {**for_librdkafka(properties), "bootstrap.servers": bootstrap, "log_level": 0}
        self.admin = AdminClient(self.client)

    def read(self, topic: str, group: str = "connect-reader") -> None:
        consumer = Consumer({**self.client, "group.id": group, "enable.auto.commit": False})
        try:
            if problem := consumer.list_topics(topic, SECONDS).topics[topic].error:
                raise KafkaException(problem)
            consumer.assign([TopicPartition(topic, 0, 0)])
            message = consumer.poll(SECONDS)
            assert message is not None, f"no answer about {topic}"
            if message.error():
                raise KafkaException(message.error())
        finally:
            consumer.close()

    def join(self, group: str, topic: str) -> None:
        consumer = Consumer({**self.client, "group.id": group})
        consumer.subscribe([topic])
        try:
            while (message := consumer.poll(SECONDS)) is not None and not message.error():
                return
            assert message is not None, f"no answer about {group}"
            raise KafkaException(message.error())
        finally:
            consumer.close()

    def write(self, topic: str) -> None:
        problems: list[Any] = []
        producer = Producer({**self.client, "message.timeout.ms": SECONDS * 1000})
        producer.produce(topic, b"x", partition=0, on_delivery=lambda error, _: problems.append(error))
        producer.flush(SECONDS)
        if problems[0] is not None:
            raise KafkaException(problems[0])

    def begin(self, transactional_id: str) -> None:
        Producer({**self.client, "transactional.id": transactional_id}).init_transactions(SECONDS)

    def records(self, topic: str, wanted: int) -> int:
        """The number of records in a topic's first partition, markers of transactions aside; one too many at most."""
        consumer = Consumer({**self.client, "group.id": "connect-reader", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, 0)])
        try:
            return len(consumer.consume(wanted + 1, 3))
        finally:
            consumer.close()

    def is_shut_out(self) -> bool:
        """Whether brokers refuse a new connection."""
        try:
            AdminClient(self.client).list_topics(timeout=5)
        except KafkaException:
            return True
        return False

    def result(self, futures: Mapping[Any, Any]) -> None:
        for future in futures.values():
            future.result(SECONDS)


async def holder_of(clients: Clients, home: Home, workload: str, file: str = "worker.properties") -> Holder:
    """A program with the properties in a file of a workload."""
    with (home.workload(workload) / file).open() as stream:
        properties = javaproperties.load(stream)
    return Holder(properties, (await clients.broker_cluster("default")).status.bootstrap_servers)


async def create_brokers(clients: Clients) -> brokers.BrokerCluster:
    """A broker cluster with access rules, named default."""
    managed = brokers.ManagedBrokers(nodes=["n1"], heap_mb=256, tls=brokers.BrokerTls.BROKER_TLS_MUTUAL)
    spec = brokers.BrokerClusterSpec(managed=managed)
    request = brokers_pb.CreateBrokerClusterRequest(name="default", spec=spec)
    return (await clients.brokers.CreateBrokerCluster(request)).broker_cluster


async def run_workers(clients: Clients, *names: str, **spec: Any) -> None:
    """Creates worker clusters, and waits until their workers run."""
    for name in names:
        await clients.create_workers(name, count=1, **spec)
        await clients.start_workers(name)

    async def all_run() -> bool:
        return all([(await clients.worker_cluster(name)).status.ready_workers == 1 for name in names])

    await eventually(all_run, what=f"the workers of {', '.join(names)} run")


@contextlib.asynccontextmanager
async def running(tmp_path: Path) -> AsyncIterator[Installation]:
    """An installation with a host, n1, whose agent runs."""
    ranges = {"broker_ports": free_range(4), "worker_ports": free_range(4), "spark_ports": free_range(2)}
    async with installation(tmp_path, **ranges) as installed:
        await installed.join("n1")
        with nothing_left(installed.homes["n1"]):
            async with installed.agent("n1"):
                await installed.online("n1")
                yield installed


async def has_records(holder: Holder, topic: str, count: int) -> bool:
    """Whether a topic has so many records. Raises AssertionError with the number that it has."""
    records = await asyncio.to_thread(holder.records, topic, count)
    assert records == count, f"{topic} has {records}"
    return True

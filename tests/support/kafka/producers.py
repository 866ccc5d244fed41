"""The common base of the producer's tests: producers of one broker, its transaction version, and the readers' view."""

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any, ClassVar

from confluent_kafka import Consumer, TopicPartition

from keelman.kafka.batches.features import AskFeatures
from keelman.kafka.batches.producer import FEATURE, BatchProducer, ProducerSettings
from keelman.kafka.batches.record_batch import encode
from keelman.kafka.clients import low_level_client
from keelman.kafka.known_brokers import BROKERS
from keelman.kafka.leaders.client import open_client as met
from keelman.kafka.wire.fields import compact
from keelman.kafka.wire.requests import WireRequest
from support.eventually import eventually
from support.kafka.topics import AT_ONCE

LAST_EPOCH = 2**15 - 2
"""The last epoch of a producer id."""


@asynccontextmanager
async def open_producer(
    servers: str, transactional_id: str | None = None, *, client_id: str = "producer", **settings: Any
) -> AsyncIterator[BatchProducer]:
    """A producer that has fenced."""
    client = await met({"bootstrap.servers": servers}, client_id=client_id, timeout_ms=30_000)
    producer = BatchProducer(client, ProducerSettings(transactional_id, **settings))
    try:
        await producer.fence()
        yield producer
    finally:
        await producer.close()


async def write_epoch(servers: str, transactional_id: str, epoch: int) -> None:
    """Makes this the last epoch of the id, once the broker is restarted.

    There are 32,767 epochs, and each costs a third of a millisecond.

    A record of the coordinator's own log, which brokers accept from a client of this name:
    https://github.com/apache/kafka/blob/4.3/transaction-coordinator/src/main/resources/common/message/TransactionLogValue.json
    """
    async with open_producer(servers, transactional_id) as producer:
        who = producer.identity
    now, name = int(time.time() * 1000), transactional_id.encode()
    key = struct.pack(">hh", 0, len(name)) + name
    empty, no_partitions = 0, -1
    value = struct.pack(">hqhibiqq", 0, who.producer_id, epoch, 10_000, empty, no_partitions, now, now)
    log = "__transaction_state"
    async with open_producer(servers, client_id="__admin_client") as writer:
        for partition in range(await writer.partitions(log)):
            writer.send(log, partition, encode([value], [key], now_ms=now), 1)
        await writer.flush()


@dataclass(frozen=True)
class SetFeature(WireRequest):
    """UpdateFeatures 1."""

    API_KEY: ClassVar[int] = 57
    API_VERSION: ClassVar[int] = 1
    name: str
    level: int
    up: bool

    def encode(self) -> bytes:
        upgrade, downgrade = 1, 2
        how = upgrade if self.up else downgrade
        return struct.pack(">i", 30_000) + b"\2" + compact(self.name) + struct.pack(">hb", self.level, how) + b"\0\0\0"

    class RESPONSE_TYPE:
        @classmethod
        def decode(cls, data: BytesIO) -> bytes:
            return data.read()


async def set_feature(servers: str, name: str, level: int, *, up: bool = True) -> None:
    """Sets a feature of the cluster to another level; returns once a broker has it."""
    properties = {"bootstrap.servers": servers}
    async with low_level_client(properties, client_id="admin", timeout_ms=60_000) as client:
        told = await client.send(client.get_random_node(), SetFeature(name, level, up))

        async def there() -> bool:
            now = await client.send(client.get_random_node(), AskFeatures())
            return bool(now.features.get(name, 0) == level)

        await eventually(there, what=f"{name} is {level}; the broker's answer was {told!r}")
    BROKERS.forget(properties)  # it would be seen a minute later


@asynccontextmanager
async def transaction_version(servers: str, level: int) -> AsyncIterator[None]:
    """Sets the brokers to this level; to 2 again afterwards."""
    await set_feature(servers, FEATURE, level, up=level == 2)
    try:
        yield
    finally:
        await set_feature(servers, FEATURE, 2)


def batch(*values: str) -> bytearray:
    return encode([value.encode() for value in values], now_ms=int(time.time() * 1000))


def numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


async def visible(servers: str, topic: str, partition: int = 0) -> list[str]:
    """All committed values; waits while a transaction is open in the partition."""

    def read() -> list[str]:
        settings = {"bootstrap.servers": servers, "group.id": "look", "auto.offset.reset": "earliest"}
        part = TopicPartition(topic, partition, 0)
        plain = Consumer({**settings, "isolation.level": "read_uncommitted"})
        _, end = plain.get_watermark_offsets(part, timeout=300)
        plain.close()
        consumer = Consumer({**settings, **AT_ONCE})
        consumer.assign([part])
        results: list[str] = []
        deadline = time.monotonic() + 300
        while end and consumer.position([part])[0].offset < end:
            assert time.monotonic() < deadline, f"{topic} was not read to {end}: {len(results)}"
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                results.append(message.value().decode())
        consumer.close()
        return results

    return await asyncio.to_thread(read)


async def within(seconds: float, work: Awaitable[Any]) -> Any:
    async with asyncio.timeout(seconds):
        return await work

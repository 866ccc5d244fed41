"""Lists topics for people, with their sizes, and reads their last records."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from keelman.kafka.bootstrap_errors import bootstrap_errors
from keelman.kafka.broker_client import BrokerConsumer
from keelman.kafka.clients import admin_client, client_arguments, no_broker
from keelman.kafka.error_codes import name_of
from keelman.model.errors import DeadlineExceeded, NotFound, Unavailable
from keelman.runtime.supervise import deadline

CLIENT = "keelman-browsing"
SECONDS = 30.0
WAIT_MS = 500
WIDER = 8
MAX_BYTES = 1 << 20
"""The limit of a partition in one answer; a larger record comes alone."""


@dataclass(frozen=True, slots=True)
class BrowsedTopic:
    """A topic. `offsets` counts them from the first to the last, including transaction markers and records that
    compaction has removed."""

    name: str
    partitions: int
    replication: int
    offsets: int


@dataclass(frozen=True, slots=True)
class PeekedRecord:
    """A record of a topic; `timestamp_ms` is None if it has none."""

    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


async def list_topics(properties: Mapping[str, str], only: str | None = None) -> list[BrowsedTopic]:
    """Returns the topics by name, without Kafka's own; or just `only`. `properties` are Java's client properties.

    Raises NotFound, Unavailable, Unauthenticated, InvalidArgument, DeadlineExceeded.
    """
    async with deadline(SECONDS, DeadlineExceeded(f"the brokers did not list their topics in {SECONDS:g} s")):
        described = await _describe(properties, only)
        parts = [TopicPartition(name, p["partition"]) for name, partitions in described.items() for p in partitions]
        async with _consumer(properties) as consumer:
            await consumer.learn(described)
            begins, ends = await consumer.beginning_offsets(parts), await consumer.end_offsets(parts)
        counted = dict.fromkeys(described, 0)
        for part in parts:
            counted[part.topic] += ends[part] - begins[part]
    return [
        BrowsedTopic(name, len(partitions), max((len(p["replicas"]) for p in partitions), default=0), counted[name])
        for name, partitions in sorted(described.items())
    ]


async def last_records(
    properties: Mapping[str, str], topic: str, count: int, *, seconds: float = SECONDS
) -> list[PeekedRecord]:
    """Returns a topic's last committed records, `count` at most, by time. Raises the errors of `list_topics`."""
    async with deadline(seconds, DeadlineExceeded(f"the last records of topic {topic} were not read in {seconds:g} s")):
        described = await _describe(properties, topic)
        parts = [TopicPartition(topic, p["partition"]) for p in described[topic]]
        peeked: list[PeekedRecord] = []
        async with _consumer(properties) as consumer:
            begins, ends = await consumer.beginning_offsets(parts), await consumer.end_offsets(parts)
            for part in parts:
                peeked += await _last_of(consumer, part, begins[part], ends[part], count)
    return sorted(peeked, key=_by_time)[-count:]


def _by_time(record: PeekedRecord) -> tuple[int, int, int]:
    """Sorts records without a time first."""
    return (-1 if record.timestamp_ms is None else record.timestamp_ms, record.partition, record.offset)


async def _last_of(
    consumer: BrokerConsumer, part: TopicPartition, begin: int, end: int, count: int
) -> list[PeekedRecord]:
    """Returns the last records of one partition. Not every offset is a record: it reads back until there are enough."""
    back = count
    while True:
        first = max(begin, end - back)
        records = await _between(consumer, part, first, end)
        if len(records) >= count or first == begin:
            return records[-count:]
        back *= WIDER


async def _between(consumer: BrokerConsumer, part: TopicPartition, first: int, end: int) -> list[PeekedRecord]:
    if first >= end:
        return []
    consumer.assign([part])
    consumer.seek(part, first)
    peeked: list[PeekedRecord] = []
    while await consumer.position(part) < end:
        for records in (await consumer.getmany(part, timeout_ms=WAIT_MS)).values():
            peeked += [_peeked(record) for record in records if record.offset < end]
    return peeked


def _peeked(record: Any) -> PeekedRecord:
    time_ms = record.timestamp if record.timestamp >= 0 else None  # Kafka has -1 for none
    return PeekedRecord(record.partition, record.offset, time_ms, record.key, record.value, tuple(record.headers))


async def _describe(properties: Mapping[str, str], only: str | None) -> dict[str, list[Any]]:
    """Returns the partitions of each topic."""
    async with admin_client(properties, client_id=CLIENT) as admin:
        try:
            answers = await admin.describe_topics(None if only is None else [only])
        except KafkaError as error:
            raise Unavailable(f"the brokers do not list their topics: {error}") from None
    partitions = {answer["topic"]: answer["partitions"] for answer in answers if not answer["error_code"]}
    if only is None:
        internal = {answer["topic"] for answer in answers if answer["is_internal"]}
        return {name: partitions for name, partitions in partitions.items() if name not in internal}
    if only not in partitions:
        code = answers[0]["error_code"] if answers else 0
        reason = "" if name_of(code) == "UNKNOWN_TOPIC_OR_PARTITION" else f" to be seen: {name_of(code)}"
        raise NotFound(f"no topic {only!r}{reason}")
    return partitions


@contextlib.asynccontextmanager
async def _consumer(properties: Mapping[str, str]) -> AsyncIterator[BrokerConsumer]:
    """Yields a consumer that reads committed records, commits nothing and is in no group."""
    consumer = BrokerConsumer(
        **client_arguments(properties),
        client_id=CLIENT,
        enable_auto_commit=False,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=MAX_BYTES,
    )
    try:
        async with bootstrap_errors(properties):
            await consumer.start()
        yield consumer
    except (KafkaError, OSError) as error:
        raise no_broker(properties, error) from None
    finally:
        await consumer.stop()

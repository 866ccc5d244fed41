"""Writes records to a topic together with their position in the source, atomically.

The position is the committed offset of the writer's own group, sent in the transaction of the records. The group and
the transactional id have the same name: opening a writer fences the previous one, ends its open transaction, and then
reads the committed position.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError, for_code
from aiokafka.structs import OffsetAndMetadata

from keelman.kafka.broker_client import BrokerProducer
from keelman.kafka.clients import admin_client, client_arguments, no_broker
from keelman.kafka.groups.offsets import committed, fetch_offsets
from keelman.kafka.groups.requests import ask_group
from keelman.kafka.topics import create_missing
from keelman.model.errors import FailedPrecondition, KeelmanError, Unavailable
from keelman.runtime.supervise import heeded

SECONDS = 30.0
CLOSE_SECONDS = 2.0
REQUEST_MS = 10_000
TRANSACTION_MS = 30_000
WORN_SECONDS = 1.0
"""A commit that took longer may have been sent twice: the second must not meet this producer's next transaction."""


@dataclass(frozen=True, slots=True)
class WriterPosition:
    """The position that the previous writer had reached, and its note."""

    offset: int
    note: str


class PositionedWriter:
    """Opened with `open`. Not usable after an error: the next writer reads how much was written."""

    def __init__(self, properties: Mapping[str, str], topic: str, name: str) -> None:
        self._properties = properties
        self._topic = topic
        self._name = name
        self._producer: Any = None
        self._is_begun = False

    @staticmethod
    @contextlib.asynccontextmanager
    async def open(properties: Mapping[str, str], topic: str, name: str) -> AsyncIterator[PositionedWriter]:
        """Yields a writer for the block. `properties` are Java's client properties. Creates a missing topic.

        Raises Unavailable when the brokers cannot be reached, Unauthenticated when they refuse the login,
        FailedPrecondition if the topic cannot be created and InvalidArgument for invalid properties.
        """
        writer = PositionedWriter(properties, topic, name)
        await _topic_there(properties, topic)
        try:
            await writer._claim()
            yield writer
        finally:
            await writer._close()

    async def position(self) -> WriterPosition | None:
        """Returns the committed position; None if none was ever written or the brokers have expired it. Raises
        Unavailable."""
        answer = await ask_group(
            self._properties, self._name, lambda: fetch_offsets(self._name), client_id=self._name, answer_ms=REQUEST_MS,
            seconds=SECONDS,
        )  # fmt: skip
        if answer.error_code:
            raise self._unwritten(for_code(answer.error_code)())
        entry = committed(answer).get((self._topic, 0))
        return None if entry is None or entry.offset < 0 else WriterPosition(entry.offset, entry.note)

    async def write(self, key: bytes, values: Sequence[bytes], position: WriterPosition) -> None:
        """Returns once all records and the position are committed. Raises Unavailable."""
        partition = TopicPartition(self._topic, 0)
        try:
            async with asyncio.timeout(SECONDS):
                await self._begin()
                sent = [await self._producer.send(self._topic, value, key=key) for value in values]
                for outcome in await asyncio.gather(*sent, return_exceptions=True):
                    if isinstance(outcome, BaseException):
                        raise outcome
                offsets = {partition: OffsetAndMetadata(position.offset, position.note)}
                await self._producer.send_offsets_to_transaction(offsets, self._name)
                began = time.monotonic()
                await self._producer.commit_transaction()
                self._is_begun = False
        except (KafkaError, OSError, TimeoutError) as error:
            raise self._unwritten(error) from None
        if time.monotonic() - began > WORN_SECONDS:
            await self._close()
            await self._claim()

    async def _claim(self) -> None:
        """Starts a producer and fences the previous one: the library does so before its first transaction begins."""
        self._producer = BrokerProducer(
            **client_arguments(self._properties), client_id=self._name, transactional_id=self._name, acks="all",
            request_timeout_ms=REQUEST_MS, transaction_timeout_ms=TRANSACTION_MS, max_batch_size=256 * 1024,
            linger_ms=5,
        )  # fmt: skip
        try:
            async with asyncio.timeout(SECONDS):
                await self._producer.start()
                await self._begin()
        except (KafkaError, OSError, TimeoutError) as error:
            raise self._unwritten(error) from None

    async def _begin(self) -> None:
        if not self._is_begun:
            await self._producer.begin_transaction()
            self._is_begun = True

    async def _close(self) -> None:
        """Leaves an open transaction to the next writer: an abort, too, would wait for brokers that may be away."""
        producer, self._producer, self._is_begun = self._producer, None, False
        if producer is None:
            return
        if producer._sender is not None and producer._sender.sender_task is not None:
            producer._sender.sender_task.cancel()
        await heeded(_stop(producer))

    def _unwritten(self, error: Exception) -> KeelmanError:
        reason = "no answer in time" if isinstance(error, TimeoutError) else repr(error)
        return Unavailable(f"topic {self._topic} cannot be written: {reason}")


async def _stop(producer: BrokerProducer) -> None:
    with contextlib.suppress(KafkaError, OSError, TimeoutError, asyncio.CancelledError):  # its sender is cancelled
        async with asyncio.timeout(CLOSE_SECONDS):
            await producer.stop()


async def _topic_there(properties: Mapping[str, str], topic: str) -> None:
    async with admin_client(properties, client_id="keelman-logs") as admin:
        try:
            described = (await admin.describe_topics([topic]))[0]
            if not described["error_code"]:
                return
            brokers = len((await admin.describe_cluster())["brokers"])
            new_topic = NewTopic(name=topic, num_partitions=1, replication_factor=min(3, max(1, brokers)))
            _, refused = await create_missing(admin, [new_topic])
        except (KafkaError, OSError) as error:
            raise no_broker(properties, error) from None
    if refused:
        raise FailedPrecondition(f"topic {topic} cannot be created: {refused[topic]}", reason="WRONG_TOPIC")

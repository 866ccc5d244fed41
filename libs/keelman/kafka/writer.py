"""Writes records of the state topics: plainly, or each write in one transaction that fences every other writer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from keelman.kafka.batches.partitioner import partition_for
from keelman.kafka.batches.produce_failure import TOO_LARGE as REFUSED_SIZES
from keelman.kafka.batches.produce_failure import UNKNOWN_TOPIC
from keelman.kafka.batches.producer import BatchProducer, ProduceFailure, ProducerSettings
from keelman.kafka.batches.record_batch import pack
from keelman.kafka.batches.transaction_limit import longest_transaction_ms
from keelman.kafka.error_codes import CODES
from keelman.kafka.leaders.client import open_client
from keelman.model.errors import Conflict, Exhausted, KeelmanError, Unauthenticated, Unavailable

Record: TypeAlias = tuple[bytes, bytes | None]
Ends: TypeAlias = Mapping[int, int]
"""For each partition that was written to: the offset after the last record written."""
SECONDS = 30.0
REQUEST_MS = 10_000
TRANSACTION_MS = 10_000
"""Less if the brokers allow less."""
END_SECONDS = 3.0
"""The time for an abort: brokers that do not answer are not waited for."""
MAX_BYTES = 1_048_576
"""The limit of a record with its overhead: max.request.size of Java's producer, unless set."""
TOO_LARGE = "RECORD_TOO_LARGE"
KEPT_OUT = CODES["TRANSACTIONAL_ID_AUTHORIZATION_FAILED"]
FENCED = frozenset(CODES[name] for name in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_PRODUCER_ID_MAPPING"))
"""Another has claimed the transactional id; or it was unused for so long (a week) that its mapping has expired."""


class TopicWriter:
    """An idempotent writer for any worker, for several tasks at once. Opened with `open`."""

    def __init__(self, properties: Mapping[str, str], client_id: str) -> None:
        self._properties = properties
        self._client_id = client_id
        self._producer: BatchProducer | None = None
        self._alone = asyncio.Lock()

    @staticmethod
    @contextlib.asynccontextmanager
    async def open(properties: Mapping[str, str], *, client_id: str) -> AsyncIterator[TopicWriter]:
        """Yields a writer for the block. Raises Unavailable when no broker answers."""
        writer = TopicWriter(properties, client_id)
        writer._producer = await _open(properties, client_id)
        try:
            yield writer
        finally:
            await writer.close()

    async def close(self) -> None:
        """Closes the producer at once."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.close()

    async def write(self, topic: str, records: Sequence[Record], *, partition: int | None = None) -> Ends:
        """Returns when all records, in order, are acknowledged. Raises Unavailable, and Exhausted for a record that is
        too large: others may have been written then, unless it exceeds `MAX_BYTES`.

        Without a `partition` keys decide, as with Java's producer.
        """
        check_sizes(records)
        try:
            async with asyncio.timeout(SECONDS):
                producer = self._producer
                if producer is not None:
                    with contextlib.suppress(ProduceFailure):
                        return await _send(producer, topic, records, partition)
                # A failure ends a producer for all its users. With its own producer each write fails alone.
                async with self._alone:
                    return await self._again(producer, topic, records, partition)
        except (ProduceFailure, TimeoutError) as error:
            raise _unwritten(topic, error) from None

    async def _again(
        self, broken: BatchProducer | None, topic: str, records: Sequence[Record], partition: int | None
    ) -> Ends:
        """Writes with another producer, which all writes use from then on. Raises ProduceFailure."""
        if broken is not None and self._producer is broken:
            self._producer = None
            await broken.close()
        producer = await _open(self._properties, self._client_id)
        try:
            ends = await _send(producer, topic, records, partition)
            if self._producer is None:
                self._producer = producer
            return ends
        finally:
            if self._producer is not producer:
                await producer.close()


class FencingWriter:
    """A transactional writer for the one process that may write: opening it fences the previous one.

    Opened at the first write after `claim()`; a fenced writer raises Conflict and has to claim again.
    """

    def __init__(self, properties: Mapping[str, str], *, client_id: str, transactional_id: str) -> None:
        self._properties = properties
        self._client_id = client_id
        self._transactional_id = transactional_id
        self._producer: BatchProducer | None = None
        self.claimed_at: float | None = None
        """When, by the monotonic clock, all others were fenced; None before, and once this writer was fenced."""

    async def claim(self) -> None:
        """Fences every other writer with the same id. Raises Unavailable, also when the login is refused: this is not
        the first contact, and tokens, passwords and certificates are changed while processes run."""
        await self.close()
        try:
            async with asyncio.timeout(SECONDS):
                self._producer = await _open(self._properties, self._client_id, self._transactional_id)
        except (ProduceFailure, TimeoutError, Unauthenticated) as error:
            if isinstance(error, ProduceFailure) and error.code == KEPT_OUT:
                rules = f"access rules keep this worker out of transactional id {self._transactional_id!r} (WRITE)"
                raise Unavailable(f"the brokers' {rules}", reason="KEPT_OUT") from None
            reason = repr(error) if isinstance(error, TimeoutError) else error.message
            raise Unavailable(f"transactional id {self._transactional_id} cannot be claimed: {reason}") from None
        self.claimed_at = time.monotonic()

    async def close(self) -> None:
        """Gives the claim up without fencing any writer, and waits for no broker."""
        producer, self._producer, self.claimed_at = self._producer, None, None
        if producer is not None:
            await producer.close()

    async def write(
        self, topic: str, records: Sequence[Record], *, confirm: Callable[[], Awaitable[None]] | None = None
    ) -> Ends:
        """Writes all records in one transaction. Raises Conflict when another process has claimed, Exhausted when a
        record is too large, else Unavailable; nothing is written then.

        An error of `confirm`, awaited before the commit, aborts the transaction and is raised.
        """
        check_sizes(records)
        if self._producer is None:
            await self.claim()
        producer = self._producer
        assert producer is not None
        try:
            async with asyncio.timeout(SECONDS):
                ends = await _send(producer, topic, records)
                if confirm is not None:
                    await confirm()
                await producer.end(commit=True)
                return ends
        except (ProduceFailure, TimeoutError, asyncio.CancelledError) as error:
            await _abort(producer)
            await self.close()
            if isinstance(error, asyncio.CancelledError):
                raise
            if isinstance(error, ProduceFailure) and error.code in FENCED:
                raise Conflict(f"another worker has claimed {self._transactional_id}", reason="FENCED") from None
            raise _unwritten(topic, error) from None
        except BaseException:
            if not await _abort(producer):
                await self.close()
            raise


def check_sizes(records: Sequence[Record]) -> None:
    """Raises Exhausted for the first record that is too large for any request."""
    for key, value in records:
        size = DefaultRecordBatchBuilder.estimate_size_in_bytes(key, value, [])
        if size > MAX_BYTES:
            raise Exhausted(
                f"{key.decode(errors='replace')}: The message is {size} bytes when serialized which is larger than "
                f"{MAX_BYTES}, which is the value of the max.request.size configuration.",
                reason=TOO_LARGE,
            )


async def _open(properties: Mapping[str, str], client_id: str, transactional_id: str | None = None) -> BatchProducer:
    """Opens a producer that has fenced the previous one. Raises ProduceFailure, Unavailable and Unauthenticated."""
    client = await open_client(properties, client_id=client_id, timeout_ms=REQUEST_MS)
    producer: BatchProducer | None = None
    try:
        limit = None if transactional_id is None else await longest_transaction_ms(client)
        settings = ProducerSettings(
            transactional_id,
            transaction_timeout_ms=min(TRANSACTION_MS, limit or TRANSACTION_MS),
            delivery_timeout_ms=int(SECONDS * 1000),
            request_timeout_ms=REQUEST_MS,
        )
        producer = BatchProducer(client, settings)
        await producer.fence()
    except BaseException:
        await (producer or client).close()
        raise
    return producer


async def _send(producer: BatchProducer, topic: str, records: Sequence[Record], partition: int | None = None) -> Ends:
    """Returns when all records are acknowledged. Raises the producer's failure."""
    count = await producer.partitions(topic)
    if not count:
        raise ProduceFailure(UNKNOWN_TOPIC, topic)
    parts: dict[int, list[Record]] = {}
    for record in records:
        parts.setdefault(partition_for(record[0], count) if partition is None else partition, []).append(record)
    now_ms, most_bytes = int(time.time() * 1000), producer.most_bytes.get(topic, MAX_BYTES)
    ends: dict[int, int] = {}
    left, exact = 0, True

    def delivered(partition: int, count: int, base_offset: int) -> None:
        nonlocal left, exact
        left -= 1
        exact &= base_offset >= 0
        ends[partition] = base_offset + count

    for number, some in parts.items():
        keys, values = [key for key, _ in some], [value for _, value in some]
        for batch, _, packed in pack(values, keys, now_ms=now_ms, most_bytes=most_bytes):
            left += 1
            producer.send(topic, number, batch, packed, partial(delivered, number, packed))
    await producer.until(lambda: not left)
    if exact and producer.most_bytes.get(topic, MAX_BYTES) == most_bytes:
        return ends
    await producer.flush()  # of a batch that was split only the first half is reported
    return await producer.log_ends(topic, ends)


def _unwritten(topic: str, error: Exception) -> KeelmanError:
    if isinstance(error, ProduceFailure) and error.code in REFUSED_SIZES:
        return Exhausted(
            f"topic {topic} does not accept a record of this size: raise max.message.bytes of the topic "
            "(the brokers' message.max.bytes, 1048588 unless set)",
            reason=TOO_LARGE,
        )
    return Unavailable(f"topic {topic} cannot be written: {error!r}")


async def _abort(producer: BatchProducer) -> bool:
    """Whether the transaction was aborted in its time."""
    try:
        async with asyncio.timeout(END_SECONDS):
            await producer.end(commit=False)
    except (ProduceFailure, TimeoutError):
        return False
    return True

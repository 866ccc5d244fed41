"""Writes records of the state topics: plainly, or each write in one transaction that fences every other writer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, TypeAlias

from aiokafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    RecordListTooLargeError,
)
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from keelman.kafka.clients import Producer, producer
from keelman.model.errors import Conflict, Exhausted, KeelmanError, Unauthenticated, Unavailable
from keelman.runtime.supervise import guarded

Record: TypeAlias = tuple[bytes, bytes | None]
Ends: TypeAlias = Mapping[int, int]
"""Of each partition that was written to: the offset after the last record written."""
SECONDS = 30.0
END_SECONDS = 3.0  # for each step of giving up: brokers that do not answer are not waited for
MOST_BYTES = 1_048_576
"""Of a record with what surrounds it: max.request.size of Java's producer, unless set, and of this library's."""
TOO_LARGE = "RECORD_TOO_LARGE"


class TopicWriter:
    """An idempotent writer that any worker may use, from several tasks at once. Open it with `opened`."""

    def __init__(self, properties: Mapping[str, str], client_id: str) -> None:
        self._properties = properties
        self._client_id = client_id
        self._stack = AsyncExitStack()
        self._producer: Producer | None = None
        self._renewing = asyncio.Lock()

    @staticmethod
    @contextlib.asynccontextmanager
    async def opened(properties: Mapping[str, str], *, client_id: str) -> AsyncIterator[TopicWriter]:
        """A writer for the block. Raises Unavailable when no broker answers."""
        writer = TopicWriter(properties, client_id)
        try:
            await writer._renew(None)
            yield writer
        finally:
            await writer._stack.aclose()

    async def write(self, topic: str, records: Sequence[Record]) -> Ends:
        """Returns when all records, in order, are acknowledged. Raises Unavailable, and Exhausted for a record that is
        too large: others may have been written then, unless it is so by `MOST_BYTES`."""
        check_sizes(records)
        made = self._producer
        assert made is not None
        try:
            async with asyncio.timeout(SECONDS):
                try:
                    return await _sent(made, topic, records)
                except KafkaError as error:
                    with contextlib.suppress(KeelmanError):
                        await self._renew(made)
                    if not isinstance(error, OutOfOrderSequenceNumber):
                        raise
                return await _sent(self._producer, topic, records)
        except (KafkaError, TimeoutError) as error:
            raise _unwritten(topic, error) from None

    async def _renew(self, broken: Producer | None) -> None:
        """Another producer instead of this one, which left out the sequence numbers of what was refused or came too
        late: a broker takes nothing behind them."""
        async with self._renewing:
            if self._producer is not broken:  # another write has done it
                return
            stack = AsyncExitStack()
            made = await stack.enter_async_context(producer(self._properties, client_id=self._client_id))
            before, self._stack, self._producer = self._stack, stack, made
            await _dropped(before, broken)


class FencingWriter:
    """A transactional writer for the one process that may write: opening it fences the one before.

    Opened at the first write after `claim()`; a writer that finds itself fenced raises Conflict and has to claim anew.
    """

    def __init__(self, properties: Mapping[str, str], *, client_id: str, transactional_id: str) -> None:
        self._properties = properties
        self._client_id = client_id
        self._transactional_id = transactional_id
        self._stack = AsyncExitStack()
        self._producer: Producer | None = None
        self.claimed_at: float | None = None
        """When, by the monotonic clock, all others were shut out; None before, and once this one was."""

    async def claim(self) -> None:
        """Fences every other writer with the same id. Raises Unavailable, also when the login is refused: this is not
        the first contact, and tokens, passwords and certificates are changed while processes run."""
        await self.close()
        try:
            async with asyncio.timeout(SECONDS):
                self._producer = await self._stack.enter_async_context(
                    producer(self._properties, client_id=self._client_id, transactional_id=self._transactional_id)
                )
        except (KafkaError, TimeoutError, Unauthenticated) as error:
            why = error.message if isinstance(error, Unauthenticated) else repr(error)
            raise Unavailable(f"transactional id {self._transactional_id} cannot be claimed: {why}") from None
        self.claimed_at = time.monotonic()

    async def close(self) -> None:
        """Gives the claim up without fencing anyone. Waits for no broker for longer than a few seconds."""
        made, self._producer, self.claimed_at = self._producer, None, None
        stack, self._stack = self._stack, AsyncExitStack()
        for batches in made._message_accumulator._batches.values() if made is not None else ():
            for batch in batches:  # that nobody sends any more
                batch._drain_waiter.add_done_callback(_noted)
        await _dropped(stack, made)

    async def write(
        self, topic: str, records: Sequence[Record], *, confirm: Callable[[], Awaitable[None]] | None = None
    ) -> Ends:
        """All records in one transaction. Raises Conflict when another process has claimed, Exhausted when a record is
        too large, else Unavailable; nothing is written then.

        What `confirm` raises, awaited before the commit, aborts the transaction and is raised.
        """
        check_sizes(records)
        if self._producer is None:
            await self.claim()
        made = self._producer
        assert made is not None
        try:
            # Not the library's own block: it waits for the brokers' answer to an abort without end.
            async with asyncio.timeout(SECONDS):
                await made.begin_transaction()
                made._txn_manager.wait_for_transaction_end().add_done_callback(_noted)
                # Each is waited for: the library would commit without those that a broker refused.
                ends = await _sent(made, topic, records)
                if confirm is not None:
                    await confirm()
                await made.commit_transaction()
                return ends
        except (KafkaError, TimeoutError) as error:
            # A broker may refuse a record of a writer that was fenced for another reason; the coordinator knows.
            told = error if isinstance(error, ProducerFenced) else await _problem(made.abort_transaction())
            await self.close()
            if isinstance(told, ProducerFenced):
                raise Conflict(f"another worker has claimed {self._transactional_id}", reason="FENCED") from None
            raise _unwritten(topic, error) from None
        except BaseException:
            if not await _ended(made.abort_transaction()):
                await self.close()
            raise


def check_sizes(records: Sequence[Record]) -> None:
    """Raises Exhausted for the first record that is too large for any request."""
    for key, value in records:
        size = DefaultRecordBatchBuilder.estimate_size_in_bytes(key, value, [])
        if size > MOST_BYTES:
            raise Exhausted(
                f"{key.decode(errors='replace')}: The message is {size} bytes when serialized which is larger than "
                f"{MOST_BYTES}, which is the value of the max.request.size configuration.",
                reason=TOO_LARGE,
            )


async def _sent(made: Producer, topic: str, records: Sequence[Record]) -> Ends:
    """Returns when all records are acknowledged; raises the first failure once none is under way any more."""
    sent = []
    for key, value in records:
        sent.append(await made.send(topic, key=key, value=value))
        sent[-1].add_done_callback(_noted)
    if sent:
        await asyncio.wait(sent)
    for problem in [one.exception() for one in sent]:
        if problem is not None:
            raise problem
    return {told.partition: told.offset + 1 for told in (one.result() for one in sent)}


def _noted(end: asyncio.Future[Any]) -> None:
    """A transaction that fails is told by what was sent in it, and what was sent by whoever still waits for it; the
    library's own word for either need not be logged."""
    if not end.cancelled():
        end.exception()


def _unwritten(topic: str, error: Exception) -> KeelmanError:
    if isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError):
        return Exhausted(
            f"topic {topic} takes no record as large as this one: raise max.message.bytes of the topic "
            "(the brokers' message.max.bytes, 1048588 unless set)",
            reason=TOO_LARGE,
        )
    return Unavailable(f"topic {topic} cannot be written: {error!r}")


async def _dropped(stack: AsyncExitStack, made: Producer | None) -> None:
    """Closes a producer, at once where that takes too long."""
    if not await _ended(stack.aclose()) and made is not None:
        await _ended(made._sender.close())
        await _ended(made.client.close())


async def _ended(step: Awaitable[None]) -> bool:
    """Whether this step of giving up was done in its time."""
    return await _problem(step) is None


async def _problem(step: Awaitable[None]) -> Exception | None:
    """Why it was not. AssertionError: the library's word for one too late. RuntimeError: a step before was given up,
    and with it the library has cancelled what this one waits for."""
    try:
        async with asyncio.timeout(END_SECONDS):
            await guarded(step)
    except (KafkaError, TimeoutError, AssertionError, RuntimeError) as error:
        return error
    return None

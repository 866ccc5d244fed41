"""The producer under one copy run: sends records in record batches, and commits them with their offsets."""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from keelman.connect.records import SourceBatch
from keelman.engine.control import Control
from keelman.engine.failure import RunFailure
from keelman.engine.producing.packing import SEND_BYTES, OnStored, Packed, Packing
from keelman.engine.producing.producer_options import ProducerOptions
from keelman.engine.producing.send_window import SendWindow
from keelman.engine.progress import payload_bytes
from keelman.engine.records.size import NO_LIMIT
from keelman.kafka.batches.partitioner import partition_for
from keelman.kafka.batches.producer import BatchProducer
from keelman.kafka.clients import client_arguments
from keelman.kafka.leaders.client import LeaderClient, open_client
from keelman.model.errors import Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.side_loop import KAFKA_LOOP

T = TypeVar("T")
OffsetRecord = tuple[bytes, bytes | None]

METADATA_SECONDS = 60.0
CONNECT_SECONDS = 60.0
CLOSE_SECONDS = 2.0
LONG_WAIT_SECONDS = 0.5
"""A target that makes a copy run wait so long for room is slow."""


class RunProducer(ABC):
    """A producer under one copy run. One thread uses it; every wait beats, so that a cut takes effect within a second.

    Its methods raise RunFailure, ProduceFailure, Unavailable, and what the control raises.
    """

    committed = False
    """Whether the last call of `commit` did commit, also when it raised after that."""

    def __init__(self, options: ProducerOptions, control: Control, *, commits_when_full: bool = False) -> None:
        """Opens no connection yet. `commits_when_full`: its user commits when it is `full`; without it, it waits for
        room instead. Raises InvalidArgument for illegal connection properties."""
        client_arguments(options.client)
        self._commits_when_full = commits_when_full
        self._options = options
        self._control = control
        self._producer: BatchProducer | None = None
        self._packing = Packing(self.known_partitions, options.codec or 0, self.batch_bytes, options.request_bytes)
        self._kept: list[Packed] = []
        self._in_mid_poll = False
        self._counts: dict[str, tuple[int, float]] = {}
        self._most: dict[str, int] = {}
        self._news: deque[Callable[[], None]] = deque()
        self._window = SendWindow(options.settings.most_waiting_bytes)
        self._sent_bytes = 0
        self._done_bytes = 0  # counted in the loop's thread, except when nothing is under way

    @property
    def open_seconds(self) -> float:
        """The longest that brokers keep its transaction open; infinite if it uses none."""
        return math.inf

    @property
    def codec(self) -> int | None:
        """The configured compression, as record batches number it; None without one."""
        return self._options.codec

    @property
    def request_bytes(self) -> int:
        """The most bytes of a single record, before compression."""
        return self._options.request_bytes

    @property
    def read_bytes(self) -> int | None:
        """About how many bytes to read at a time so that the target takes them in time; None while it is fast."""
        return self._window.read_bytes(time.monotonic())

    @property
    def full(self) -> bool:
        """Whether the sent records should be committed before more are sent."""
        now = time.monotonic()
        return self._is_slow(now) and self._on_their_way >= self._window.enough_bytes(now)

    def fence(self) -> None:
        """Connects, and fences any predecessor."""
        self._wait(self._open())

    def partitions(self, topic: str, least: int = 1) -> int:
        """Returns a topic's number of partitions, 0 if it does not exist. The number may be some minutes old; it is
        queried again if it is less than `least`."""
        count = self._wait(self._made.partitions(topic, least))
        self._counts[topic] = count, time.monotonic()
        return count

    def most_message_bytes(self, topic: str) -> int:
        """Returns the brokers' size limit for one record batch of the topic; NO_LIMIT if they report none. Raises
        ProduceFailure where the topic may not be written to."""
        most_message_bytes = self._wait(self._made.most_message_bytes(topic)) or NO_LIMIT
        self._most[topic] = most_message_bytes
        return most_message_bytes

    def cluster_id(self) -> str:
        """Returns the id of the target cluster."""
        return self._wait(self._made.cluster_id())

    def send(self, batch: SourceBatch, values: list[bytes | None], keys: list[bytes | None] | None) -> int:
        """Takes a batch, waiting for room as needed. Returns the bytes of its values and keys."""
        self._in_mid_poll = batch.more
        size = payload_bytes(values) + (0 if keys is None else payload_bytes(keys))
        self._post(self._take_kept())
        self._post(self._packing.add(batch, values, keys, self._note, size))
        self._make_room()
        return size

    def send_packed(self, batch: SourceBatch) -> None:
        """Takes a batch whose records are packed already, behind all earlier batches.

        Small batches wait for the commit: with the offsets they need one request, where a transaction else needs two.
        """
        self._in_mid_poll = batch.more
        if self._packing.held_bytes:
            self._post(self._packing.flush())
        self._kept += self._whole(batch)
        if sum(len(packed.data) for packed in self._kept) >= SEND_BYTES and not self._is_slow(time.monotonic()):
            self._post(self._take_kept())
        self._make_room()

    def let_out(self, seconds: float) -> None:
        """Waits until all sent records are delivered, at most `seconds`: the copy run's loop makes progress only while
        its thread waits in it."""
        if self._sent_bytes != self._done_bytes:
            self._wait(_within(seconds, self._made.flush()))

    @abstractmethod
    def commit(self, offset_topic: str, offsets: Sequence[OffsetRecord]) -> None:
        """Commits all records sent since the last commit, with these offsets."""

    @abstractmethod
    def abort(self) -> None:
        """Gives up the records sent since the last commit, as far as that can be done quickly. Raises nothing."""

    def close(self) -> None:
        """Drops the producer without waiting for records that it still holds."""
        producer, self._producer = self._producer, None
        self._drop()
        if producer is not None:
            with suppress(Exception):  # nothing depends on it any more
                KAFKA_LOOP.call(_close(producer))

    def _held(self) -> list[Packed]:
        """Returns all unsent batches, in order."""
        return [*self._take_kept(), *self._packing.flush()]

    def _take_kept(self) -> list[Packed]:
        batches, self._kept = self._kept, []
        return batches

    def _drop(self) -> None:
        self._kept = []
        self._packing.drop()

    @property
    def _made(self) -> BatchProducer:
        if self._producer is None:
            raise RunFailure("BROKER_LOST", "the producer was dropped")
        return self._producer

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return KAFKA_LOOP.call(work, self._control.beat)

    async def _open(self) -> None:
        self._producer = BatchProducer(await self._connect(), self._options.settings)
        await self._producer.fence()

    async def _connect(self) -> LeaderClient:
        options, backoff = self._options, Backoff(first=0.05, most=1.0)
        deadline = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                timeout = options.settings.request_timeout_ms
                return await open_client(options.client, client_id=options.client_id, timeout_ms=timeout)
            except Unavailable:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(backoff.next())

    def _post(self, batches: Iterable[Packed]) -> None:
        producer = self._made
        for batch in batches:
            self._sent_bytes += len(batch.data)
            KAFKA_LOOP.post(self._send, producer, batch)

    def _make_room(self) -> None:
        """Waits until no more bytes are held, queued and in flight than can be delivered in time."""
        began = time.monotonic()
        most = self._window.most_bytes(began)
        if self._on_their_way <= most or self._is_slow(began):
            return
        self._post(self._held())
        self._wait(self._made.room(most))
        now = time.monotonic()
        if now - began > LONG_WAIT_SECONDS:
            self._window.held_back(now)

    @property
    def _on_their_way(self) -> int:
        """Bytes that are held, queued and in flight."""
        waiting = sum(len(packed.data) for packed in self._kept)
        return waiting + self._packing.held_bytes + self._sent_bytes - self._done_bytes

    def _is_slow(self, now: float) -> bool:
        """Returns whether a transaction should be a single request. That works only for a user who commits when it is
        full: not while more records must go into the same transaction, whatever their number."""
        if not self._commits_when_full or self._in_mid_poll:
            return False
        if self._made.throttled_until:
            self._window.held_back(self._made.throttled_until)
        return self._window.is_slow(now)

    def _send(self, producer: BatchProducer, packed: Packed) -> None:
        """Sends a batch; in the loop's thread."""
        on_stored = partial(self._delivered, len(packed.data), packed.on_stored)
        producer.send(packed.topic, packed.partition, packed.data, packed.records, on_stored)

    def _delivered(self, size: int, on_stored: OnStored | None, base: int) -> None:
        self._done_bytes += size
        self._window.delivered(size, time.monotonic())
        if on_stored is not None and base >= 0:
            on_stored(base)

    def _note(self, notify: Callable[[int, int], None], partition: int, offset: int) -> None:
        self._news.append(partial(notify, partition, offset))

    def _notify_delivered(self) -> None:
        """Calls the registered callbacks of delivered records."""
        while self._news:
            self._news.popleft()()

    def _whole(self, batch: SourceBatch) -> Iterable[Packed]:
        delivered = batch.delivered or {}
        for index, packed in enumerate(batch.packed):
            notify = delivered.get(index)
            on_stored = None if notify is None else partial(self._note_last, notify, packed.partition, packed.records)
            yield Packed(batch.topic, packed.partition, bytearray(packed.data), packed.records, on_stored)

    def _note_last(self, notify: Callable[[int, int], None], partition: int, records: int, base: int) -> None:
        self._note(notify, partition, base + records - 1)

    def _offsets(self, topic: str, offsets: Sequence[OffsetRecord]) -> list[Packed]:
        """Returns the offset records as batches, to go behind all held records."""
        if not offsets or not topic:
            return []
        among = self.known_partitions(topic)
        by_partition: dict[int, list[OffsetRecord]] = {}
        for offset in offsets:
            by_partition.setdefault(partition_for(offset[0], among), []).append(offset)
        return [packed for number, some in by_partition.items() for packed in self._packing.keyed(topic, number, some)]

    def _post_together(self, batches: list[Packed], *, commits: bool = False) -> None:
        """Sends batches while the caller prepares to wait for them. `commits`: the caller waits for the transaction's
        end."""
        self._sent_bytes += sum(len(batch.data) for batch in batches)
        KAFKA_LOOP.do(self._send_together, self._made, batches, commits)

    def _deliver(self, batches: list[Packed]) -> None:
        """Returns once the batches are in their logs."""
        self._post_together(batches)
        self._wait(self._made.flush())

    def _send_together(self, producer: BatchProducer, batches: list[Packed], commits: bool) -> None:
        for batch in batches:
            self._send(producer, batch)
        producer.ship()
        if commits and batches:
            producer.commit_when_delivered(self._control.beat)

    def batch_bytes(self, topic: str) -> int:
        """Returns the most bytes of one batch for the topic, before compression."""
        most = self._options.batch_bytes
        return min(most, self._made.most_bytes.get(topic, most), self._most.get(topic, most))

    def known_partitions(self, topic: str) -> int:
        """Returns an existing topic's number of partitions, at most a minute old."""
        count, since = self._counts.get(topic, (0, 0.0))
        if not count or time.monotonic() - since > METADATA_SECONDS:
            count = self.partitions(topic)
        if not count:
            raise RunFailure("BROKER_LOST", f"topic {topic} does not exist")
        return count


async def _within(seconds: float, work: Coroutine[Any, Any, None]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await work


async def _close(producer: BatchProducer) -> None:
    async with asyncio.timeout(CLOSE_SECONDS):
        await producer.close()

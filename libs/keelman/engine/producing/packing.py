"""Collects records into record batches, partition by partition, before they are sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import randrange
from typing import Any

from keelman.connect.columns import taken
from keelman.connect.records import Headers, Repeated, SourceBatch
from keelman.engine.failure import RunFailure
from keelman.engine.progress import payload_bytes
from keelman.engine.records.size import too_large
from keelman.kafka.batches.partitioner import partitions_for
from keelman.kafka.batches.record_batch import pack

OnStored = Callable[[int], None]
Values = Sequence[bytes | None]

# A smaller read waits for the next one, at most until the commit; each batch costs a request, whatever its size.
SEND_BYTES = 1 << 18
# The most bytes held for all partitions together; then all of them are sent, however little each has.
HELD_BYTES = 1 << 22
RECORD_BYTES = 16  # a null with a null key takes room, too


@dataclass(slots=True)
class OutgoingRecords:
    """Records of one partition, in order. To add others, its columns must be lists."""

    values: list[bytes | None]
    keys: list[bytes | None] | None = None
    timestamps_ms: list[int | None] | Repeated[int | None] | None = None
    headers: list[Headers | None] | None = None
    size: int = 0

    def like(self, other: OutgoingRecords) -> bool:
        """Returns whether both have the same columns, so that one can be appended to the other."""
        return all((mine is None) == (theirs is None) for mine, theirs in zip(self._rest(), other._rest(), strict=True))

    def add(self, other: OutgoingRecords) -> None:
        """Appends the other's records."""
        self.values += other.values
        for mine, theirs in zip(self._rest(), other._rest(), strict=True):
            if isinstance(mine, list) and theirs is not None:
                mine.extend(theirs)
        self.size += other.size

    def picked(self, at: list[int]) -> OutgoingRecords:
        """Returns the records with these indices."""
        keys, times, headers = (None if c is None else taken(c, at) for c in self._rest())
        values = [self.values[i] for i in at]
        return OutgoingRecords(values, keys, times, headers, size_of(values, keys))

    def copied(self) -> OutgoingRecords:
        """Returns a copy with own lists, to append to: lists of a reader or a converter must not be changed."""
        keys, times, headers = (None if c is None else list(c) for c in self._rest())
        return OutgoingRecords(list(self.values), keys, times, headers, self.size)

    def _rest(self) -> tuple[Sequence[Any] | None, ...]:
        return self.keys, self.timestamps_ms, self.headers


@dataclass(slots=True)
class Packed:
    """A record batch that is ready to send; `on_stored` gets the offset of its first record."""

    topic: str
    partition: int
    data: bytearray
    records: int
    on_stored: OnStored | None = None


@dataclass(slots=True)
class Packing:
    """Packs records for one producer; one thread uses it. `partitions` returns a topic's number of partitions,
    `batch_bytes` the most bytes of a batch for it, `request_bytes` limits a single record."""

    partitions: Callable[[str], int]
    codec: int
    batch_bytes: Callable[[str], int]
    request_bytes: int
    _held: dict[tuple[str, int], OutgoingRecords] = field(default_factory=dict)
    _held_bytes: int = 0
    _sticky: dict[str, int] = field(default_factory=dict)
    _turn: Iterator[int] = field(default_factory=lambda: count(randrange(1 << 16)))

    def add(
        self,
        batch: SourceBatch,
        values: list[bytes | None],
        keys: list[bytes | None] | None,
        notify: Callable[[Callable[[int, int], None], int, int], None],
        payload: int | None = None,
    ) -> Iterator[Packed]:
        """Takes records; yields batches that are ready to send. `notify` is called with each of the batch's
        `delivered`, the partition and the offset. `payload` is the bytes of values and keys, if they are counted
        already."""
        size = size_of(values, keys) if payload is None else payload + RECORD_BYTES * len(values)
        times = batch.timestamps_ms
        if times is not None and not isinstance(times, Repeated):
            times = list(times)
        headers: list[Headers | None] | None = None if batch.headers is None else list(batch.headers)
        whole = OutgoingRecords(values, keys, times, headers, size)
        for partition, at in self._dealt(batch.topic, batch.partitions, keys, len(values)):
            columns = whole if at is None else whole.picked(at)
            if batch.delivered:
                yield from self._flushed(batch.topic, partition)
                yield from self._packed(batch.topic, partition, columns, _Asked(batch.delivered, at, notify))
            else:
                yield from self._put(batch.topic, partition, columns)

    def keyed(self, topic: str, partition: int, records: Sequence[tuple[bytes, bytes | None]]) -> Iterator[Packed]:
        """Yields batches of these keys and values of one partition."""
        return self._packed(
            topic, partition, OutgoingRecords([value for _, value in records], [key for key, _ in records])
        )

    @property
    def held_bytes(self) -> int:
        """The approximate bytes of the held records."""
        return self._held_bytes

    def flush(self) -> Iterator[Packed]:
        """Yields all held records as batches."""
        for topic, partition in list(self._held):
            yield from self._flushed(topic, partition)
        self._held_bytes = 0

    def drop(self) -> None:
        """Forgets all held records."""
        self._held.clear()
        self._held_bytes = 0

    def _put(self, topic: str, partition: int, columns: OutgoingRecords) -> Iterator[Packed]:
        held = self._held.get((topic, partition))
        if held is not None and not held.like(columns):
            yield from self._flushed(topic, partition)
            held = None
        if held is None and columns.size < SEND_BYTES:
            self._held[topic, partition] = columns.copied()
            self._held_bytes += columns.size
        elif held is None:
            yield from self._packed(topic, partition, columns)
        else:
            held.add(columns)
            self._held_bytes += columns.size
            if held.size >= SEND_BYTES:
                yield from self._flushed(topic, partition)
        if self._held_bytes >= HELD_BYTES:
            yield from self.flush()

    def _flushed(self, topic: str, partition: int) -> Iterator[Packed]:
        held = self._held.pop((topic, partition), None)
        if held is not None:
            self._held_bytes -= held.size
            yield from self._packed(topic, partition, held)

    def _packed(
        self, topic: str, partition: int, columns: OutgoingRecords, notice: _Asked | None = None
    ) -> Iterator[Packed]:
        now, times = int(time.time() * 1000), columns.timestamps_ms
        if isinstance(times, Repeated):
            now, times = now if times.value is None else times.value, None
        self._sticky.pop(topic, None)
        batches = pack(
            columns.values,
            columns.keys,
            times,
            columns.headers,
            now_ms=now,
            codec=self.codec,
            most_bytes=self.batch_bytes(topic),
        )
        for data, first, records in batches:
            if records == 1 and len(data) > self.request_bytes:
                raise RunFailure("TASK_FAILED", too_large(len(data), self.request_bytes), retriable=False)
            on_stored = None if notice is None else notice.part(partition, first, records)
            yield Packed(topic, partition, data, records, on_stored)

    def _dealt(
        self, topic: str, chosen_numbers: Sequence[int | None] | None, keys: Values | None, records: int
    ) -> Iterator[tuple[int, list[int] | None]]:
        """Yields partitions with the indices of their records, None for all. As Java's producer it goes by the record's
        own partition, else by its key, else sends all to one partition until a batch has been sent to it."""
        if chosen_numbers is not None and None not in chosen_numbers:
            numbers: Sequence[int | None] = chosen_numbers
        else:
            among = self.partitions(topic)
            if chosen_numbers is None and (among == 1 or keys is None):
                yield self._stuck_to(topic, among), None
                return
            numbers = self._chosen(topic, chosen_numbers, keys, records, among)
        if not records or numbers.count(numbers[0]) == records:
            yield (numbers[0] or 0) if records else 0, None
            return
        by_partition: dict[int, list[int]] = {}
        for index, number in enumerate(numbers):
            by_partition.setdefault(number or 0, []).append(index)
        yield from by_partition.items()

    def _stuck_to(self, topic: str, among: int) -> int:
        """Returns the partition of records without a key, the same until a batch has been sent to it."""
        return self._sticky.setdefault(topic, next(self._turn) % among)

    def _chosen(
        self, topic: str, own_numbers: Sequence[int | None] | None, keys: Values | None, records: int, among: int
    ) -> Sequence[int | None]:
        chosen: list[int | None] = [self._stuck_to(topic, among)] * records
        if keys is not None:
            keyed = [index for index, key in enumerate(keys) if key is not None]
            some = [key for key in keys if key is not None]
            for index, number in zip(keyed, partitions_for(some, among), strict=True):
                chosen[index] = number
        if own_numbers is not None:
            chosen = [mine if own is None else own for own, mine in zip(own_numbers, chosen, strict=True)]
        return chosen


def size_of(values: list[bytes | None], keys: list[bytes | None] | None) -> int:
    """Returns the approximate bytes of these records."""
    return payload_bytes(values) + (0 if keys is None else payload_bytes(keys)) + RECORD_BYTES * len(values)


@dataclass(slots=True)
class _Asked:
    """The callbacks of a batch's records that need their offsets."""

    delivered: Mapping[int, Callable[[int, int], None]]
    at: list[int] | None
    notify: Callable[[Callable[[int, int], None], int, int], None]

    def part(self, partition: int, first: int, records: int) -> OnStored:
        """Returns the callback for `records` records from `first` on."""
        notices = []
        for place in range(first, first + records):
            offset = self.delivered.get(place if self.at is None else self.at[place])
            if offset is not None:
                notices.append((offset, place - first))

        def on_stored(base: int) -> None:
            for offset, place in notices:
                self.notify(offset, partition, base + place)

        return on_stored

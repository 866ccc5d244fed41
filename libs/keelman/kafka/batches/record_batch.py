"""Record batches (magic 2), the form of records in requests and logs: packed from columns, stamped, read back.

Source: https://kafka.apache.org/documentation/#recordbatch
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from operator import length_hint
from typing import Any, NamedTuple, TypeAlias

from aiokafka import codec as codecs
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from keelman.kafka.batches.crc32c import after, crc32c
from keelman.kafka.batches.odd_headers import OddHeadersBatch
from keelman.kafka.batches.old_lz4 import is_old_lz4, unwrapped
from keelman.kafka.batches.plain_records import plain_records
from keelman.model.errors import FailedPrecondition

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
"""The headers of one record, in order; a name may come more than once."""

HEADER_BYTES = 61
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

_HEADER = struct.Struct(">qiibIhiqqqhii")
_START = struct.Struct(">qiib")
_LENGTH, _LENGTH_AT = struct.Struct(">i"), 8
_LEADER_EPOCH, _LEADER_EPOCH_AT = struct.Struct(">i"), 12
_MAGIC_AT = 16
_CRC, _CRC_AT = struct.Struct(">I"), 17
_ATTRIBUTES, _ATTRIBUTES_AT = struct.Struct(">H"), 21
_TIMES, _TIMES_AT = struct.Struct(">qq"), 27
_PRODUCER, _PRODUCER_AT = struct.Struct(">qhi"), 43
_OVERHEAD = 12
"""Base offset and length field: not included in the length."""
# For no more bytes than this, the whole checksum is computed faster than its change.
_SHORT_BYTES = 8192
_CODEC_BITS, _LOG_APPEND_BIT, _TRANSACTIONAL_BIT, _CONTROL_BIT, _DELETE_HORIZON_BIT = 0x07, 0x08, 0x10, 0x20, 0x40
SEQUENCES = 1 << 31
_NO_HEADERS: list[tuple[str, bytes | None]] = []


class CorruptBatch(FailedPrecondition):
    """A record batch does not match its header: damaged, or of an unknown codec."""

    reason = "CORRUPT_BATCH"


class BatchHeader(NamedTuple):
    """The fixed fields of one batch. For magic 0 and 1 only `base_offset`, `length` and `magic` are meaningful."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def size(self) -> int:
        """The size of the whole batch in bytes."""
        return _OVERHEAD + self.length

    @property
    def codec(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & _CODEC_BITS

    @property
    def transactional(self) -> bool:
        """Whether it was written in a transaction."""
        return bool(self.attributes & _TRANSACTIONAL_BIT)

    @property
    def control(self) -> bool:
        """Whether it holds the end of a transaction instead of data."""
        return bool(self.attributes & _CONTROL_BIT)

    @property
    def last_offset(self) -> int:
        """The offset of its last record, even if that was compacted away."""
        return self.base_offset + self.last_offset_delta


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """The records of one batch; all lists are of the same length."""

    offsets: list[int]
    timestamps_ms: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[list[tuple[str, bytes | None]]]


def read_header(data: bytes | bytearray | memoryview, at: int = 0) -> BatchHeader:
    """Reads the header of the batch that begins there. Raises struct.error when it is cut off."""
    base_offset, length, epoch, magic = _START.unpack_from(data, at)
    if magic >= 2:
        return BatchHeader(*_HEADER.unpack_from(data, at))
    return BatchHeader(base_offset, length, epoch, magic, 0, 0, 0, -1, -1, -1, -1, -1, -1)


def record_batches(data: bytes | bytearray | memoryview) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yields the whole batches of a fetched record set, in order, without a cut-off one at its end.

    A broker cuts the last batch at the requested number of bytes. Of magic 0 and 1 each message comes by itself.
    """
    view = memoryview(data)
    at, end = 0, len(view)
    while end - at > _MAGIC_AT:
        size = _OVERHEAD + int(_LENGTH.unpack_from(view, at + _LENGTH_AT)[0])
        if size > end - at:
            return
        if size < (HEADER_BYTES if view[at + _MAGIC_AT] >= 2 else _CRC_AT):
            raise CorruptBatch(f"a record batch of {size} bytes at byte {at} of {end}")
        yield read_header(view, at), view[at : at + size]
        at += size


def encode(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    timestamps_ms: Sequence[int | None] | None = None,
    headers: Sequence[Headers | None] | None = None,
    *,
    now_ms: int,
    codec: int = NONE,
) -> bytearray:
    """Packs records into one batch, to be stamped before it is sent. All given columns have one length, at least 1.

    No `keys`: all null. No timestamp: `now_ms`. Data that a codec does not shrink stays uncompressed. Raises ValueError
    when there is no record or a column has another length.
    """
    packed = pack(values, keys, timestamps_ms, headers, now_ms=now_ms, codec=codec, most_bytes=SEQUENCES - 1)
    if not packed:
        raise ValueError("a record batch has at least one record")
    return packed[0][0]


def pack(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    timestamps_ms: Sequence[int | None] | None = None,
    headers: Sequence[Headers | None] | None = None,
    *,
    now_ms: int,
    codec: int = NONE,
    most_bytes: int,
) -> list[tuple[bytearray, int, int]]:
    """Packs records into batches of under `most_bytes` before compression: (batch, first record, records) in order.

    A larger single record has its own batch. Raises ValueError when a column has another length.
    """
    number = len(values)
    if keys is None and timestamps_ms is None and headers is None and now_ms >= 0:
        plain = _plain(values, now_ms, most_bytes)
        if plain is not None:
            return [(plain if codec == NONE else _compressed(plain, codec), 0, number)]
    times, oldest = _times(timestamps_ms, number, now_ms)
    old = oldest < 0
    # The builder takes -1 for a missing time: such columns are shifted so that no time is -1.
    later = next(by for by in count(1) if -1 - by not in times) if old else 0
    columns: tuple[Sequence[Any], ...] = (
        [_int64(time + later) for time in times] if old else times,
        [None] * number if keys is None else keys,
        values,
        [_NO_HEADERS] * number
        if headers is None
        else [some if type(some) is list else list(some or ()) for some in headers],
    )
    if any(len(column) != number for column in columns):
        raise ValueError(f"columns of different lengths: {[len(column) for column in columns]}")
    rest = tuple(map(iter, columns))
    packed = []
    first = 0
    while first < number:
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, most_bytes)
        if first:
            builder.append(0, *(column[first] for column in columns))
        deltas = iter(range(1 if first else 0, number - first))
        # A full builder returns None instead of taking the record, which then begins the next batch.
        full = not all(map(builder.append, deltas, *rest))
        taken = number - first - length_hint(deltas) - full
        batch = builder.build()
        if old:
            _TIMES.pack_into(batch, _TIMES_AT, times[first], max(times[first : first + taken]))
            _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_ATTRIBUTES_AT:]))
        packed.append((batch if codec == NONE else _compressed(batch, codec), first, taken))
        first += taken
    return packed


def stamp(batch: bytearray, producer_id: int, epoch: int, sequence: int, *, transactional: bool) -> None:
    """Sets the batch's producer in place; `sequence` (of its first record) continues with 0 after 2^31-1.

    Works for batches of `encode` and for `passable` ones, in some 10 us at any length: a batch that was damaged
    before keeps a wrong checksum, and the broker refuses it.
    """
    behind = HEADER_BYTES if len(batch) > _SHORT_BYTES else len(batch)
    before = crc32c(batch[_ATTRIBUTES_AT:behind])
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    attributes = attributes | _TRANSACTIONAL_BIT if transactional else attributes & ~_TRANSACTIONAL_BIT
    batch[:_LENGTH_AT] = bytes(_LENGTH_AT)
    _LEADER_EPOCH.pack_into(batch, _LEADER_EPOCH_AT, -1)
    _ATTRIBUTES.pack_into(batch, _ATTRIBUTES_AT, attributes)
    _PRODUCER.pack_into(batch, _PRODUCER_AT, producer_id, epoch, sequence % SEQUENCES)
    difference = before ^ crc32c(batch[_ATTRIBUTES_AT:behind])
    (crc,) = _CRC.unpack_from(batch, _CRC_AT)
    _CRC.pack_into(batch, _CRC_AT, crc ^ after(difference, len(batch) - behind))


def passable(header: BatchHeader, *, codec: int | None) -> bool:
    """Whether a fetched batch can go to another topic unchanged.

    Not: old formats, control batches, compacted ones (their sequence numbers would have holes, or they set the expiry
    of their tombstones), those with the broker's time (refused from producers), those of another codec than `codec` if
    that is set.
    """
    return (
        header.magic == 2
        and not header.attributes & (_CONTROL_BIT | _LOG_APPEND_BIT | _DELETE_HORIZON_BIT)
        and header.last_offset_delta == header.records - 1
        and (codec is None or header.codec == codec)
    )


def decode(header: BatchHeader, data: bytes | bytearray | memoryview) -> RecordColumns:
    """Reads all records of one batch or, with magic 0 or 1, of one message or wrapped set. Raises CorruptBatch."""
    if header.magic >= 2 and header.records == 0:  # all compacted away
        return RecordColumns([], [], [], [], [])
    try:
        records = _records(header, bytes(data))
    except CorruptBatch:
        raise
    except Exception as error:
        # Each codec has its own errors for unreadable data.
        raise CorruptBatch(f"the batch of offset {header.base_offset} cannot be read: {error}") from error
    return RecordColumns(
        [record.offset for record in records],
        [record.timestamp for record in records] if header.magic else [-1] * len(records),  # magic 0 has no time
        [record.key for record in records],
        [record.value for record in records],
        [record.headers for record in records],
    )


def intact(batch: bytes | bytearray) -> bool:
    """Whether a batch's checksum matches its content."""
    return crc32c(memoryview(batch)[_ATTRIBUTES_AT:]) == read_header(batch).crc


def verify(header: BatchHeader, data: bytes | bytearray | memoryview) -> None:
    """Raises CorruptBatch for a batch of magic 2 that has changed since it was written, in Java's words."""
    computed = crc32c(memoryview(data)[_ATTRIBUTES_AT:])
    if computed != header.crc:
        raise CorruptBatch(
            f"Record batch at offset {header.base_offset} is invalid, cause: Record is corrupt "
            f"(stored crc = {header.crc}, computed crc = {computed})"
        )


def _records(header: BatchHeader, data: bytes) -> list[Any]:
    if header.magic == 2:
        verify(header, data)
    batch = MemoryRecords(data).next_batch()
    if batch is None or header.magic > 2 or (header.magic < 2 and not batch.validate_crc()):
        raise CorruptBatch(f"the batch of offset {header.base_offset} has a wrong checksum or an unknown format")
    if header.magic == 0 and is_old_lz4(data):
        within = unwrapped(data)
        return [record for inner, message in record_batches(within) for record in _records(inner, bytes(message))]
    try:
        return list(batch)
    except UnicodeDecodeError:
        return list(OddHeadersBatch(data))


def halves(batch: bytes | bytearray) -> list[tuple[bytearray, int]]:
    """Returns the records of one batch as two unstamped ones, each with its number of records. Raises CorruptBatch.

    For a batch of several records that is too large for its topic.
    """
    header = read_header(batch)
    columns, half = decode(header, batch), header.records // 2
    pair = []
    for some in (slice(None, half), slice(half, None)):
        values, keys = columns.values[some], columns.keys[some]
        times, headers = columns.timestamps_ms[some], columns.headers[some]
        pair.append((encode(values, keys, times, headers, now_ms=-1, codec=header.codec), len(values)))
    return pair


def _plain(values: Sequence[bytes | None], now_ms: int, most_bytes: int) -> bytearray | None:
    """Packs values with one time into a batch; None if they are too many for it, or some are null."""
    encoded = plain_records(values, HEADER_BYTES, most_bytes)
    if encoded is None:
        return None
    number = len(values)
    _HEADER.pack_into(
        encoded, 0, 0, len(encoded) - _OVERHEAD, -1, 2, 0, 0, number - 1, now_ms, now_ms, -1, -1, -1, number
    )
    _CRC.pack_into(encoded, _CRC_AT, crc32c(memoryview(encoded)[_ATTRIBUTES_AT:]))
    return encoded


def _times(own_times: Sequence[int | None] | None, number: int, now_ms: int) -> tuple[Sequence[int], int]:
    """Returns a time for each record, and the least of them."""
    if own_times is None:
        return [now_ms] * number, now_ms
    if own_times and own_times[0] is not None:
        with suppress(TypeError):  # there is a null among them
            return own_times, min(own_times)  # type: ignore[return-value, type-var]
    times = [now_ms if time is None else time for time in own_times]
    return times, min(times, default=0)


def _int64(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _compressed(batch: bytearray, codec: int) -> bytearray:
    records = bytes(memoryview(batch)[HEADER_BYTES:])
    small = _COMPRESS[codec](records)
    if len(small) >= len(records):
        return batch
    whole = bytearray().join((memoryview(batch)[:HEADER_BYTES], small))
    _LENGTH.pack_into(whole, _LENGTH_AT, len(whole) - _OVERHEAD)
    _ATTRIBUTES.pack_into(whole, _ATTRIBUTES_AT, codec)
    _CRC.pack_into(whole, _CRC_AT, crc32c(memoryview(whole)[_ATTRIBUTES_AT:]))
    return whole


_COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    # The default levels of Java's producer: the codecs' own are many times slower.
    GZIP: lambda records: codecs.gzip_encode(records, 6),
    SNAPPY: codecs.snappy_encode,
    LZ4: lambda records: codecs.lz4_encode(records, 1),
    ZSTD: codecs.zstd_encode,
}

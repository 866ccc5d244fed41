"""Record batches (magic 2), the form in which records travel and rest: packed from columns, stamped, read back.

Source: https://kafka.apache.org/documentation/#recordbatch
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from operator import add, attrgetter
from typing import NamedTuple, TypeAlias

from aiokafka import codec as codecs
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c

from keelman.model.errors import KeelmanError

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
"""The headers of one record, in order; a name may come more than once."""

HEADER_BYTES = 61
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

_HEADER = struct.Struct(">qiibIhiqqqhii")
_START = struct.Struct(">qiib")
_STAMP = struct.Struct(">qhi")
_LENGTH_AT, _EPOCH_AT, _MAGIC_AT, _CRC_AT, _ATTRIBUTES_AT, _PRODUCER_AT = 8, 12, 16, 17, 21, 43
_OVERHEAD = 12
"""Base offset and length: what the length does not count."""
_CODEC_BITS, _LOG_APPEND_BIT, _TRANSACTIONAL_BIT, _CONTROL_BIT = 0x07, 0x08, 0x10, 0x20
_RECORD_OVERHEAD = 36
"""Most that a record has beside key, value and headers: attributes 1, time 10, and five numbers of 5 at most."""
_HEADER_OVERHEAD = 10
_SEQUENCES = 1 << 31


class CorruptBatch(KeelmanError):
    """A record batch is not what its header says: damaged, or of an unknown codec."""

    reason = "CORRUPT_BATCH"


class BatchHeader(NamedTuple):
    """The fixed fields of one batch. For magic 0 and 1 only `base_offset`, `length` and `magic` mean something."""

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
        """Bytes of the whole batch."""
        return _OVERHEAD + self.length

    @property
    def codec(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & _CODEC_BITS

    @property
    def log_append_time(self) -> bool:
        """The broker gave all its records the time at which it wrote them: `max_timestamp`."""
        return bool(self.attributes & _LOG_APPEND_BIT)

    @property
    def transactional(self) -> bool:
        """Written in a transaction."""
        return bool(self.attributes & _TRANSACTIONAL_BIT)

    @property
    def control(self) -> bool:
        """Holds the end of a transaction instead of data."""
        return bool(self.attributes & _CONTROL_BIT)

    @property
    def last_offset(self) -> int:
        """Offset of its last record, also when that one was compacted away."""
        return self.base_offset + self.last_offset_delta


@dataclass(frozen=True, slots=True)
class Columns:
    """The records of one batch; all lists are of the same length."""

    offsets: list[int]
    timestamps_ms: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[list[tuple[str, bytes | None]]]


def read_header(data: bytes | bytearray | memoryview, at: int = 0) -> BatchHeader:
    """The header of the batch that begins there. Raises struct.error when it is cut off."""
    base_offset, length, epoch, magic = _START.unpack_from(data, at)
    if magic >= 2:
        return BatchHeader(*_HEADER.unpack_from(data, at))
    return BatchHeader(base_offset, length, epoch, magic, 0, 0, 0, -1, -1, -1, -1, -1, -1)


def record_batches(data: bytes | bytearray | memoryview) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The whole batches of a fetched record set, in order; a cut-off one at its end is left out.

    A broker cuts the last batch where the asked number of bytes ends. Of magic 0 and 1 each message comes by itself.
    """
    view = memoryview(data)
    at, end = 0, len(view)
    while end - at > _MAGIC_AT:
        size = _OVERHEAD + int(struct.unpack_from(">i", view, at + _LENGTH_AT)[0])
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
    """One batch of these records, to be stamped before it is sent. All columns given have the same length, at least 1.

    No `keys`: all null. No timestamp: `now_ms`. What a codec does not make smaller stays as it is.
    """
    if not values:
        raise ValueError("a record batch has at least one record")
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, _SEQUENCES - 1)
    times = repeat(now_ms) if timestamps_ms is None else [now_ms if t is None else t for t in timestamps_ms]
    named: Iterable[list[tuple[str, bytes | None]]]
    named = repeat([]) if headers is None else [list(of_one) if of_one else [] for of_one in headers]
    all_keys = repeat(None) if keys is None else keys
    deque(map(builder.append, range(len(values)), times, all_keys, values, named), maxlen=0)
    batch = builder.build()
    return batch if codec == NONE else _compressed(batch, codec)


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
    """These records as batches of at most `most_bytes` before compression: (batch, first record, records) in order.

    A single record over it has a batch of its own.
    """
    packed = []
    for first, end in _cuts(_sizes(values, keys, headers), most_bytes - HEADER_BYTES):
        batch = encode(
            values[first:end],
            None if keys is None else keys[first:end],
            None if timestamps_ms is None else timestamps_ms[first:end],
            None if headers is None else headers[first:end],
            now_ms=now_ms,
            codec=codec,
        )
        packed.append((batch, first, end - first))
    return packed


def stamp(batch: bytearray, producer_id: int, epoch: int, sequence: int, *, transactional: bool) -> None:
    """Makes the batch this producer's, in place; `sequence` (of its first record) goes on with 0 after 2^31-1.

    For batches of `encode` and for `passable` ones alike; a retry needs no new stamp, a new epoch does.
    """
    attributes = int.from_bytes(batch[_ATTRIBUTES_AT : _ATTRIBUTES_AT + 2])
    attributes = attributes | _TRANSACTIONAL_BIT if transactional else attributes & ~_TRANSACTIONAL_BIT
    struct.pack_into(">q", batch, 0, 0)
    struct.pack_into(">i", batch, _EPOCH_AT, -1)
    struct.pack_into(">H", batch, _ATTRIBUTES_AT, attributes)
    _STAMP.pack_into(batch, _PRODUCER_AT, producer_id, epoch, sequence % _SEQUENCES)
    _write_crc(batch)


def passable(header: BatchHeader, *, codec: int | None) -> bool:
    """Whether a fetched batch can go to another topic as it is.

    Not: old formats, control batches, compacted ones (their sequence numbers would have holes), those with the broker's
    time (refused from producers), those of another codec than `codec` if one is asked for.
    """
    return (
        header.magic == 2
        and not header.attributes & (_CONTROL_BIT | _LOG_APPEND_BIT)
        and header.last_offset_delta == header.records - 1
        and (codec is None or header.codec == codec)
    )


def decode(header: BatchHeader, data: bytes | bytearray | memoryview) -> Columns:
    """All records of one batch or, with magic 0 or 1, of one message set. Raises CorruptBatch."""
    fields = attrgetter("offset", "timestamp", "key", "value", "headers")
    try:
        if header.magic >= 2:
            batch = DefaultRecordBatch(bytearray(data))
            if not batch.validate_crc():
                raise CorruptBatch(f"the batch of offset {header.base_offset} has a wrong checksum")
            records = list(map(fields, batch))
        else:
            records = list(map(fields, _old_records(bytes(data))))
    except CorruptBatch:
        raise
    except Exception as error:
        raise CorruptBatch(f"the batch of offset {header.base_offset} cannot be read: {error}") from error
    if not records:
        return Columns([], [], [], [], [])
    return Columns(*map(list, zip(*records, strict=True)))


def _old_records(data: bytes) -> Iterator[object]:
    batches = MemoryRecords(data)
    while (batch := batches.next_batch()) is not None:
        if not batch.validate_crc():
            raise CorruptBatch("a message has a wrong checksum")
        yield from batch


def _compressed(batch: bytearray, codec: int) -> bytearray:
    records = bytes(memoryview(batch)[HEADER_BYTES:])
    match codec:
        case 1:
            small = codecs.gzip_encode(records, 6)
        case 2:
            small = codecs.snappy_encode(records)
        case 3:
            small = codecs.lz4_encode(records, 1)
        case 4:
            small = codecs.zstd_encode(records)
        case _:
            raise ValueError(f"there is no codec {codec}")
    if len(small) >= len(records):
        return batch
    made = bytearray().join((memoryview(batch)[:HEADER_BYTES], small))
    struct.pack_into(">i", made, _LENGTH_AT, len(made) - _OVERHEAD)
    struct.pack_into(">H", made, _ATTRIBUTES_AT, codec)
    _write_crc(made)
    return made


def _write_crc(batch: bytearray) -> None:
    struct.pack_into(">I", batch, _CRC_AT, calc_crc32c(memoryview(batch)[_ATTRIBUTES_AT:]))


def _sizes(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None,
    headers: Sequence[Headers | None] | None,
) -> list[int]:
    """At most so many bytes each record takes."""
    sizes = [_RECORD_OVERHEAD + (0 if v is None else len(v)) for v in values]
    if keys is not None:
        sizes = list(map(add, sizes, [0 if k is None else len(k) for k in keys]))
    if headers is not None:
        sizes = list(map(add, sizes, map(_headers_size, headers)))
    return sizes


def _headers_size(headers: Headers | None) -> int:
    if not headers:
        return 0
    # Four bytes is the most a character takes in UTF-8.
    return sum(_HEADER_OVERHEAD + 4 * len(name) + (0 if value is None else len(value)) for name, value in headers)


def _cuts(sizes: list[int], most: int) -> Iterator[tuple[int, int]]:
    """Where to cut: ranges of records that take at most `most` bytes, or are a single record."""
    ends = list(accumulate(sizes))
    first = gone = 0
    while first < len(ends):
        end = max(first + 1, bisect_right(ends, gone + most, first))
        yield first, end
        first, gone = end, ends[end - 1]

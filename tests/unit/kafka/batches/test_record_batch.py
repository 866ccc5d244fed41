"""Record batches, compared with a second implementation of the format: aiokafka's own in plain Python."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from aiokafka import codec as codecs
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy, _DefaultRecordBatchPy
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.kafka.batches.crc32c import after, crc32c
from keelman.kafka.batches.record_batch import (
    GZIP,
    HEADER_BYTES,
    NONE,
    ZSTD,
    BatchHeader,
    CorruptBatch,
    RecordColumns,
    decode,
    encode,
    pack,
    passable,
    read_header,
    record_batches,
    stamp,
)

NOW = 1_700_000_000_000
CODECS = range(5)

# Lengths at which a varint grows by a byte, besides short ones.
TEXTS = st.binary(max_size=70) | st.sampled_from([b"v" * n for n in (62, 63, 64, 65, 8190, 8191, 8192, 8193)])
HEADERS = st.lists(st.tuples(st.text(max_size=9), st.none() | st.binary(max_size=70)), max_size=4)
TIMES = st.none() | st.sampled_from([NOW, NOW + 1, -1, -2, 0]) | st.integers(-(1 << 62), (1 << 62) - 1)
Row = tuple[bytes | None, bytes | None, int | None, list[tuple[str, bytes | None]]]
ROWS = st.lists(st.tuples(st.none() | TEXTS, st.none() | TEXTS, TIMES, HEADERS), min_size=1, max_size=25)


def columns(rows: Sequence[Row]) -> tuple[list[bytes | None], list[bytes | None], list[int | None], list[object]]:
    values, keys, times, headers = map(list, zip(*rows, strict=True))
    return values, keys, times, headers


def expected(rows: Sequence[Row], base: int = 0) -> RecordColumns:
    values, keys, times, headers = columns(rows)
    return RecordColumns(
        list(range(base, base + len(rows))),
        [NOW if time is None else time for time in times],
        keys,
        values,
        headers,  # type: ignore[arg-type]
    )


def made_elsewhere(rows: Sequence[Row], codec: int = 0, producer: tuple[int, int, int] = (-1, -1, -1)) -> bytearray:
    builder = _DefaultRecordBatchBuilderPy(2, codec, 0, *producer, 1 << 30)
    for number, (value, key, time, headers) in enumerate(rows):
        assert builder.append(number, NOW if time is None else time, key, value, headers)
    encoded: bytearray = builder.build()
    return encoded


def with_fields(batch: bytes | bytearray, **fields: int) -> bytearray:
    """The batch with changed header fields and a valid checksum."""
    changed = bytearray(struct.pack(">qiibIhiqqqhii", *read_header(batch)._replace(**fields))) + batch[HEADER_BYTES:]
    struct.pack_into(">I", changed, 17, crc32c(changed[21:]))
    return changed


@given(ROWS, st.sampled_from(CODECS))
@settings(max_examples=80, deadline=None)
def test_what_is_packed_is_read_by_another(rows: list[Row], codec: int) -> None:
    values, keys, times, headers = columns(rows)
    batch = encode(values, keys, times, headers, now_ms=NOW, codec=codec)  # type: ignore[arg-type]
    reader = _DefaultRecordBatchPy(batch)
    assert reader.validate_crc()
    read = [(r.value, r.key, r.timestamp, r.headers, r.offset) for r in reader]
    assert read == [(v, k, NOW if t is None else t, h, n) for n, (v, k, t, h) in enumerate(rows)]
    header = read_header(batch)
    assert header.size == len(batch)
    assert (header.records, header.last_offset_delta) == (len(rows), len(rows) - 1)
    assert header.codec in (0, codec)
    assert header.attributes == header.codec
    assert header.base_timestamp == read[0][2]
    assert header.max_timestamp == max(record[2] for record in read)
    if codec == 0:
        assert batch == made_elsewhere(rows)


@given(ROWS, st.sampled_from(CODECS), st.integers(0, 1 << 50))
@settings(max_examples=80, deadline=None)
def test_what_another_packed_is_read(rows: list[Row], codec: int, base: int) -> None:
    fetched = with_fields(made_elsewhere(rows, codec), base_offset=base)
    [(header, view)] = record_batches(bytes(fetched))
    assert decode(header, view) == expected(rows, base)
    assert header.last_offset == base + len(rows) - 1


@pytest.mark.parametrize("codec", CODECS)
def test_values_alone(codec: int) -> None:
    values = [b"line %d" % number for number in range(9_000)]
    batch = encode(values, now_ms=NOW, codec=codec)
    header = read_header(batch)
    assert header.codec == codec
    assert decode(header, batch) == expected([(value, None, None, []) for value in values])
    assert (len(batch) < 100_000) == (codec > 0)


def test_the_outermost_timestamps() -> None:
    for times in ([-(1 << 63), (1 << 63) - 1, 0, -1], [(1 << 63) - 1, -(1 << 63)], [-1], [-1, NOW], [-9, -8], [-2, -1]):
        batch = encode([b""] * len(times), timestamps_ms=times, now_ms=NOW)
        header = read_header(batch)
        assert decode(header, batch).timestamps_ms == times
        assert (header.base_timestamp, header.max_timestamp) == (times[0], max(times))


def test_what_cannot_be_packed() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode([], now_ms=NOW)
    with pytest.raises(ValueError, match="different lengths"):
        encode([b"a", b"b"], [b"a"], now_ms=NOW)
    assert pack([], None, None, None, now_ms=NOW, codec=0, most_bytes=100) == []


@given(ROWS, st.integers(70, 2000), st.sampled_from(CODECS))
@settings(max_examples=60, deadline=None)
def test_batches_are_filled_in_order(rows: list[Row], most: int, codec: int) -> None:
    values, keys, times, headers = columns(rows)
    packed = pack(values, keys, times, headers, now_ms=NOW, codec=codec, most_bytes=most)  # type: ignore[arg-type]
    assert [first for _, first, _ in packed] == [sum(n for _, _, n in packed[:at]) for at in range(len(packed))]
    assert sum(count for _, _, count in packed) == len(rows)
    for batch, first, count in packed:
        assert decode(read_header(batch), batch) == expected(rows[first : first + count])
        assert len(made_elsewhere(rows[first : first + count])) <= most or count == 1
        if first + count < len(rows):
            assert len(made_elsewhere(rows[first : first + count + 1])) >= most


@given(
    ROWS | ROWS.map(lambda rows: [*rows, (b"v" * 9000, None, NOW, [])]),
    st.booleans(),
    st.integers(0, 1 << 40),
    st.integers(0, 32767),
    st.sampled_from([0, 9, 2**31 - 1]),
)
@settings(max_examples=60, deadline=None)
def test_a_stamp_is_what_another_producer_would_write(
    rows: list[Row], transactional: bool, producer: int, epoch: int, sequence: int
) -> None:
    batch = encode(*columns(rows), now_ms=NOW)  # type: ignore[arg-type]
    fetched = with_fields(batch, base_offset=77, leader_epoch=3, producer_id=5, producer_epoch=6, attributes=0x10)
    for encoded in (batch, fetched):
        stamp(encoded, producer, epoch, sequence, transactional=transactional)
        attributes = 0x10 if transactional else 0
        assert encoded == with_fields(made_elsewhere(rows, 0, (producer, epoch, sequence)), attributes=attributes)


def test_a_stamp_keeps_the_codec_and_wraps_the_sequence() -> None:
    batch = encode([b"v" * 100] * 9, now_ms=NOW, codec=4)
    stamp(batch, 1, 2, 1 << 31, transactional=True)
    header = read_header(batch)
    assert (header.codec, header.transactional, header.base_sequence) == (4, True, 0)
    assert decode(header, batch).values == [b"v" * 100] * 9


@given(st.integers(21, 1100), st.integers(1, 255), st.sampled_from([10, 100]))
@settings(deadline=None)
def test_damage_survives_a_stamp(at: int, flipped: int, records: int) -> None:
    batch = encode([b"v" * 100] * records, now_ms=NOW)
    if at < len(batch):
        batch[at] ^= flipped
        stamp(batch, 1, 2, 3, transactional=True)
        # The stamp overwrites these anyway; all other fields must remain visible.
        assert crc32c(batch[21:]) != read_header(batch).crc
        with pytest.raises(CorruptBatch):
            decode(read_header(batch), batch)


@given(st.binary(min_size=1, max_size=60), st.data(), st.integers(0, 5000))
@settings(deadline=None)
def test_checksums_differ_by_what_is_in_front(one: bytes, data: st.DataObject, count: int) -> None:
    other = data.draw(st.binary(min_size=len(one), max_size=len(one)))
    tail = b"tail" * count
    assert crc32c(one + tail) ^ crc32c(other + tail) == after(crc32c(one) ^ crc32c(other), len(tail))


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == crc32c(memoryview(bytearray(b"123456789"))) == 0xE3069283  # RFC 3720, B.4


def test_a_record_set_that_was_cut_off() -> None:
    batches = [bytes(encode([b"%d" % number] * 3, now_ms=NOW)) for number in range(3)]
    whole = b"".join(batches)
    ends = [sum(map(len, batches[: number + 1])) for number in range(3)]
    for end in range(len(whole) + 1):
        actual_record_batches = list(record_batches(whole[:end]))
        assert [bytes(view) for _, view in actual_record_batches] == batches[
            : sum(single_end <= end for single_end in ends)
        ]
        assert all(header == read_header(view) for header, view in actual_record_batches)


def test_a_record_set_of_nonsense() -> None:
    batch = bytearray(encode([b"v"], now_ms=NOW))
    struct.pack_into(">i", batch, 8, -12)
    with pytest.raises(CorruptBatch):
        list(record_batches(batch))


@pytest.mark.parametrize(
    ("fields", "codec", "fit"),
    [
        ({}, None, True),
        ({}, 0, True),
        ({}, 3, False),
        ({"attributes": 0x13}, 3, True),
        ({"attributes": 0x13}, None, True),
        ({"attributes": 0x08}, None, False),
        ({"attributes": 0x20}, None, False),
        ({"attributes": 0x40}, None, False),
        ({"last_offset_delta": 5}, None, False),
        ({"magic": 1}, None, False),
        ({"magic": 3}, None, False),
    ],
)
def test_what_may_be_passed_on(fields: dict[str, int], codec: int | None, fit: bool) -> None:
    header = BatchHeader(10, 90, 1, 2, 0, 0, 4, NOW, NOW, -1, -1, -1, 5)
    assert passable(header._replace(**fields), codec=codec) is fit


def test_the_brokers_time_is_that_of_all_records() -> None:
    batch = with_fields(encode([b"a", b"b"], timestamps_ms=[1, 2], now_ms=NOW), attributes=0x08, max_timestamp=NOW)
    header = read_header(batch)
    assert decode(header, batch).timestamps_ms == [NOW, NOW]


def test_a_compacted_batch_keeps_its_offsets() -> None:
    builder = _DefaultRecordBatchBuilderPy(2, 0, 0, -1, -1, -1, 1 << 20)
    for offset in (0, 3, 4):
        builder.append(offset, NOW, b"k", b"v", [])
    batch = with_fields(builder.build(), base_offset=100, last_offset_delta=7)
    header = read_header(batch)
    assert not passable(header, codec=None)
    assert decode(header, batch).offsets == [100, 103, 104]
    assert header.last_offset == 107
    empty = with_fields(batch[:HEADER_BYTES], length=HEADER_BYTES - 12, records=0, attributes=3)
    [(header, view)] = record_batches(empty)
    assert decode(header, view) == RecordColumns([], [], [], [], [])


@pytest.mark.parametrize("codec", CODECS)
def test_what_cannot_be_read(codec: int) -> None:
    batch = encode([b"v" * 50] * 50, now_ms=NOW, codec=codec)
    for bad in (
        with_fields(batch, attributes=codec ^ 7),  # no such codec
        with_fields(batch, records=51),
        with_fields(batch[:-1], length=len(batch) - 13),
        with_fields(batch, magic=3),
        batch[:-1],
    ):
        with pytest.raises(CorruptBatch):
            decode(read_header(bad), bad)


@pytest.mark.parametrize(("magic", "codec"), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3)])
def test_old_message_sets(magic: int, codec: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    builder.append(0, 5, b"k", b"v" * 100)
    builder.append(1, 6, None, None)
    data = bytes(builder.build())
    actual_record_batches = list(record_batches(data + data[:20]))
    assert [header.magic for header, _ in actual_record_batches] == [magic] * (1 if codec else 2)
    assert not any(passable(header, codec=None) for header, _ in actual_record_batches)
    read = [decode(header, view) for header, view in actual_record_batches]
    assert [key for entry in read for key in entry.keys] == [b"k", None]
    assert [value for entry in read for value in entry.values] == [b"v" * 100, None]
    assert [offset for batch_read in read for offset in batch_read.offsets] == [0, 1]
    assert [time for batch_read in read for time in batch_read.timestamps_ms] == ([5, 6] if magic else [-1, -1])
    assert [headers for batch_read in read for headers in batch_read.headers] == [[], []]


@pytest.mark.parametrize("codec", [NONE, GZIP, ZSTD])
def test_header_names_that_are_not_utf_8_are_read_as_java_reads_them(codec: int) -> None:
    rows = [(b"v", [("name", b"1")]), (None, [("x\x01y", None), ("naming", b"2")]), (b"w" * 300, [])]
    plain = encode([v for v, _ in rows], [b"k", None, b"l"], [5, -3, 7], [h for _, h in rows], now_ms=1)
    plain[plain.index(b"x\x01y") : plain.index(b"x\x01y") + 3] = b"x\xffy"
    odd = bytearray(plain)
    if codec:
        packed = {GZIP: codecs.gzip_encode, ZSTD: codecs.zstd_encode}[codec](bytes(plain[HEADER_BYTES:]))
        odd[HEADER_BYTES:] = packed
        struct.pack_into(">i", odd, 8, len(odd) - 12)
        struct.pack_into(">H", odd, 21, codec)
    struct.pack_into(">I", odd, 17, crc32c(memoryview(odd)[21:]))
    columns = decode(read_header(odd), odd)
    assert columns.headers == [[("name", b"1")], [("x\ufffdy", None), ("naming", b"2")], []]
    assert (columns.values, columns.keys) == ([b"v", None, b"w" * 300], [b"k", None, b"l"])
    assert (columns.offsets, columns.timestamps_ms) == ([0, 1, 2], [5, -3, 7])
    odd[-1] ^= 1
    with pytest.raises(CorruptBatch, match="Record is corrupt"):
        decode(read_header(odd), odd)

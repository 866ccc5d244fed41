"""Fetched record sets without markers and aborted records, and the position at which the next fetch begins."""

import struct
from contextlib import suppress

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from keelman.kafka.batches.record_batch import CorruptBatch, decode, intact
from keelman.kafka.fetching.fetched import whole_batches

ABORT, COMMIT = b"\x00\x00\x00\x00", b"\x00\x00\x00\x01"


def placed(batch: bytearray, offset: int, *, control: bool = False, last_delta: int | None = None) -> bytes:
    """A batch at a given offset of a log."""
    struct.pack_into(">q", batch, 0, offset)
    if control:
        struct.pack_into(">H", batch, 21, struct.unpack_from(">H", batch, 21)[0] | 0x20)
    if last_delta is not None:
        struct.pack_into(">i", batch, 23, last_delta)
    struct.pack_into(">I", batch, 17, calc_crc32c(memoryview(batch)[21:]))
    return bytes(batch)


def data(offset: int, values: list[bytes], producer: int = -1, *, last_delta: int | None = None) -> bytes:
    transactional = int(producer >= 0)
    builder = DefaultRecordBatchBuilder(2, 0, transactional, producer, 0 if transactional else -1, -1, 1 << 20)
    for index, value in enumerate(values):
        builder.append(index, 1_000 + index, None, value, [])
    return placed(builder.build(), offset, last_delta=last_delta)


def marker(offset: int, producer: int, kind: bytes) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 1, producer, 0, -1, 1 << 20)
    builder.append(0, 1_000, kind, b"\x00" * 6, [])
    return placed(builder.build(), offset, control=True)


def left(log: bytes, position: int = 0, aborted: tuple[tuple[int, int], ...] = (), *, committed: bool = True) -> object:
    batches, behind = whole_batches(log, position, aborted, read_committed=committed, check_crcs=True)
    return [value for header, batch in batches for value in decode(header, batch).values], behind


def test_aborted_transactions_of_one_producer_do_not_hide_its_others() -> None:
    log = b"".join(
        (
            data(0, [b"a1", b"a2"], 7),
            data(2, [b"b1"], 8),
            data(3, [b"plain"]),
            marker(4, 7, ABORT),
            data(5, [b"a3"], 7),
            marker(6, 8, COMMIT),
            marker(7, 7, COMMIT),
            data(8, [b"a4"], 7),
            data(9, [b"b2"], 8),
            marker(10, 8, ABORT),
            marker(11, 7, ABORT),
        )
    )
    aborted = ((8, 9), (7, 0), (7, 8))
    assert left(log, 0, aborted) == ([b"b1", b"plain", b"a3"], 12)
    everything = [b"a1", b"a2", b"b1", b"plain", b"a3", b"a4", b"b2"]
    assert left(log, 0, aborted, committed=False) == (everything, 12)


def test_an_answer_that_begins_inside_an_aborted_transaction_hides_the_rest_of_it() -> None:
    log = data(5, [b"gone", b"gone"], 7) + marker(7, 7, ABORT) + data(8, [b"stays"], 7)
    assert left(log, 6, ((7, 2),)) == ([b"stays"], 9)


def test_a_cut_off_batch_is_not_passed_over_and_an_empty_one_is() -> None:
    log = data(0, [b"a", b"b"])
    whole = log + data(2, [b"c"])
    assert left(whole[:-1]) == ([b"a", b"b"], 2)
    assert left(log[:-1]) == ([], 0)
    # Compacted: the batch keeps the offsets of removed records, even if all were removed.
    assert left(log + data(2, [b"c"], last_delta=4)) == ([b"a", b"b", b"c"], 7)
    emptied = bytearray(data(2, [b"c"], last_delta=4)[:61])
    struct.pack_into(">i", emptied, 8, 49)
    struct.pack_into(">i", emptied, 57, 0)
    assert left(log + placed(emptied, 2)) == ([b"a", b"b"], 7)


def test_batches_before_the_position_are_left_out_and_one_around_it_is_not() -> None:
    log = data(0, [b"a", b"b"]) + data(2, [b"c", b"d"])
    assert left(log, 2) == ([b"c", b"d"], 4)
    assert left(log, 3) == ([b"c", b"d"], 4)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_end_at_their_own_offset(magic: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    for offset in range(3):
        builder.append(offset, timestamp=5, key=None, value=b"%d" % offset)
    packed = LegacyRecordBatchBuilder(magic, 1, 1 << 20)
    for offset in range(3):
        packed.append(offset, timestamp=5, key=None, value=b"p%d" % offset)
    wrapper = packed.build()
    # A set has its last message's offset; with magic 0 the messages in it have their own offsets.
    struct.pack_into(">q", wrapper, 0, 2 if magic == 0 else 5)
    batches, behind = whole_batches(bytes(builder.build()), 1, (), read_committed=True, check_crcs=True)
    assert ([decode(*batch).values for batch in batches], behind) == ([[b"1"], [b"2"]], 3)
    batches, behind = whole_batches(bytes(wrapper), 1, (), read_committed=True, check_crcs=True)
    assert ([decode(*batch).values for batch in batches], behind) == ([[b"p0", b"p1", b"p2"]], 3 if magic == 0 else 6)


def test_a_damaged_batch_is_refused() -> None:
    damaged = bytearray(data(0, [b"aaaa"]))
    damaged[-3] ^= 1
    with pytest.raises(CorruptBatch, match="offset 0"):
        left(bytes(damaged))


DAMAGE_AT = {"attributes": 22, "last offset": 26, "producer": 50, "count": 60, "records": 63}


@pytest.mark.parametrize("at", DAMAGE_AT.values(), ids=DAMAGE_AT.keys())
@pytest.mark.parametrize("kind", ["marker", "aborted", "before", "empty"])
def test_no_damaged_header_leaves_records_out(kind: str, at: int) -> None:
    """Only dropped batches need intact checksums here: the receiver verifies the batches that it gets."""
    first = {
        "marker": marker(3, 7, COMMIT),
        "aborted": data(3, [b"a"], 7),
        "before": data(0, [b"a"]),
        "empty": placed(bytearray(data(3, [b"a"])[:61]), 3),
    }[kind]
    if kind == "empty":
        header = bytearray(first)
        struct.pack_into(">i", header, 8, len(header) - 12)
        struct.pack_into(">i", header, 57, 0)
        first = placed(header, 3)
    log = bytearray(first + data(4, [b"b"]))
    if at >= len(first):
        pytest.skip("it has no records")
    aborted = ((7, 3),) if kind == "aborted" else ()
    ask = {"read_committed": True, "check_crcs": False}
    assert [header.base_offset for header, _ in whole_batches(bytes(log), 3, aborted, **ask)[0]] == [4]
    log[at] ^= 1
    batches = None
    with suppress(CorruptBatch):
        batches, _ = whole_batches(bytes(log), 3, aborted, **ask)
    assert batches is None or not intact(bytes(batches[0][1])), "it is passed on, as damaged as it is"


def test_damage_that_would_leave_records_out_is_told() -> None:
    """A flipped bit makes a record a marker, or moves it before the position."""
    for at, bit in ((22, 0x20), (26, 0x80)):
        log = bytearray(data(2, [b"a", b"b"]) + data(4, [b"c"]))
        log[at] ^= bit
        if at == 26:
            struct.pack_into(">i", log, 23, -1)
        with pytest.raises(CorruptBatch, match="offset 2 is invalid"):
            whole_batches(bytes(log), 3, (), read_committed=True, check_crcs=False)

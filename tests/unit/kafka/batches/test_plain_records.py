"""Batches of values alone, joined from tables, equal those of a record-by-record builder: aiokafka's in Python."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keelman.kafka.batches.plain_records import plain_records
from keelman.kafka.batches.record_batch import HEADER_BYTES, encode, pack
from unit.kafka.batches.test_record_batch import NOW, made_elsewhere

ANY = 1 << 30
# Lengths at which a varint grows by a byte, and a length that is in no table.
TEXTS = st.binary(max_size=70) | st.sampled_from([b"v" * n for n in (62, 63, 64, 65, 5000, 8185, 8191, 8192, 8193)])


def elsewhere(values: list[bytes], now_ms: int = NOW) -> bytes:
    return bytes(made_elsewhere([(value, None, now_ms, []) for value in values]))


@given(values=st.lists(TEXTS, min_size=1, max_size=150), now_ms=st.sampled_from([0, 1, NOW]))
def test_a_batch_of_values_is_what_a_builder_makes(values: list[bytes], now_ms: int) -> None:
    assert plain_records(values, 0, ANY) is not None
    assert bytes(encode(list(values), now_ms=now_ms)) == elsewhere(values, now_ms)


@pytest.mark.parametrize("count", [63, 64, 65, 8191, 8192, 8193])
@pytest.mark.parametrize("same", [True, False])
def test_numbers_grow_by_a_byte_where_they_should(count: int, same: bool) -> None:
    values = [b"x" * (9 if same else n % 7) for n in range(count)]
    assert bytes(encode(list(values), now_ms=NOW)) == elsewhere(values)


def test_the_records_stand_behind_the_room_that_is_asked_for() -> None:
    records = plain_records([b"a", b"bc"], 5, ANY)
    assert records is not None
    assert records[:5] == bytes(5)
    assert bytes(records[5:]) == elsewhere([b"a", b"bc"])[HEADER_BYTES:]


def test_what_is_not_plain_is_left_to_a_builder() -> None:
    assert plain_records([], 0, ANY) is None
    assert plain_records([b"a", None], 0, ANY) is None
    assert plain_records([b""] * (1 << 17), 0, ANY) is None


def test_what_does_not_fit_is_left_to_a_builder() -> None:
    for values in ([b"x" * 9] * 70, [b"x" * n for n in range(70)]):
        records = plain_records(list(values), 5, ANY)
        assert records is not None
        assert plain_records(list(values), 5, len(records)) == records
        assert plain_records(list(values), 5, len(records) - 1) is None
        assert plain_records(list(values), 5, 300) is None


def test_values_that_are_too_many_for_one_batch_go_in_several() -> None:
    values: list[bytes | None] = [b"x" * 100] * 50
    (whole,) = pack(values, now_ms=NOW, most_bytes=6000)
    parts = pack(values, now_ms=NOW, most_bytes=len(whole[0]) - 1)
    assert [(first, records) for _, first, records in parts] == [(0, 49), (49, 1)]

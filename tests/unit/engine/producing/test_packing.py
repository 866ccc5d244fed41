"""Records are packed into batches: partitions as in Java's producer, order kept, small reads held together."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.connect.records import Column, Repeated, SourceBatch
from keelman.engine.failure import RunFailure
from keelman.engine.producing.packing import SEND_BYTES, Packed, Packing
from keelman.kafka.batches.record_batch import decode, read_header
from support.partitioner import partition_for

Asked = Callable[[int, int], None]


def packing(partitions: int = 3, *, batch_bytes: int = 1_000_000, request_bytes: int = 1_048_576) -> Packing:
    return Packing(lambda _: partitions, 0, lambda _: batch_bytes, request_bytes)


def added(
    single_packing: Packing, values: list[bytes | None], keys: list[bytes | None] | None = None, **more: object
) -> list[Packed]:
    batch = SourceBatch("t", Column(values), None if keys is None else Column(keys), **more)  # type: ignore[arg-type]
    return list(single_packing.add(batch, values, keys, lambda tell, partition, offset: tell(partition, offset)))


def values_by_partition(batches: list[Packed]) -> dict[int, list[bytes | None]]:
    values: dict[int, list[bytes | None]] = {}
    for batch in batches:
        values.setdefault(batch.partition, []).extend(decode(read_header(batch.data), batch.data).values)
    return values


@settings(deadline=None)
@given(
    reads=st.lists(
        st.lists(st.tuples(st.none() | st.integers(0, 2), st.none() | st.binary(max_size=9)), min_size=1, max_size=30),
        max_size=6,
    )
)
def test_each_record_goes_out_once_in_its_order_to_its_partition(
    reads: list[list[tuple[int | None, bytes | None]]],
) -> None:
    single_packing, out, number = packing(batch_bytes=600), list[Packed](), 0
    expected: dict[bytes, tuple[int | None, bytes | None]] = {}
    for read in reads:
        values = [b"%d" % n for n in range(number, number + len(read))]
        number += len(read)
        expected.update(zip(values, read, strict=True))
        out += added(single_packing, list(values), [key for _, key in read], partitions=[p for p, _ in read])
    out += single_packing.flush()
    assert not list(single_packing.flush())
    actual_values = values_by_partition(out)
    assert sorted(v for values in actual_values.values() for v in values if v) == sorted(expected)
    for partition, values in actual_values.items():
        numbers = [int(v or b"") for v in values]
        assert numbers == sorted(numbers)
        for value in values:
            given_partition, key = expected[value or b""]
            if given_partition is not None:
                assert partition == given_partition
            elif key is not None:
                assert partition == partition_for(key, 3)


def test_small_reads_are_held_until_there_is_enough() -> None:
    single_packing = packing(1)
    assert added(single_packing, [b"x" * 100_000]) == []
    assert added(single_packing, [b"y" * 100_000]) == []
    (batch,) = added(single_packing, [b"z" * 100_000])
    assert (batch.records, len(batch.data) > SEND_BYTES) == (3, True)


def test_a_large_read_waits_for_nothing_and_goes_in_batches() -> None:
    batches = added(packing(1, batch_bytes=100_000), [b"x" * 1000] * 300)
    assert sum(batch.records for batch in batches) == 300
    assert all(len(batch.data) <= 100_000 for batch in batches)


def test_records_without_key_stay_with_one_partition_until_a_batch_has_gone() -> None:
    single_packing = packing(3)
    added(single_packing, [b"a"])
    added(single_packing, [b"b"])
    (batch,) = single_packing.flush()
    assert batch.records == 2


def test_columns_of_another_kind_begin_a_batch_of_their_own() -> None:
    single_packing = packing(1)
    assert added(single_packing, [b"a"]) == []
    (first,) = added(single_packing, [b"b"], [b"k"])
    (second,) = single_packing.flush()
    assert (first.records, second.records) == (1, 1)


def test_who_asked_is_told_the_offset_that_his_record_got() -> None:
    notices: list[tuple[str, int, int]] = []

    def asks(name: str) -> Asked:
        return lambda partition, offset: notices.append((name, partition, offset))

    batches = added(
        packing(3), [b"a", b"b", b"c", b"d"], partitions=[0, 1, 0, 1], delivered={2: asks("c"), 3: asks("d")}
    )
    for batch in batches:
        assert batch.on_stored is not None
        batch.on_stored(100)
    assert sorted(notices) == [("c", 0, 101), ("d", 1, 101)]


def test_one_time_for_all_records_of_a_read_is_the_time_of_each() -> None:
    """Also for reads that are held together, and for those that go to several partitions."""

    def times(batches: list[Packed]) -> list[int]:
        return [time for batch in batches for time in decode(read_header(batch.data), batch.data).timestamps_ms]

    large, small = packing(1), packing(1)
    assert times(added(large, [b"x" * 1000] * 300, timestamps_ms=Repeated(7, 300))) == [7] * 300
    for time in (7, 8, 8):
        assert added(small, [b"a"] * 2, timestamps_ms=Repeated(time, 2)) == []
    assert times(list(small.flush())) == [7, 7, 8, 8, 8, 8]
    apart = packing(2)
    assert added(apart, [b"a"] * 3, partitions=[0, 1, 0], timestamps_ms=Repeated(9, 3)) == []
    assert times(list(apart.flush())) == [9] * 3


def test_lists_of_others_are_not_added_to() -> None:
    single_packing = packing(1)
    same: list[bytes | None] = [b"a", b"b", b"c"]
    assert added(single_packing, same, same) == []
    for _ in range(4):
        assert added(single_packing, same, same) == []
    (batch,) = single_packing.flush()
    assert (batch.records, same) == (15, [b"a", b"b", b"c"])


def test_what_has_no_value_takes_room_too() -> None:
    single_packing = packing(1)
    out = [batch for _ in range(30) for batch in added(single_packing, [None] * 10, [b"k" * 1000] * 10)]
    assert sum(batch.records for batch in out) >= 200


def test_not_too_much_is_held_for_all_partitions_together() -> None:
    single_packing = packing(500)
    values, everywhere = [b"x" * 5000] * 500, list(range(500))
    gone = sum(batch.records for _ in range(3) for batch in added(single_packing, [*values], partitions=everywhere))
    rest = sum(batch.records for batch in single_packing.flush())
    assert gone + rest == 1500
    assert rest * 5000 < 5_000_000


def test_a_record_over_the_limit_is_refused_in_javas_words() -> None:
    with pytest.raises(RunFailure, match=r"larger than 1000, which is the value of the max\.request\.size") as refused:
        added(packing(1, request_bytes=1000), [b"x" * 300_000])
    assert not refused.value.retriable

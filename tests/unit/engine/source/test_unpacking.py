"""A packed batch that is unpacked has the same records and the same offsets."""

from keelman.connect.records import Column, PackedRecords, SourceBatch
from keelman.engine.source.unpacking import unpacked
from keelman.kafka.batches.record_batch import encode


def test_records_are_as_they_were_and_the_last_of_each_batch_is_told() -> None:
    first = encode([b"a", None], [b"k", None], [7, 8], [[("h", b"x")], []], now_ms=0, codec=3)
    second = encode([b"c"], [None], [9], [[]], now_ms=0, codec=0)
    notices: list[tuple[int, int]] = []
    packed = (PackedRecords(bytes(first), 1, 2), PackedRecords(bytes(second), 0, 1))
    batch = SourceBatch("t", Column([]), packed=packed, delivered={1: lambda *at: notices.append(at)}, raw=True)
    fields = unpacked(batch)
    assert not fields.packed
    assert fields.values.values == [b"a", None, b"c"]
    assert fields.keys is not None
    assert fields.keys.values == [b"k", None, None]
    assert (fields.timestamps_ms, fields.partitions) == ([7, 8, 9], [1, 1, 0])
    assert fields.headers == [(("h", b"x"),), (), ()]
    assert fields.delivered is not None
    assert list(fields.delivered) == [2]

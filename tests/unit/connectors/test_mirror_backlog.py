"""Which of a mirror's fetched batches go through whole, which are unpacked, and the positions of its partitions."""

import struct

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from keelman.connect.records import TopicPartition
from keelman.connectors.mirror import backlog as mirror_backlog
from keelman.connectors.mirror.backlog import Backlog, Portion
from keelman.kafka.batches.record_batch import GZIP, LZ4, BatchHeader, passable, read_header
from keelman.kafka.fetching.fetched import Fetched

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
Piece = tuple[BatchHeader, memoryview]


def batch(offset: int, count: int, *, codec: int = 0, gone: tuple[int, ...] = ()) -> Piece:
    """Records named after their offsets; `gone` are compacted away."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for index in range(count):
        if offset + index not in gone:
            builder.append(index, 1_000 + offset + index, b"k" if index % 2 else None, b"%d" % (offset + index), [])
    batch = builder.build()
    struct.pack_into(">q", batch, 0, offset)
    return read_header(batch), memoryview(batch)


def fetched(
    topic_partition: TopicPartition, *batches: Piece, position: int = 0, behind: int, end: int | None = None
) -> Fetched:
    return Fetched(*topic_partition, list(batches), position, behind, behind if end is None else end)


class Reached:
    """A backlog and the positions that it reported."""

    def __init__(self, codec: int | None = None) -> None:
        self.told: list[tuple[TopicPartition, int, int]] = []
        self.backlog = Backlog(lambda header: passable(header, codec=codec), lambda *value: self.told.append(value))

    def taken(self, most: int | None = None) -> list[Portion]:
        portions = []
        while (portion := self.backlog.take(most)) is not None:
            portions.append(portion)
        return portions


def shape(portion: Portion) -> tuple[str, list[tuple[int, int]], list[tuple[int, bytes | None]]]:
    loose = list(zip(portion.partitions, portion.values, strict=True))
    return portion.topic, [(p.partition, p.records) for p in portion.packed], loose


def test_a_topics_batches_go_whole_and_together_and_the_next_topics_after_them() -> None:
    reached = Reached()
    reached.backlog.add(fetched(T0, batch(0, 3), batch(3, 2), behind=6, end=9))
    reached.backlog.add(fetched(T1, batch(10, 4), position=10, behind=14))
    reached.backlog.add(fetched(U0, batch(0, 1), behind=1))
    first = reached.backlog.take(None)
    assert first is not None
    assert shape(first) == ("t", [(0, 3), (0, 2), (1, 4)], [])
    assert {p: (run.last, run.index, run.skipped) for p, run in first.runs.items()} == {
        T0: (4, 1, False),
        T1: (13, 2, False),
    }
    assert reached.told == [(T0, 6, 9), (T1, 14, 14)]
    assert reached.backlog
    assert [shape(portion) for portion in reached.taken()] == [("u", [(0, 1)], [])]
    assert not reached.backlog
    assert reached.told[2:] == [(U0, 1, 1)]


def test_many_small_batches_are_packed_together_and_few_are_not() -> None:
    reached = Reached()
    reached.backlog.add(fetched(T0, batch(0, 3), batch(3, 3), behind=6))
    reached.backlog.add(fetched(T0, *(batch(offset, 2) for offset in range(6, 12, 2)), position=6, behind=12))
    large = batch(12, 1_000)
    reached.backlog.add(fetched(T0, large, large, large, position=12, behind=1_012))
    assert large[0].size > mirror_backlog.SMALL_BYTES
    few, many, larger = reached.taken()
    assert shape(few) == ("t", [(0, 3), (0, 3)], [])
    assert shape(many) == ("t", [], [(0, b"%d" % offset) for offset in range(6, 12)])
    assert (len(larger.packed), larger.values) == (3, [])


def test_what_cannot_go_whole_is_taken_apart_in_its_place() -> None:
    reached = Reached()
    reached.backlog.add(fetched(T0, batch(0, 2), behind=2, end=7))
    reached.backlog.add(fetched(T0, batch(2, 4, gone=(3, 4)), batch(6, 1), position=2, behind=7))
    whole, loose, rest = reached.taken()
    assert shape(whole) == ("t", [(0, 2)], [])
    assert shape(loose) == ("t", [], [(0, b"2"), (0, b"5")])
    assert (loose.keys, loose.timestamps_ms) == ([None, b"k"], [1_002, 1_005])
    assert (loose.runs[T0].last, loose.runs[T0].index, loose.runs[T0].skipped) == (5, 1, True)
    assert shape(rest) == ("t", [(0, 1)], [])
    assert not rest.runs[T0].skipped


def test_a_batch_that_begins_before_the_position_gives_the_rest_of_it() -> None:
    reached = Reached()
    reached.backlog.add(fetched(T0, batch(0, 5), batch(5, 1), position=3, behind=6))
    assert [shape(portion) for portion in reached.taken()] == [
        ("t", [], [(0, b"3"), (0, b"4")]),
        ("t", [(0, 1)], []),
    ]


def test_only_the_codec_that_is_asked_for_goes_whole() -> None:
    reached = Reached(codec=GZIP)
    reached.backlog.add(fetched(T0, batch(0, 60, codec=GZIP), batch(60, 60, codec=LZ4), behind=120))
    first, second = reached.taken()
    assert (len(first.packed), len(second.packed), len(second.values)) == (1, 0, 60)


def test_a_limit_cuts_a_batch_only_when_it_alone_is_more() -> None:
    reached = Reached()
    reached.backlog.add(fetched(T0, batch(0, 3), batch(3, 3), behind=6))
    reached.backlog.add(fetched(T0, batch(6, 12), position=6, behind=18))
    assert [shape(portion)[1:] for portion in reached.taken(5)] == [
        ([(0, 3)], []),
        ([(0, 3)], []),
        ([], [(0, b"%d" % offset) for offset in range(6, 11)]),
        ([], [(0, b"%d" % offset) for offset in range(11, 16)]),
        ([], [(0, b"%d" % offset) for offset in range(16, 18)]),
    ]
    assert reached.told == [(T0, 6, 6), (T0, 18, 18)]


def test_offsets_that_were_left_out_are_noticed_between_portions_too() -> None:
    reached = Reached()
    reached.backlog.add(fetched(T0, batch(0, 2), behind=3))  # a marker after it
    reached.backlog.add(fetched(U0, batch(0, 1), behind=1))
    reached.backlog.add(fetched(T0, batch(3, 2), position=3, behind=5))
    reached.backlog.add(fetched(U0, batch(1, 1), position=1, behind=2))
    assert [(portion.topic, *(run.skipped for run in portion.runs.values())) for portion in reached.taken()] == [
        ("t", False),
        ("u", False),
        ("t", True),
        ("u", False),
    ]


def test_an_end_without_records_is_told_and_nothing_is_taken() -> None:
    reached = Reached()
    reached.backlog.add(fetched(T0, position=5, behind=9))
    assert reached.taken() == []
    assert reached.told == [(T0, 9, 9)]
    # No record of this batch is after the position; a record of the next topic needs no further call.
    reached.backlog.add(fetched(T0, batch(9, 4, gone=(11, 12)), position=11, behind=13))
    reached.backlog.add(fetched(U0, batch(0, 1), behind=1))
    assert [shape(portion) for portion in reached.taken()] == [("u", [(0, 1)], [])]


def test_old_messages_are_taken_apart_and_those_without_a_time_get_none() -> None:
    builder = LegacyRecordBatchBuilder(0, 0, 1 << 20)
    builder.append(0, timestamp=5, key=b"k", value=b"v")
    batch = builder.build()
    reached = Reached()
    reached.backlog.add(fetched(T0, (read_header(batch), memoryview(batch)), behind=1))
    (portion,) = reached.taken()
    assert shape(portion) == ("t", [], [(0, b"v")])
    assert portion.timestamps_ms == [None]


def test_by_bytes_a_portion_ends_before_what_has_no_room_and_a_batch_alone_goes_whole() -> None:
    pieces = [batch(0, 30), batch(30, 30)]
    size = pieces[0][0].size + pieces[1][0].size
    for most, lasts in ((1, [29, 59]), (size - 1, [29, 59]), (size, [59])):
        reached = Reached()
        reached.backlog.add(fetched(T0, *pieces, behind=60))
        portions = []
        while (portion := reached.backlog.take(None, most)) is not None:
            portions.append(portion)
        assert [p.runs[T0].last for p in portions] == lasts
        assert all(p.packed for p in portions)


def test_by_bytes_records_that_are_taken_apart_are_as_many_as_have_room() -> None:
    backlog = Backlog(lambda _header: False, lambda *_: None)
    piece = batch(0, 100)
    backlog.add(fetched(T0, piece, behind=100))
    counts = []
    while (portion := backlog.take(None, piece[0].size // 4 + 10)) is not None:
        counts.append(portion.records)
    assert counts == [25, 25, 25, 25]

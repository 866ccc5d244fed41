"""Which task of a Kafka sink may commit for a partition, and whose offsets count: the rules, without a broker."""

from collections.abc import Collection, Sequence

import pytest

from keelman.connect.errors import ConnectError
from keelman.connect.plugin import KeptOffset
from keelman.connect.records import TopicPartition
from keelman.connect.tasks.kept_offsets import Assignment, SinkReader
from keelman.engine.failure import RunFailure
from keelman.engine.producing.producer import OffsetRecord
from keelman.engine.sink.exactly_once.claims import Claims, claims, overtaken, rivals
from keelman.engine.sink.exactly_once.kept_topic import KeptRows, claim_record, decode, offset_record, old_tombstone

P0, P1 = TopicPartition("t", 0), TopicPartition("ü", 1)
MINE, THEIRS = SinkReader("workers", "group", "cluster"), SinkReader("others", "group", "cluster")


class Log:
    """A kept topic in memory that all tasks of a test share. It models the order only: nothing is ever compacted."""

    name = "kept"

    def __init__(self) -> None:
        self.records: list[OffsetRecord] = []
        self.fenced: set[str] = set()
        self.before_commit = lambda: None

    def read(self, reader: SinkReader, beat: object = None) -> KeptRows:
        last = {key: (at, value) for at, (key, value) in enumerate(self.records)}
        return decode({key: (at, value) for key, (at, value) in last.items() if value is not None}, reader)

    def claims(self, me: str) -> Claims:
        def commit(records: Sequence[OffsetRecord]) -> None:
            act, self.before_commit = self.before_commit, lambda: None
            act()
            if me in self.fenced:
                raise RunFailure("FENCED", me)
            self.records += records

        def fence(others: Collection[str]) -> None:
            self.fenced.update(others)

        return Claims(self, me, commit=commit, fence=fence, beat=lambda: None)  # type: ignore[arg-type]


def of(*partitions: TopicPartition, reader: SinkReader = MINE, shown: int | None = None) -> Assignment:
    return Assignment(reader, dict.fromkeys(partitions, shown))


def test_kept_offsets_are_each_readers_own() -> None:
    kept_offset, other = KeptOffset(9, (None, 7)), KeptOffset(0, (0, -5), "topic-id", 3)
    key, value = offset_record(MINE, P0, kept_offset)
    assert key == b'{"workers":"workers","group":"group","cluster":"cluster","topic":"t","partition":0}'
    assert value == b'{"offset":9,"mirrored":[null,7]}'
    old_key, _ = old_tombstone(P0)
    assert old_key == b'{"topic":"t","partition":0}'
    records = [
        (key, value),
        offset_record(THEIRS, P0, other),
        offset_record(MINE, P1, other),
        (old_key, b'{"offset":4,"mirrored":[4]}'),
        claim_record(MINE, P1, "me", holds=True),
        claim_record(THEIRS, P1, "they", holds=True),
    ]
    rows = decode({key: (at, value or b"") for at, (key, value) in enumerate(records)}, MINE)
    assert rows == KeptRows({P0: kept_offset, P1: other}, {P1: {"me": 4}}, {P0: KeptOffset(4, (4,))}, {P0})
    with pytest.raises(ConnectError, match="cannot be read"):
        decode({b"strange": (0, b"{}")}, MINE)


def test_who_takes_partitions_over_shuts_out_who_claims_them_and_no_others() -> None:
    log = Log()
    first, second = log.claims("first"), log.claims("second")
    first.take_over(of(P0, P1))
    second.take_over(of(P1))
    assert log.fenced == {"first"}
    assert log.read(MINE).claims == {P0: {"first": 0}, P1: {"second": 3}}


def test_partitions_that_were_handed_over_shut_nobody_out() -> None:
    log = Log()
    first, second = log.claims("first"), log.claims("second")
    first.take_over(of(P0, P1))
    first.hand_over()
    second.take_over(of(P1))
    first.take_over(of(P0))
    assert log.fenced == set()
    assert {where: set(who) for where, who in log.read(MINE).claims.items()} == {P0: {"first"}, P1: {"second"}}


def test_a_successor_of_the_same_task_writes_no_claim_again() -> None:
    log = Log()
    log.claims("me").take_over(of(P0))
    written = len(log.records)
    log.claims("me").take_over(of(P0))
    assert len(log.records) == written


def test_of_two_that_claim_at_the_same_time_the_later_one_has_the_partition() -> None:
    log = Log()
    earlier, later = log.claims("earlier"), log.claims("later")
    log.before_commit = lambda: earlier.take_over(of(P0)) and None
    later.take_over(of(P0))
    assert log.fenced == {"earlier"}
    assert log.read(MINE).claims[P0].keys() == {"later"}


def test_who_finds_a_later_claim_than_its_own_gives_up() -> None:
    rows = KeptRows(claims={P0: {"me": 5, "they": 7}, P1: {"me": 6, "they": 2}})
    assert overtaken(rows, "me", [P0, P1]) == {P0}
    assert overtaken(KeptRows(), "me", [P0]) == {P0}  # another task has claimed it since
    assert rivals(rows, "me", [P1]) == {"they"}
    assert [key for key, _ in claims(rows, MINE, "they", [P1])] == [
        claim_record(MINE, P1, "me", holds=False)[0],
        claim_record(MINE, P1, "they", holds=True)[0],
    ]


def test_offsets_are_kept_only_for_what_was_taken_over() -> None:
    log = Log()
    mine = log.claims("me")
    mine.take_over(of(P0))
    assert mine.kept({P0: KeptOffset(1, (None,))}) == [offset_record(MINE, P0, KeptOffset(1, (None,)))]
    with pytest.raises(RunFailure, match="does not have"):
        mine.kept({P1: KeptOffset(1, (None,))})
    mine.hand_over()
    with pytest.raises(RunFailure, match="does not have"):
        mine.kept({P0: KeptOffset(1, (None,))})


def test_an_old_offset_is_adopted_once_and_by_whom_it_belongs_to() -> None:
    log = Log()
    old = KeptOffset(9, (7,))
    log.records.append((old_tombstone(P0)[0], b'{"offset":9,"mirrored":[7]}'))
    assert log.claims("they").take_over(of(P0, reader=THEIRS, shown=3)) == {}
    assert log.claims("me").take_over(of(P0, shown=7)) == {P0: old}
    assert log.read(MINE).old == {}
    assert log.claims("third").take_over(of(P0, reader=SinkReader("c", "g", "c"), shown=7)) == {}

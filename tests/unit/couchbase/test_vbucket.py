"""The position from which a stream is requested, after any events: always a range that servers accept."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from keelman.couchbase.vbucket import Branch, HistoryPlace, Position, Vbucket, parse_log

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("snapshot"), st.integers(1, 20)),
        st.tuples(st.just("event"), st.integers(1, 3)),
        st.tuples(st.just("system"), st.integers(1, 3)),
        st.tuples(st.just("skip"), st.integers(1, 9)),
        st.tuples(st.just("rollback"), st.integers(0, 9)),
        st.tuples(st.just("reopen"), st.integers(1, 5)),
    ),
    max_size=30,
)


def request(vbucket: Vbucket) -> tuple[int, int, int, int]:
    _, _, start, _, vbuuid, first, last = struct.unpack(">IIQQQQQ", vbucket.request(ignore_purged=False))
    return start, vbuuid, first, last


@given(STEPS)
def test_a_request_lies_within_its_snapshot(steps: list[tuple[str, int]]) -> None:
    vbucket = Vbucket(3)
    vbucket.start(Position(), [Branch(1, 0)])
    for kind, number in steps:
        if kind == "snapshot":
            vbucket.announced(vbucket.seqno + 1, vbucket.seqno + number)
        elif kind == "event":
            vbucket.advance(vbucket.seqno + number)
        elif kind == "system":
            vbucket.collections_changed(vbucket.seqno + number, number)
        elif kind == "skip":
            vbucket.skipped_to(vbucket.seqno + number)
        elif kind == "rollback":
            vbucket.rolled_back(max(0, vbucket.seqno - number))
        else:
            vbucket.opened([Branch(number, vbucket.seqno), Branch(1, 0)])
        start, _, first, last = request(vbucket)
        assert first <= start <= last
        assert start == vbucket.seqno


def test_a_rollback_takes_the_newest_branch_that_is_left() -> None:
    vbucket = Vbucket(0)
    vbucket.start(Position(6, HistoryPlace(0xFA, 0, 6)), [Branch(0xFA, 4), Branch(0xAB, 0)])
    vbucket.rolled_back(3)
    assert request(vbucket) == (3, 0xAB, 3, 3)
    vbucket.rolled_back(0)
    assert request(vbucket) == (0, 0, 0, 0)


def test_an_announced_snapshot_counts_from_its_first_event_on() -> None:
    vbucket = Vbucket(0)
    vbucket.start(Position(), [Branch(1, 0)])
    vbucket.announced(0, 6)
    assert request(vbucket) == (0, 0, 0, 0)
    assert vbucket.announced_to == 6
    assert vbucket.advance(2) == HistoryPlace(0, 0, 6)
    assert request(vbucket) == (2, 0, 0, 6)


def test_an_old_offset_takes_the_branch_of_now() -> None:
    vbucket = Vbucket(0)
    vbucket.start(Position(5, None), [Branch(9, 0)])
    assert request(vbucket) == (5, 9, 5, 5)


def test_a_log_is_read() -> None:
    assert parse_log(struct.pack(">QQQQ", 5, 4, 3, 0)) == [Branch(5, 4), Branch(3, 0)]

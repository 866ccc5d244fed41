"""The oracle of changed rows finds lost, repeated and reordered rows."""

import json

import pytest

from support.java.numbered_rows import Change, change_of, judge

BEFORE = {1: 0, 2: 3}
SNAPSHOT = [Change("r", 1, 0, first=True), Change("r", 2, 3)]
STREAM = [Change("u", 1, 1), Change("c", 3, 0), Change("d", 2, 3)]
AFTER, GONE = {1: 1, 3: 0}, {2: 3}


def test_what_is_whole_is_clean() -> None:
    report = judge([*SNAPSHOT, *STREAM], BEFORE, AFTER, GONE)
    assert (report.wrong, report.snapshots, report.repeated, report.changes) == ([], 1, 0, 3)
    assert report.clean


def test_a_snapshot_that_is_begun_again_repeats_rows_and_is_clean() -> None:
    report = judge(
        [SNAPSHOT[0], Change("u", 1, 1), Change("r", 1, 1, first=True), *SNAPSHOT[1:], *STREAM[1:]], BEFORE, AFTER, GONE
    )
    assert (report.wrong, report.snapshots, report.repeated) == ([], 2, 1)


def test_a_change_that_a_snapshot_begun_again_contains_may_come_behind_it_once() -> None:
    again = [Change("r", 2, 3, first=True), Change("r", 1, 1), Change("u", 1, 1)]
    rest = [Change("u", 1, 2), *STREAM[1:]]
    after = {**AFTER, 1: 2}
    report = judge([SNAPSHOT[0], *again, *rest], BEFORE, after, GONE)
    assert (report.wrong, report.snapshots, report.repeated) == ([], 2, 2)
    assert "row 1 changes to 1 twice" in judge([SNAPSHOT[0], *again, again[-1], *rest], BEFORE, after, GONE).wrong
    assert not judge([*again, *rest], BEFORE, after, GONE).clean, "no snapshot was begun again"


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        (SNAPSHOT[:1] + STREAM[:2], "row 2 was deleted, which was not seen"),
        ([*SNAPSHOT, *STREAM[1:]], "row 1 has version 1, last seen was 0"),
        ([*SNAPSHOT, STREAM[0], *STREAM], "row 1 goes from version 1 to 1"),
        ([*SNAPSHOT, Change("u", 1, 2), *STREAM], "row 1 goes from version 0 to 2"),
        ([*SNAPSHOT, *STREAM, STREAM[1]], "row 3 is made with version 0 behind 0"),
        ([*SNAPSHOT, *STREAM, STREAM[2]], "row 2 is deleted as 3 behind 3"),
        ([*SNAPSHOT, SNAPSHOT[1], *STREAM], "row 2 is twice in a snapshot"),
        ([SNAPSHOT[0], Change("r", 2, 2), *STREAM], "row 2 has version 2, older than 3"),
        ([*SNAPSHOT, Change("d", 1, 0), *STREAM[1:]], "row 1 was deleted and is there"),
    ],
)  # fmt: skip
def test_what_is_lost_doubled_or_out_of_order_is_found(seen: list[Change], wrong: str) -> None:
    assert wrong in judge(seen, BEFORE, AFTER, GONE).wrong


def test_a_row_that_was_never_seen_and_is_gone_is_lost() -> None:
    assert judge([SNAPSHOT[0], *STREAM[:2]], BEFORE, AFTER, GONE).wrong


@pytest.mark.parametrize("wrapped", [False, True])
def test_records_are_read_with_their_schema_and_without(wrapped: bool) -> None:
    envelope = {"op": "r", "before": None, "after": {"id": 7, "version": 2}, "source": {"snapshot": "first"}}
    value = json.dumps({"schema": {}, "payload": envelope} if wrapped else envelope).encode()
    assert change_of(value) == Change("r", 7, 2, first=True)

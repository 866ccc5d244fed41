"""Whether a log still is the log that was read, and the position at which reading continues if not."""

import pytest

from keelman.connectors.mirror.offsets import position_behind, source_offset
from keelman.kafka.fetching.offset_requests import EpochEnd
from keelman.kafka.fetching.position import EARLIEST, MAX_EPOCHS, FetchPosition, diverges_at, goes_on_at, made_anew

READ = [(1, 0), (3, 50), (5, 90)]


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (EpochEnd(5, 100), None),  # the leader has all of it
        (EpochEnd(5, 140), None),
        (EpochEnd(5, 97), 97),  # the leader has less of the newest epoch
        (EpochEnd(3, 88), 88),  # none of it, and less of the epoch before
        (EpochEnd(3, 95), 90),  # none of it: other records have these offsets
        (EpochEnd(3, 200), 90),
        (EpochEnd(4, 93), 90),  # an epoch that was never read
        (EpochEnd(2, 40), 40),
        (EpochEnd(2, 60), 50),
        (EpochEnd(0, 0), 0),
        (EpochEnd(5, 0), 0),
        (EpochEnd(-1, -1), None),  # the leader does not know
    ],
)
def test_where_a_log_differs_from_what_was_read(end: EpochEnd, expected: int | None) -> None:
    assert diverges_at(FetchPosition(100, epochs=list(READ)), end) == expected


def test_a_log_that_lost_several_epochs_is_cut_until_all_that_is_left_is_there() -> None:
    """The leader has epoch 1 up to 40, 2 up to 95, and leads in epoch 6."""
    position, requests = FetchPosition(100, epochs=list(READ)), []
    answers = {5: EpochEnd(2, 95), 3: EpochEnd(2, 95), 1: EpochEnd(1, 40)}
    while (at := diverges_at(position, answers[position.epoch])) is not None:
        requests.append(position.epoch)
        position.cut(at)
    assert (position.offset, position.epochs, requests) == (40, [(1, 0)], [5, 1])


def test_epochs_are_kept_as_they_are_read() -> None:
    position = FetchPosition(7)
    position.advance(9, [(-1, 7)], led_in=-1)
    assert (position.offset, position.epoch, position.doubtful(-1)) == (9, -1, False)
    position.advance(20, [(2, 9), (3, 15)], led_in=4)
    position.advance(30, [(3, 20)], led_in=4)
    assert (position.offset, position.epochs) == (30, [(2, 9), (3, 15)])
    assert not position.doubtful(4)
    assert position.doubtful(5), "another leader may have another log"
    for epoch in range(4, 100):
        position.advance(30 + epoch, [(epoch, 30 + epoch)], led_in=epoch)
    assert (len(position.epochs), position.epoch) == (MAX_EPOCHS, 99)
    position.restart("other")
    assert (position.offset, position.topic_id, position.epochs) == (EARLIEST, "other", [])


@pytest.mark.parametrize(
    ("begin", "end", "read", "now", "expected"),
    [
        (0, 80, "a", "a", 80),  # its tail is lost
        (0, 0, "a", "a", 0),
        (0, 80, "a", "b", None),
        (0, 80, "", "a", None),  # the id of the topic that was read is unknown
        (0, 80, "a", "", None),
        (110, 200, "a", "a", None),  # deleted by time or size
        (0, 120, "a", "a", 100),  # the leader has this offset by now
    ],
)
def test_offsets_that_a_leader_does_not_have(begin: int, end: int, read: str, now: str, expected: int | None) -> None:
    assert goes_on_at(FetchPosition(100, read), begin, end, now) == expected


def test_a_topic_is_another_only_where_both_ids_are_known() -> None:
    assert made_anew(FetchPosition(1, "a"), "b")
    assert not any(made_anew(FetchPosition(1, read), now) for read, now in (("a", "a"), ("", "a"), ("a", ""), ("", "")))


def test_source_offsets_tell_what_was_read_where_they_can() -> None:
    assert source_offset(41, 3, "abc") == {"offset": 41, "leader_epoch": 3, "topic_id": "abc"}
    assert source_offset(41, -1, "") == {"offset": 41}
    assert position_behind(source_offset(41, 3, "abc")) == FetchPosition(42, "abc", [(3, 41)])
    for odd in ({"offset": 41}, {"offset": 41, "leader_epoch": "3", "topic_id": 7}, {"offset": 41, "leader_epoch": -1}):
        assert position_behind(odd) == FetchPosition(42)

"""The offset at which a sink continues in a partition: the rules, as tables."""

import pytest

from keelman.connect.plugin import KeptOffset
from keelman.engine.sink.positions.offsets import GroupOffset, SourceLog, altered_ms, altered_note, is_ours, start_of

KEPT = KeptOffset(50, (None, 40), "id", 3)
MARK = 1_700_000_000_000


@pytest.mark.parametrize(
    ("kept_offset", "group", "log", "offset", "reason"),
    [
        # no offset is kept: the group's offset, or the policy's beginning
        (None, GroupOffset(None), SourceLog(100), None, ""),
        (None, GroupOffset(7), SourceLog(100), 7, ""),
        (None, GroupOffset(7, leader_epoch=1), SourceLog(epoch_end=7), 7, ""),
        (None, GroupOffset(7, leader_epoch=1), SourceLog(epoch_end=5), 5, "truncated"),
        (None, GroupOffset(None, MARK), SourceLog(100), None, ""),
        # the group's offset holds
        (KEPT, GroupOffset(50), SourceLog(100, "id", 60), 50, ""),
        (KEPT, GroupOffset(40), SourceLog(100, "id", 60), 50, ""),
        (KEPT, GroupOffset(None), SourceLog(100, "id", 60), 50, ""),
        (KeptOffset(50, (50,)), GroupOffset(None), SourceLog(50), 50, ""),  # expired
        # the group was moved, set or reset
        (KEPT, GroupOffset(45), SourceLog(100, "id", 60), 45, "the group wins"),
        (KEPT, GroupOffset(50, MARK), SourceLog(100, "id", 60), 50, "the group wins"),
        (KEPT, GroupOffset(None, MARK), SourceLog(100, "id", 60), None, "moved to none"),
        (KeptOffset(50, (-MARK,), "id"), GroupOffset(None, MARK), SourceLog(100, "id"), 50, ""),  # restarted since
        (KeptOffset(50, (-MARK,), "id"), GroupOffset(None, MARK + 1), SourceLog(100, "id"), None, "moved to none"),
        # another topic, even if it is longer by now
        (KEPT, GroupOffset(40), SourceLog(100, "other", 60), None, "was created"),
        (KEPT, GroupOffset(None), SourceLog(10, "other"), None, "was created"),
        (KEPT, GroupOffset(5), SourceLog(100, "other"), 5, "was created"),
        (KEPT, GroupOffset(5), SourceLog(4, "other"), None, "was created"),
        (KeptOffset(50, (50,)), GroupOffset(50), SourceLog(10, "id"), None, "was created"),  # kept without an id
        # the same topic has lost its end, even if it has grown past it since
        (KEPT, GroupOffset(40), SourceLog(30, "id"), 30, "truncated"),
        (KEPT, GroupOffset(None), SourceLog(100, "id", 45), 45, "truncated"),
        (KEPT, GroupOffset(None), SourceLog(44, "id", 45), 45, "truncated"),
        (KEPT, GroupOffset(None), SourceLog(44, "id", 50), 50, ""),  # the end is a new leader's high watermark
    ],
)
def test_start(
    kept_offset: KeptOffset | None, group: GroupOffset, log: SourceLog, offset: int | None, reason: str
) -> None:
    start = start_of(kept_offset, group, log)
    assert start.offset == offset
    assert (reason in start.reason) if reason else start.reason == ""
    assert bool(start.truncated) == (reason == "truncated")
    assert start.from_beginning == (reason == "was created" and offset is None)


@pytest.mark.parametrize(
    ("shown", "shared", "ours"),
    [
        (50, False, True),
        (40, False, True),
        (45, False, False),
        (None, False, False),  # an expired group proves nothing, nor does a new one
        (-MARK, False, False),
        (50, True, False),
    ],
)
def test_whose_an_old_offset_is(shown: int | None, shared: bool, ours: bool) -> None:
    assert is_ours(KeptOffset(50, (None, 40)), shown, shared=shared) == ours


def test_a_note_is_read_up_to_its_end_and_others_are_none() -> None:
    assert altered_ms(altered_note(MARK)) == MARK
    assert altered_ms(altered_note(MARK).rstrip("\0") + "V\x01") == MARK
    assert [altered_ms(note) for note in (None, "", "mine", "keelman.altered=;")] == [0, 0, 0, 0]
    assert GroupOffset(7, MARK).shown == -MARK
    assert GroupOffset(7).shown == 7

"""An exactly-once sink as a model: it crashes at any step, and the file still holds every record once, in order."""

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.connect.plugin import KeptOffset
from keelman.engine.sink.positions.offsets import GroupOffset, Mirror, SourceLog, start_of

# Steps of a sink: write a record, keep (data and journal), send the group commit, have it applied, get its answer, have
# the group's offset expire, crash. Before anything is kept an expired offset means the beginning, as in Connect.
STEPS = st.sampled_from(["write", "write", "keep", "send", "apply", "hear", "expire", "crash"])


@given(st.lists(STEPS, max_size=80))
@settings(max_examples=500, deadline=None)
def test_every_record_once_whatever_happens(steps: list[str]) -> None:
    log_end = 1000
    group: int | None = None
    kept_offset: KeptOffset | None = None
    durable: list[int] = []
    data: list[int] = []
    position, mirror = 0, Mirror(None)
    flight: int | None = None  # the one commit under way, and whether the broker has it
    applied = False
    for step in steps:
        if step == "write":
            data.append(position)
            position += 1
        elif step == "keep":
            durable = list(data)
            kept_offset = KeptOffset(position, mirror.candidates)
        elif step == "send" and flight is None and kept_offset is not None and kept_offset.offset == position:
            mirror.sent(position)
            flight, applied = position, False
        elif step == "apply" and flight is not None:
            group, applied = flight, True
        elif step == "hear" and flight is not None and applied:
            mirror.acknowledged(flight)
            flight = None
        elif step == "expire" and kept_offset is not None:
            group = None
        elif step == "crash":
            # A commit under way may still reach the broker before the successor reads the offset; "apply" has decided
            # that.
            start = start_of(kept_offset, GroupOffset(group), SourceLog(log_end))
            position = start.offset or 0
            data, mirror, flight = list(durable), Mirror(group), None
            assert start.reason == ""
        assert data == list(range(len(data)))
    assert position == len(data)


@settings(deadline=None)
@given(
    st.integers(0, 50), st.lists(st.one_of(st.none(), st.integers(0, 50)), min_size=1, max_size=3), st.integers(0, 60)
)
def test_a_moved_group_offset_wins(offset: int, mirrored: list[int | None], moved: int) -> None:
    start = start_of(KeptOffset(offset, tuple(mirrored)), GroupOffset(moved), SourceLog(100))
    if moved == offset or moved in mirrored:
        assert (start.offset, start.reason) == (offset, "")
    else:
        assert start.offset == moved
        assert "the group wins" in start.reason

"""The oracle against histories with deliberate errors: each verdict alone, mixed, and none for a clean history."""

import random
from collections.abc import Callable

import pytest

from support.numbered import Number, Stream, line, parsed
from support.oracle import VERDICTS, Report, Sample, judge

COUNT = 200
Lines = list[bytes | None]


def history() -> dict[str, Lines]:
    """The lines of two tasks, of each task in its own place."""
    return {"a": list(Stream(0, COUNT)), "b": list(Stream(1, COUNT, 40, 300, seed=7))}


def verdict(seen: dict[str, Lines]) -> Report:
    return judge({0: COUNT, 1: COUNT}, seen)


def offences(report: Report) -> dict[str, int]:
    return {name: report[name] for name in VERDICTS if report[name]}


def lose_the_last(seen: dict[str, Lines]) -> None:
    del seen["a"][-1]


def lose_a_stretch(seen: dict[str, Lines]) -> None:
    del seen["b"][50:80]


def lose_a_whole_place(seen: dict[str, Lines]) -> None:
    seen["b"].clear()


def repeat_one(seen: dict[str, Lines]) -> None:
    seen["a"].insert(10, seen["a"][9])


def repeat_a_batch_later(seen: dict[str, Lines]) -> None:
    seen["a"][100:100] = seen["a"][80:100]


def repeat_elsewhere(seen: dict[str, Lines]) -> None:
    seen["b"].append(seen["a"][3])


def swap_two(seen: dict[str, Lines]) -> None:
    seen["a"][5], seen["a"][6] = seen["a"][6], seen["a"][5]


def move_one_to_the_end(seen: dict[str, Lines]) -> None:
    seen["a"].append(seen["a"].pop(7))


def tear_one(seen: dict[str, Lines]) -> None:
    seen["a"][42] = seen["a"][42][:30]  # type: ignore[index]


def join_two(seen: dict[str, Lines]) -> None:
    seen["a"][42:44] = [b"%s%s" % (seen["a"][42], seen["a"][43])]


def flip_a_bit(seen: dict[str, Lines]) -> None:
    data = bytearray(seen["b"][0] or b"")
    data[-1] ^= 1
    seen["b"][0] = bytes(data)


def add_an_empty_one(seen: dict[str, Lines]) -> None:
    seen["a"][3:3] = [b"", None]


def add_a_stranger(seen: dict[str, Lines]) -> None:
    seen["a"].append(line(Number(0, COUNT), 100))


def everything_at_once(seen: dict[str, Lines]) -> None:
    swap_two(seen)
    repeat_a_batch_later(seen)
    lose_a_stretch(seen)
    flip_a_bit(seen)
    add_a_stranger(seen)


@pytest.mark.parametrize(
    ("corrupt", "expected"),
    [
        (lose_the_last, {"lost": 1}),
        (lose_a_stretch, {"lost": 30}),
        (lose_a_whole_place, {"lost": COUNT}),
        (repeat_one, {"duplicated": 1}),
        (repeat_a_batch_later, {"duplicated": 20}),
        (repeat_elsewhere, {"duplicated": 1}),
        (swap_two, {"out_of_order": 1}),
        (move_one_to_the_end, {"out_of_order": 1}),
        (tear_one, {"torn": 1, "lost": 1}),
        (join_two, {"torn": 1, "lost": 2}),
        (flip_a_bit, {"torn": 1, "lost": 1}),
        (add_an_empty_one, {"torn": 2}),
        (add_a_stranger, {"foreign": 1}),
        (everything_at_once, {"lost": 31, "duplicated": 20, "out_of_order": 1, "torn": 1, "foreign": 1}),
    ],
)
def test_each_damage_is_named(corrupt: Callable[[dict[str, Lines]], None], expected: dict[str, int]) -> None:
    seen = history()
    corrupt(seen)
    report = verdict(seen)
    assert offences(report) == expected, str(report)
    assert not report.clean


def test_a_clean_history_passes() -> None:
    report = judge(
        {0: COUNT, 1: COUNT},
        history(),
        samples=[Sample(0, "a", 5, 9), Sample(61, "a", 9, 9), Sample(70, "a", 9, 12), Sample(120, "a", 10, 12)],
        offsets={"source": (200, 200)},
    )
    assert report.clean
    assert str(report) == "400 sent, 400 seen; clean"


def test_what_the_source_itself_has_lost_may_be_seen_or_not_but_not_twice() -> None:
    tail = [Number(0, 3), Number(0, 4)]
    lines = [line(Number(0, n), 60) for n in range(6)]
    assert judge({0: 6}, {"p": [*lines[:3], lines[5]]}, gone=tail).clean
    assert judge({0: 6}, {"p": [*lines[:4], lines[5]]}, gone=tail).clean
    assert offences(judge({0: 6}, {"p": [*lines[:4], lines[3], lines[5]]}, gone=tail)) == {"duplicated": 1}
    assert offences(judge({0: 6}, {"p": lines[:3]}, gone=tail)) == {"lost": 1}


def test_any_mixture_of_tasks_in_one_place_is_in_order_as_long_as_each_task_is() -> None:
    rest = [list(lines) for lines in history().values()]
    chance, mixed = random.Random(3), []
    while any(rest):
        mixed.append(chance.choice([lines for lines in rest if lines]).pop(0))
    assert verdict({"one": mixed}).clean


def test_a_transaction_is_stuck_when_committed_readers_wait_over_a_minute_at_one_place() -> None:
    waiting = [Sample(s, "t-0", 5, 9 + s) for s in range(62)]
    assert judge({}, {}, samples=waiting[:61]).clean
    assert offences(judge({}, {}, samples=waiting)) == {"stuck": 1}
    moving = [Sample(s, "t-0", s // 30, 1000) for s in range(300)]
    assert judge({}, {}, samples=moving).clean


def test_an_offset_that_differs_from_the_data_is_told_with_both() -> None:
    report = judge({}, {}, offsets={"journal": (7, 8), "group": (8, 8)})
    assert offences(report) == {"offsets": 1}
    assert "journal says 7, the data 8" in str(report)


def test_only_the_first_offenders_are_shown() -> None:
    report = judge({0: 100}, {})
    assert report["lost"] == 100
    assert report.verdicts["lost"].first == ("0/0", "0/1", "0/2", "0/3", "0/4")
    assert str(report).endswith("0/4, …")


def test_records_are_the_same_for_the_same_seed_and_tell_their_number() -> None:
    stream, same, other = Stream(3, 50, 60, 90, seed=1), Stream(3, 50, 60, 90, seed=1), Stream(3, 50, 60, 90, seed=2)
    assert stream.text() == same.text() != other.text()
    assert [parsed(record) for record in stream] == [Number(3, n) for n in range(50)]
    assert all(60 <= len(record) <= 90 for record in stream)
    assert {len(record) for record in Stream(0, 1000)} == {100}


@pytest.mark.parametrize("cut", range(1, 60))
def test_no_piece_of_a_record_passes_for_one(cut: int) -> None:
    whole = line(Number(1, 23), 60)
    assert parsed(whole) == Number(1, 23)
    assert parsed(whole[:cut]) is None
    assert parsed(whole[cut:]) is None

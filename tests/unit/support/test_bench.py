"""How the benchmarks evaluate measurements, and which errors of brokers they retry."""

import json
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from bench.__main__ import row
from bench.measuring.data import Missed, arrival_rate, passes
from bench.measuring.figures import compared, save
from bench.measuring.rounds import OURS, interleaved, order, picked

WHEN = {"when": "now"}


@pytest.mark.parametrize(
    ("code", "passing"),
    [
        (KafkaError.NOT_LEADER_FOR_PARTITION, True),
        (KafkaError.LEADER_NOT_AVAILABLE, True),
        (KafkaError._TRANSPORT, True),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, False),
        (KafkaError.TOPIC_ALREADY_EXISTS, False),
    ],
)
def test_a_topic_that_was_made_just_now_is_asked_again(code: int, passing: bool) -> None:
    assert passes(KafkaException(KafkaError(code))) is passing


@pytest.mark.parametrize(
    ("turn", "expected"), [(0, [OURS, "best", "other"]), (1, ["other", "best", OURS]), (2, [OURS, "best", "other"])]
)
def test_rounds_take_turns(turn: int, expected: list[str]) -> None:
    assert order(turn, ["best", "other"]) == expected


async def test_the_best_variant_so_far_is_measured_next_to_ours() -> None:
    rates = {OURS: 9.0, "slow": 1.0, "quick": 3.0}
    went: list[str] = []

    async def measure(name: str) -> float:
        went.append(name)
        return rates[name]

    measured = await interleaved(2, ["slow", "quick"], measure, lambda values: -max(values), lambda *_: None)
    assert went == [OURS, "slow", "quick", "slow", "quick", OURS]
    assert picked(measured, float) == ([9.0, 9.0], {"slow": [1.0, 1.0], "quick": [3.0, 3.0]})


async def test_a_measurement_that_saw_nothing_is_made_again() -> None:
    values = iter([Missed("all there"), 7.0])

    async def measure(_: str) -> float:
        value = next(values, 1.0)
        if isinstance(value, Missed):
            raise value
        return value

    measured = await interleaved(1, ["a"], measure, min, lambda *_: None)
    assert measured == {OURS: [7.0], "a": [1.0]}


async def test_what_had_arrived_at_the_first_look_has_no_rate() -> None:
    with pytest.raises(Missed):
        await arrival_rate(lambda: 10, 10, quiet=0.0)


async def test_rounds_of_warming_up_do_not_count() -> None:
    went: list[int] = []

    async def measure(_: str) -> float:
        return 1.0

    values = await interleaved(1, ["a"], measure, min, lambda turn, *_: went.append(turn), warm_up=2)
    assert went == [-2, -2, -1, -1, 0, 0]
    assert values == {OURS: [1.0], "a": [1.0]}


def test_a_ratio_is_the_median_of_the_pairs() -> None:
    """A slow machine slows both variants of a round."""
    quick, slow = compared("x", "/s", [20, 2, 30], {"a": [10, 1, 10], "b": [5, 1, 5]}, ">= 1.5")
    assert (quick.peer_variant, quick.ratio, quick.ratios, quick.goal, quick.met) == ("a", 2, "2..3", ">= 1.5", True)
    assert (slow.peer_variant, slow.ratio, slow.goal) == ("b", 4, "")


def test_without_pairs_a_ratio_is_of_medians() -> None:
    (row_compared,) = compared("x", "ms", [3, 4, 8], {"a": [2]}, "<= 0.9")
    assert (row_compared.ratio, row_compared.ratios, row_compared.met) == (2, "", False)


def test_each_row_is_kept_with_when_it_was_measured(tmp_path: Path) -> None:
    file = tmp_path / "build" / "bench.json"
    first, again, other = (compared(name, "ms", [n], {"a": [1]}, "") for name, n in (("x", 1), ("x", 2), ("y", 3)))
    save("x", first, "", file, {"when": "then"})
    save("y", other, "", file, {"when": "then"})
    save("x", again, "", file, WHEN)
    kept_document = json.loads(file.read_text())
    assert [(figure["name"], figure["ours"], figure["measured"]["when"]) for figure in kept_document["figures"]] == [
        ("y", 3, "then"),
        ("x", 2, "now"),
    ]


def test_a_row_that_failed_is_noted_until_it_is_measured(tmp_path: Path) -> None:
    """Its figures of an earlier run remain, with their time."""
    file = tmp_path / "bench.json"
    figures = compared("x", "ms", [1], {"a": [1]}, "")
    save("x", figures, "", file, {"when": "then"})
    for _ in range(2):
        save("x", [], "why", file, WHEN)
    kept_document = json.loads(file.read_text())
    assert kept_document["failures"] == [{"row": "x", "reason": "why", "measured": WHEN}]
    assert [figure["measured"] for figure in kept_document["figures"]] == [{"when": "then"}]
    save("x", figures, "", file, WHEN)
    assert json.loads(file.read_text())["failures"] == []


@pytest.mark.parametrize(
    "error", [SystemExit("it failed:\n a trace"), AssertionError("x" * 9000), KafkaException("away")]
)
async def test_a_row_that_fails_says_why_and_the_next_ones_go_on(error: BaseException) -> None:
    class Broken:
        async def measure(self, _: str) -> list[object]:
            raise error

        def say(self, _: str) -> None:
            pass

    values, failure = await row(Broken(), "x")  # type: ignore[arg-type]
    assert values == []
    assert failure.startswith(f"{type(error).__name__}: {str(error)[:4]}")
    assert len(failure) < 600
    assert "\n" not in failure

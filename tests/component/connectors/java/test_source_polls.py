"""A poll of a Java source task is never cut: all of its records with its offsets are in one transaction.

Its task gets the callbacks for them before the next poll.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from support.java.kit import needs_java
from support.java.scripted_source import AT_LEAST_ONCE, ONCE, Scripted
from support.kafka.topics import create_topic
from support.waiting import until

pytestmark = [pytest.mark.component, needs_java()]

JSON = "org.apache.kafka.connect.json.JsonConverter"
LARGE_POLLS = {"shares": "yes", "poll": "5000", "length": "1000", "records": "20000"}


@pytest.fixture
def scripted(bootstrap: str, name: str, classes: Path, tmp_path: Path) -> Scripted:
    """A task whose topic has one partition."""
    create_topic(bootstrap, name)
    return Scripted(bootstrap, name, classes, tmp_path)


def numbers(scripted: Scripted, topic: str = "") -> list[int]:
    """The numbers of the committed records."""
    return [int(match[1]) for value in scripted.values(topic) if (match := re.search(r"v(\d+)", value, re.IGNORECASE))]


@pytest.mark.parametrize("boundary", ["poll", "interval"])
def test_a_large_poll_is_there_as_a_whole_or_not_at_all_whatever_kills_its_slot(
    scripted: Scripted, boundary: str
) -> None:
    config = {**LARGE_POLLS, "transaction.boundary": boundary, "transaction.boundary.interval.ms": "1"}
    for point, count in (
        ("record in an open transaction", 2),
        ("record in an open transaction", 9),
        ("offsets in an open transaction", 2),
        ("transaction committed", 2),
    ):
        with scripted.hosted(die=[point, count], **config) as process:
            assert process.wait(60) == -signal.SIGKILL, scripted.ended_with()
    whole = len(numbers(scripted))  # after the last one, which leaves no open transaction
    assert whole % 5000 == 0, f"{whole} records"
    with scripted.hosted(**config) as process:
        until(lambda: scripted.offsets() == {"p0": 19999}, "all is committed")
        scripted.stopped(process)
    assert numbers(scripted) == list(range(20000))
    starts = [int(line.split()[0]) for line in scripted.noted("start")]
    assert [start % 5000 for start in starts] == [0] * len(starts)


BAD = {
    "too large": (
        {"large": "2500", "large_length": "100000", "producer_override_max_request_size": "50000"},
        {"producer_override_max_request_size": "1000000"},
    ),
    "converter": (
        {"bad": "2500", "value_converter": JSON, "value_converter_schemas_enable": "true"},
        {"bad": "-1", "value_converter": "org.apache.kafka.connect.storage.StringConverter"},
    ),
    "transform": (
        {
            "bad": "2500",
            "transforms": "shout",
            "transforms_shout_type": "acme.ShoutTransform",
            "transforms_shout_end": "!",
        },
        {"bad": "-1"},
    ),
}


@pytest.mark.parametrize("delivery", [ONCE, AT_LEAST_ONCE])
@pytest.mark.parametrize("what", list(BAD))
def test_a_bad_record_in_mid_poll_leaves_nothing_of_its_poll_behind(
    scripted: Scripted, what: str, delivery: int
) -> None:
    bad, mended = BAD[what]
    with scripted.hosted(delivery=delivery, **LARGE_POLLS, **bad) as process:
        last = scripted.ends(process)
    assert last["state"] == "FAILED"
    assert scripted.offsets() == {}
    if delivery == ONCE:
        assert numbers(scripted) == []
    with scripted.hosted(delivery=delivery, **LARGE_POLLS, **{**bad, **mended}) as process:
        until(lambda: scripted.offsets() == {"p0": 19999}, "all is committed")
        scripted.stopped(process)
    assert [line.split()[0] for line in scripted.noted("start")] == ["0", "0"]
    actual_numbers = numbers(scripted)
    assert sorted(set(actual_numbers)) == list(range(20000))
    if delivery == ONCE:
        assert len(actual_numbers) == 20000


def test_a_large_poll_with_records_for_several_topics_is_whole_too(scripted: Scripted) -> None:
    second = f"{scripted.name}-b"
    create_topic(scripted.bootstrap, second, 3)
    config = {**LARGE_POLLS, "topics": f"{scripted.name},{second}", "parts": "2"}
    for count in (3, 7, 12):
        with scripted.hosted(die=["record in an open transaction", count], **config) as process:
            assert process.wait(60) == -signal.SIGKILL, scripted.ended_with()
    with scripted.hosted(**config) as process:
        until(lambda: scripted.offsets() == {"p0": 19999, "p1": 19999}, "all is committed")
        scripted.stopped(process)
    assert numbers(scripted) == list(range(0, 20000, 2))
    assert sorted(numbers(scripted, second)) == list(range(1, 20000, 2))


@pytest.mark.parametrize("delivery", [ONCE, AT_LEAST_ONCE])
def test_a_poll_that_waits_until_the_last_one_is_acknowledged_goes_on(scripted: Scripted, delivery: int) -> None:
    with scripted.hosted(delivery=delivery, awaits="yes", records="500") as process:
        scripted.copied(500, process)
        scripted.stopped(process)
    assert numbers(scripted) == list(range(500))


@pytest.mark.parametrize("delivery", [ONCE, AT_LEAST_ONCE])
def test_a_task_hears_of_its_last_records_while_it_has_no_next_one(scripted: Scripted, delivery: int) -> None:
    worker = {"task.shutdown.graceful.timeout.ms": "300"}
    with scripted.hosted(delivery=delivery, hangs="50", worker=worker) as process:
        until(lambda: scripted.noted("hangs"), "it hangs")
        scripted.copied(50, process)
        until(lambda: [int(line.split()[0]) for line in scripted.noted("record")] == list(range(50)), "it hears of all")
        scripted.stopped(process)


SLOW = {"transforms": "slow", "transforms_slow_type": "acme.SlowTransform"}


def test_a_poll_that_takes_longer_than_its_transaction_may_live_says_what_to_do(scripted: Scripted) -> None:
    short = {"producer_override_transaction_timeout_ms": "1000", "transforms_slow_micros": "3000", **SLOW}
    with scripted.hosted(**LARGE_POLLS, **short):
        until(lambda: "transaction.max.timeout.ms" in scripted.ended_with(), "it says so")
    assert numbers(scripted) == []
    assert scripted.offsets() == {}
    assert "Raise producer.override.transaction.timeout.ms" in scripted.ended_with()

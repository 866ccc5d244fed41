"""Our own sinks with a cooperative assignor: tasks and other members come and go, all is copied, and once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from component.engine.test_sinks import come_and_go, file_sink, kafka_sink, produce
from keelman.engine.sink.consumer import place
from support.copying.harness import Run, ticket
from support.kafka.members import member
from support.kafka.topics import messages
from support.waiting import until

pytestmark = pytest.mark.component
COOPERATIVE = {
    "consumer.override.partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    "keelman.commit.interval.ms": "50",
}
LONG = {"consumer.override.session.timeout.ms": "30000"}
"""How long a member whose task has ended stays in the group."""


def test_tasks_that_come_and_go_share_the_partitions_and_copy_all_once(
    bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    def settled(_again: Run) -> None:
        until(lambda: len(messages(bootstrap, f"to-{name}")) >= 20_000, "both copy what is there")

    come_and_go(bootstrap, name, runs, kafka_sink(name, **COOPERATIVE), settled)


def test_another_member_has_some_of_the_partitions_and_gives_them_back(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    produce(bootstrap, name, range(200), 2)
    config = file_sink(name, tmp_path / "out", **COOPERATIVE)
    run = runs(ticket(bootstrap, config))
    run.until_records(200)
    with member(bootstrap, f"connect-{name}-out", name) as other:
        until(lambda: len(other.places) == 1, "both have one", 20)
        produce(bootstrap, name, range(200, 400), 2)
        run.until_records(300)
        until(lambda: len(other.values) == 100, "it has read its own")
    produce(bootstrap, name, range(400, 600), 2)
    run.until_records(500)
    run.drain()
    numbers = list(map(int, (tmp_path / "out").read_bytes().splitlines()))
    assert sorted([*numbers, *map(int, other.values)]) == list(range(600))


def test_a_sink_begins_at_once_with_an_assignor_that_has_nothing_in_common_with_the_one_before(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    """Its former self is still a member, with the other assignor: a static member keeps its place when it ends."""
    produce(bootstrap, name, range(100), 2)
    config = file_sink(name, tmp_path / "out", **LONG)
    runs(ticket(bootstrap, config)).copied(100)
    produce(bootstrap, name, range(100, 200), 2)
    run = runs(ticket(bootstrap, {**config, **COOPERATIVE}))
    run.until_records(100, seconds=20)
    run.drain()


def test_a_sink_that_its_group_does_not_let_in_says_why(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "REFUSED_SECONDS", 1.0)
    produce(bootstrap, name, range(3), 2)
    with member(bootstrap, f"connect-{name}-out", name, "range") as other:
        until(lambda: len(other.places) == 2, "another has all")
        failed = runs(ticket(bootstrap, file_sink(name, tmp_path / "out", **COOPERATIVE))).until_state("FAILED")
        assert failed.retriable
        assert f"group connect-{name}-out refuses the task" in failed.message
        assert "consumer.override.partition.assignment.strategy (now org.apache" in failed.message


def test_assignors_that_it_does_without_are_named(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run], capsys: pytest.CaptureFixture[str]
) -> None:
    produce(bootstrap, name, range(3))
    package = "org.apache.kafka.clients.consumer"
    text = f"{package}.StickyAssignor,{package}.CooperativeStickyAssignor"
    runs(ticket(bootstrap, file_sink(name, tmp_path / "out", **{next(iter(COOPERATIVE)): text}))).copied(3)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "sink_assignors_passed_over" in line]
    assert "StickyAssignor" in line
    assert "CooperativeStickyAssignor" in line

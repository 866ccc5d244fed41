"""Slots that wait for a cluster have a reason by name, once they have waited for some seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from keelman.spark.masters.executor_watch import IDLE_SECONDS, SHORT_SECONDS, WITHOUT_SECONDS, ExecutorWatch


@dataclass
class World:
    now: float = 100.0
    watch: ExecutorWatch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = ExecutorWatch("spark://m:7077", 2, lambda: self.now)

    def seconds(self, count: float, *, executors: int, jobs: int) -> list[bool]:
        """The result of the watch for each second."""
        noted = []
        for _ in range(int(count)):
            self.now += 1
            noted.append(self.watch.note(executors=executors, jobs=jobs))
        return noted

    @property
    def reason(self) -> str:
        """The reason and the figures."""
        shortage = self.watch.shortage
        return "" if shortage is None else f"{shortage.reason} {shortage.cores} of {shortage.wanted}"


def test_jobs_that_wait_without_an_executor_are_a_problem_once() -> None:
    world = World()
    assert not any(world.seconds(WITHOUT_SECONDS, executors=0, jobs=1))
    assert world.reason == ""
    assert sum(world.seconds(5, executors=0, jobs=2)) == 1
    assert world.reason == "NO_EXECUTORS 0 of 2"
    shortage = world.watch.shortage
    assert shortage is not None
    assert shortage.nothing_runs
    assert shortage.message.startswith("0 of 2 cores: spark://m:7077 gives it no executor: start workers")


def test_an_executor_ends_the_problem_at_once() -> None:
    world = World()
    world.seconds(WITHOUT_SECONDS + 2, executors=0, jobs=1)
    world.seconds(1, executors=1, jobs=1)
    assert world.reason == ""
    assert not any(world.seconds(WITHOUT_SECONDS, executors=0, jobs=1)), "it counts anew"


def test_without_jobs_no_executor_is_wanted() -> None:
    world = World()
    assert not any(world.seconds(60, executors=0, jobs=0))
    assert world.reason == ""


def test_a_session_that_begins_in_the_middle_does_not_hide_the_problem() -> None:
    world = World()
    world.seconds(WITHOUT_SECONDS + 1, executors=0, jobs=1)
    world.seconds(3, executors=0, jobs=0)
    assert world.reason.startswith("NO_EXECUTORS")
    world.seconds(30, executors=0, jobs=1)
    assert world.reason.startswith("NO_EXECUTORS")
    world.seconds(IDLE_SECONDS + 1, executors=0, jobs=0)
    assert world.reason == "", "nobody wants one any more"


def test_too_few_cores_have_their_figures_and_let_others_run() -> None:
    world = World()
    assert not any(world.seconds(SHORT_SECONDS, executors=2, jobs=16))
    assert world.reason == ""
    assert not any(world.seconds(1, executors=2, jobs=16)), "workers keep their tasks"
    assert world.reason == "WAITING_FOR_CORES 4 of 16"
    shortage = world.watch.shortage
    assert shortage is not None
    assert not shortage.nothing_runs
    assert "4 of 16 cores" in shortage.message
    assert world.watch.cores == (4, 16)
    world.seconds(1, executors=2, jobs=4)
    assert world.reason == "", "one core a slot is enough"


def test_while_executors_come_slots_need_patience() -> None:
    world = World()
    for executors in range(1, 5):
        world.seconds(SHORT_SECONDS - 1, executors=executors, jobs=16)
        assert world.reason == ""
    world.seconds(2, executors=4, jobs=16)
    assert world.reason == "WAITING_FOR_CORES 8 of 16"


def test_when_the_last_executor_goes_the_reason_changes() -> None:
    world = World()
    world.seconds(SHORT_SECONDS + 1, executors=1, jobs=4)
    world.seconds(1, executors=0, jobs=4)
    assert world.reason == "", "another one may be starting"
    world.seconds(WITHOUT_SECONDS, executors=0, jobs=4)
    assert world.reason == "NO_EXECUTORS 0 of 4"

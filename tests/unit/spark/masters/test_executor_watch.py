"""A Spark without executors can run nothing once jobs have waited for one for some seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from keelman.spark.masters.executor_watch import WITHOUT_SECONDS, ExecutorWatch


@dataclass
class World:
    now: float = 100.0
    watch: ExecutorWatch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = ExecutorWatch("spark://m:7077", lambda: self.now)

    def seconds(self, count: float, *, executors: int, jobs: int) -> list[bool]:
        """The result of the watch for each second."""
        noted = []
        for _ in range(int(count)):
            self.now += 1
            noted.append(self.watch.note(executors=executors, jobs=jobs))
        return noted


def test_jobs_that_wait_without_an_executor_are_a_problem_once() -> None:
    world = World()
    assert not any(world.seconds(WITHOUT_SECONDS, executors=0, jobs=1))
    assert world.watch.problem == ""
    assert sum(world.seconds(5, executors=0, jobs=2)) == 1
    assert world.watch.problem.startswith("spark://m:7077 gives it no executor: start workers")


def test_an_executor_ends_the_problem_at_once() -> None:
    world = World()
    world.seconds(WITHOUT_SECONDS + 2, executors=0, jobs=1)
    world.seconds(1, executors=1, jobs=1)
    assert world.watch.problem == ""
    assert not any(world.seconds(WITHOUT_SECONDS, executors=0, jobs=1)), "it counts anew"


def test_without_jobs_no_executor_is_wanted() -> None:
    world = World()
    assert not any(world.seconds(60, executors=0, jobs=0))
    assert world.watch.problem == ""

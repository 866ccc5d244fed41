"""Whether a worker takes tasks, depending on the history of its link to the Spark service."""

from __future__ import annotations

from keelman.worker.intervals import LEASE_SECONDS
from keelman.worker.tasks.fitness import FORGIVEN_SECONDS, MOST_SECONDS, Fitness

PATIENCE = 10.0


class World:
    """A worker whose link connects and breaks; `said` has its messages to the group with their times."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.fitness = Fitness(PATIENCE, lambda: self.now)
        self.said: list[tuple[float, bool]] = []

    def passes(self, seconds: float) -> None:
        """Lets time pass in steps of a tenth of a second."""
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self._note(self.fitness.look())

    def up(self, seconds: float) -> None:
        """Connects the link for so long."""
        self._note(self.fitness.came())
        self.passes(seconds)

    def down(self, seconds: float) -> None:
        """Breaks the link for so long."""
        self.fitness.went(self.now)
        self.passes(seconds)

    def _note(self, news: bool) -> None:
        if news:
            self.said.append((self.now, self.fitness.fit))


def test_without_a_link_it_never_takes_any_and_with_the_first_one_at_once() -> None:
    world = World()
    world.passes(100)
    assert not world.fitness.fit
    world.up(0)
    assert world.fitness.fit


def test_a_restart_of_the_service_changes_nothing_and_a_long_absence_does_until_it_is_back() -> None:
    world = World()
    world.up(60)
    world.down(PATIENCE - 1)
    world.up(60)
    world.said.clear()
    gone = world.now
    world.down(PATIENCE + 5)
    assert [round(at - gone) for at, fit in world.said if not fit] == [PATIENCE]
    world.up(0)
    assert world.fitness.fit, "the first time it is believed at once"


def test_a_service_that_comes_and_goes_is_believed_once_it_stays() -> None:
    world = World()
    world.up(60)
    for _ in range(60):
        world.down(PATIENCE + 5)
        world.up(5)
    assert len(world.said) <= 5, "some rounds, not two for each time"
    world.up(MOST_SECONDS)
    assert world.fitness.fit
    world.up(FORGIVEN_SECONDS)
    world.down(PATIENCE + 1)
    world.up(0)
    assert world.fitness.fit, "after ten good minutes all is forgiven"


def test_a_link_that_never_stands_long_enough_to_copy_counts_as_away() -> None:
    world = World()
    world.up(60)
    for _ in range(10):
        world.down(2)
        world.up(LEASE_SECONDS / 2)
    assert False in [fit for _, fit in world.said[1:]], "it copies nothing, though it was never away for long"

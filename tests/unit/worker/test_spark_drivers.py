"""The driver of a Spark cluster that a worker links to."""

from __future__ import annotations

import pytest

from keelman.model.errors import InvalidArgument
from keelman.worker.spark_drivers import FIRST_PATIENCE, MOST_PATIENCE, Drivers


class FakeClock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def test_a_single_service_is_tried_again_after_a_pause_and_never_given_up() -> None:
    clock = FakeClock()
    drivers = Drivers("a:1", clock)
    assert (drivers.present, drivers.are_several, drivers.connect_seconds) == ("a:1", False, None)
    assert not drivers.failed()
    drivers.note_spark(there=False)
    clock.advance(10 * MOST_PATIENCE)
    assert (drivers.present, drivers.is_without_spark) == ("a:1", False)


def test_the_others_are_tried_at_once_and_a_pause_follows_each_round() -> None:
    drivers = Drivers("a:1, b:1,c:1")
    drivers.linked()
    tried = [(drivers.failed(), drivers.present) for _ in range(4)]
    assert tried == [(True, "b:1"), (True, "c:1"), (False, "a:1"), (True, "b:1")]
    drivers.linked()
    assert drivers.failed(), "after a link that broke the next is tried at once"


def test_a_connection_may_take_longer_after_each_round_in_vain() -> None:
    drivers = Drivers("a:1,b:1")
    seconds = []
    for _ in range(8):
        seconds.append(drivers.connect_seconds)
        drivers.failed()
    assert seconds == [1, 1, 2, 2, 4, 4, 5, 5]
    drivers.linked()
    assert drivers.connect_seconds == 1


def test_a_driver_without_spark_is_left_after_a_patience_that_grows_while_none_has_spark() -> None:
    clock = FakeClock()
    drivers, left = Drivers("a:1,b:1", clock), []
    for _ in range(7):
        drivers.note_spark(there=False)
        begun = clock()
        while not drivers.is_without_spark:
            clock.advance(1)
            drivers.note_spark(there=False)
        left.append((drivers.present, clock() - begun))
        drivers.failed()
        drivers.linked()
    assert left == [("a:1", 30), ("b:1", 60), ("a:1", 120), ("b:1", 240), ("a:1", 480), ("b:1", 480), ("a:1", 480)]
    drivers.note_spark(there=True)
    drivers.note_spark(there=False)
    clock.advance(FIRST_PATIENCE)
    assert drivers.is_without_spark, "Spark was there: the first patience again"


def test_a_link_that_breaks_meanwhile_does_not_count_as_time_without_spark() -> None:
    clock = FakeClock()
    drivers = Drivers("a:1,b:1", clock)
    drivers.note_spark(there=False)
    clock.advance(FIRST_PATIENCE - 1)
    drivers.failed()
    clock.advance(1)
    assert not drivers.is_without_spark


@pytest.mark.parametrize("text", ["", "a:1,", "a:1,b:1,a:1"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"worker\.spark_address"):
        Drivers(text)

"""Where transactions end, and the behaviour of an idle run."""

import time

import pytest

from keelman.connect.errors import ConfigValueError
from keelman.connect.records import Column, SourceBatch
from keelman.engine.idle import Idle, park_after_seconds
from keelman.engine.source.boundary import Boundary, boundary_for


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def batch(**more: object) -> SourceBatch:
    return SourceBatch("t", Column([b"a"]), **more)  # type: ignore[arg-type]


def test_poll_commits_at_a_short_read_at_no_data_and_when_it_was_open_for_long():
    clock = Clock()
    boundary = Boundary("poll", 0.5, clock)
    clock.now = 10.0
    boundary.begun()
    assert boundary.after(batch()) is None
    assert boundary.after(batch(short=True)) == "commit"
    assert boundary.after(None) == "commit"
    assert boundary.after(batch(boundary="abort")) is None
    clock.now = 10.5
    assert boundary.after(batch()) == "commit"


def test_interval_commits_so_long_after_the_last_commit_and_not_before():
    clock = Clock()
    boundary = Boundary("interval", 60, clock)
    clock.now = 59.0
    boundary.begun()
    assert [boundary.after(batch_read) for batch_read in (batch(short=True), None)] == [None, None]
    clock.now = 60.0
    assert boundary.after(batch()) == "commit"
    boundary.committed()
    clock.now = 119.0
    assert boundary.after(None) is None
    clock.now = 120.0
    assert boundary.after(None) == "commit"


def test_the_connector_alone_draws_its_lines():
    clock = Clock()
    boundary = Boundary("connector", 0.5, clock)
    clock.now = 1000.0
    requests = [boundary.after(batch_read) for batch_read in (batch(short=True), None, batch(boundary="commit"))]
    assert requests == [None, None, "commit"]
    assert boundary.after(batch(boundary="abort")) == "abort"
    assert boundary.at_end == "abort"
    assert not boundary.rests_inside


@pytest.mark.parametrize(
    ("config", "worker", "timeout"),
    [
        ({}, {}, 10),
        ({"keelman.commit.interval.ms": "30000"}, {}, 40),
        ({"transaction.boundary": "INTERVAL"}, {}, 70),
        ({"transaction.boundary": "interval"}, {"offset.flush.interval.ms": "5000"}, 15),
        ({"transaction.boundary": "interval", "transaction.boundary.interval.ms": "90000"}, {}, 100),
        ({"transaction.boundary": "connector"}, {}, 60),
    ],
)
def test_how_long_a_transaction_may_stay_open(config: dict[str, str], worker: dict[str, str], timeout: float):
    assert boundary_for(config, worker, time.monotonic, transactional=True).timeout_seconds == timeout


@pytest.mark.parametrize(
    ("config", "timeout", "delivery"),
    [
        ({}, 60, 10),
        ({"keelman.commit.interval.ms": "30000"}, 90, 40),
        ({"transaction.boundary": "interval", "transaction.boundary.interval.ms": "5000"}, 65, 15),
        ({"transaction.boundary": "connector"}, 60, 60),
    ],
)
def test_polls_of_any_size_have_more_time(config: dict[str, str], timeout: float, delivery: float):
    boundary = boundary_for(config, {}, time.monotonic, transactional=True, large_polls=True)
    assert (boundary.timeout_seconds, boundary.delivery_seconds) == (timeout, delivery)


def test_without_transactions_the_boundary_is_poll():
    assert boundary_for({"transaction.boundary": "connector"}, {}, time.monotonic, transactional=False).kind == "poll"


def test_an_unknown_boundary_is_refused():
    with pytest.raises(ConfigValueError, match=r"transaction\.boundary"):
        boundary_for({"transaction.boundary": "never"}, {}, time.monotonic, transactional=True)


def test_naps_grow_while_nothing_comes_and_a_reader_that_waits_itself_gets_none():
    clock = Clock()
    idle = Idle(None, clock)
    waits = [idle.wait_seconds(0.0) for _ in range(20)]
    assert waits[0] <= 0.005
    assert waits == sorted(waits)
    assert 0.02 < waits[-1] <= 0.1
    assert idle.wait_seconds(0.2) == 0
    clock.now = 10.0
    assert max(idle.wait_seconds(0.0) for _ in range(20)) == 0.25
    idle.copied()
    assert idle.wait_seconds(0.0) == waits[0]


def test_parked_only_after_the_time_and_never_with_minus_one():
    clock = Clock()
    idle = Idle(park_after_seconds({"keelman.park.after.ms": "3000"}, {"keelman.park.after.ms": "2000"}), clock)
    clock.now = 1.0
    idle.copied()
    clock.now = 2.9
    assert not idle.may_park
    clock.now = 3.1
    assert idle.may_park
    assert park_after_seconds({}, {}) == 10
    assert park_after_seconds({}, {"keelman.park.after.ms": "-1"}) is None
    with pytest.raises(ConfigValueError):
        park_after_seconds({}, {"keelman.park.after.ms": "-2"})

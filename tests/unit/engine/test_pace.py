"""Limits hold over time, whatever the batches, and change while a run goes."""

from keelman.engine.control import Pace


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def copied(pace: Pace, clock: Clock, seconds: float, batch: int, size: int = 100) -> int:
    """Returns the number of records that a run copies in that time, in batches of at most so many."""
    end, records = clock.now + seconds, 0
    while clock.now < end:
        wait = pace.wait_seconds()
        if wait > 0:
            clock.now += max(0.001, min(wait, 0.5))
            continue
        most = pace.most_records
        count = batch if most is None else min(batch, most)
        pace.spend(count, count * size)
        records += count
        clock.now += 0.001
    return records


def test_records_a_second():
    for batch in (1, 30, 5000):
        clock = Clock()
        pace = Pace(clock)
        pace.limit(200, 0)
        assert 1900 <= copied(pace, clock, 10, batch) <= 2100


def test_bytes_a_second_though_the_records_have_another_size_than_guessed():
    for size in (10, 100_000):
        clock = Clock()
        pace = Pace(clock)
        pace.limit(0, 50_000)
        assert 0.9 <= copied(pace, clock, 100, 5000, size) * size / 5_000_000 <= 1.1


def test_one_record_a_minute():
    clock = Clock()
    pace = Pace(clock)
    pace.limit(1 / 60, 0)
    assert 9 <= copied(pace, clock, 600, 1000) <= 11


def test_a_batch_over_the_limit_is_paid_off_at_the_rate_of_the_moment():
    clock = Clock()
    pace = Pace(clock)
    pace.limit(10, 0)
    pace.spend(1000, 0)
    assert 99 <= pace.wait_seconds() <= 100
    pace.limit(1000, 0)
    assert 0.8 <= pace.wait_seconds() <= 1
    pace.limit(0, 0)
    assert pace.wait_seconds() == 0
    assert pace.most_records is None


def test_a_quiet_hour_is_no_credit():
    clock = Clock()
    pace = Pace(clock)
    pace.limit(100, 0)
    clock.now = 3600.0
    assert copied(pace, clock, 1, 1000) <= 130

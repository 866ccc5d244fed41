from __future__ import annotations

from collections.abc import Iterable

import pytest

from keelman.model.autoscale import Autoscale
from keelman.state.autoscaling.decision import NO_TREND, Measure, Move, followed, leaning, needed, next_workers, reason

WANTED = Autoscale(1, 4, scale_out_lag_records=1000, sample_seconds=10.0)
BUSY, IDLE, FAIR, SILENT = Measure(90.0), Measure(3.0), Measure(50.0), Measure(None, whole=False)
LAGGING, HALF_IDLE = Measure(3.0, lag_records=1001), Measure(3.0, whole=False)


REPORT_SECONDS = 5
"""A worker reports its use at this interval."""


def walk(looks: Iterable[tuple[float, Measure]], workers: int = 2, stepped: float | None = None) -> list[str]:
    """Returns each scaling with its time, for these measures."""
    trend, scalings = NO_TREND, []
    for now, seen in looks:
        trend = followed(trend, WANTED, seen, workers, now)
        since = None if stepped is None else now - stepped
        expected_workers = next_workers(trend, WANTED, seen, workers, now=now, since_step=since)
        if expected_workers != workers:
            scalings.append(f"{now:g} s: {workers} -> {expected_workers}: {reason(WANTED, seen)}")
            workers, stepped, trend = expected_workers, now, NO_TREND
    return scalings


def each_second(seen: Measure, until: int, since: int = 0) -> list[tuple[float, Measure]]:
    return [(float(now), seen) for now in range(since, until)]


def test_full_processors_bring_as_many_workers_as_their_use_shows() -> None:
    assert walk(each_second(BUSY, 300)) == [
        "20 s: 2 -> 3: processor 90 %, above 80 % in 3 samples",
        "80 s: 3 -> 4: processor 90 %, above 80 % in 3 samples",
    ]


def test_its_end_has_them_go_down_to_the_fewest() -> None:
    assert walk(each_second(IDLE, 300), workers=3) == [
        "20 s: 3 -> 2: processor 3 %, below 20 % in 3 samples",
        "80 s: 2 -> 1: processor 3 %, below 20 % in 3 samples",
    ]


def test_lag_brings_workers_and_keeps_them() -> None:
    assert walk(each_second(LAGGING, 60)) == ["20 s: 2 -> 3: lag 1,001 records, above 1,000 in 3 samples"]


@pytest.mark.parametrize("between", [FAIR, IDLE, SILENT])
def test_a_series_has_no_gaps(between: Measure) -> None:
    assert not walk([*each_second(BUSY, 20), (20.0, between), *each_second(BUSY, 41, 21)])


def test_silence_scales_nothing_and_half_of_it_never_in() -> None:
    assert not walk(each_second(SILENT, 600))
    assert not walk(each_second(HALF_IDLE, 600))
    assert leaning(WANTED, Measure(90.0, whole=False), 2) is Move.OUT


def test_a_step_is_followed_by_a_pause() -> None:
    assert walk(each_second(BUSY, 100), stepped=-10.0) == ["50 s: 2 -> 3: processor 90 %, above 80 % in 3 samples"]


@pytest.mark.parametrize("before", range(REPORT_SECONDS))
def test_by_default_workers_come_within_thirty_seconds_of_a_load(before: int) -> None:
    """A worker's last report is `before` seconds older than the load.

    A report covers the time since the report before, so the next one shows only a part of the load.
    """
    autoscale, trend = Autoscale(1, 2), NO_TREND
    for now in range(60):  # seconds after the load
        reports = (now + before) // REPORT_SECONDS
        share = min(1.0, (reports * REPORT_SECONDS - before) / REPORT_SECONDS) if reports else 0.0
        seen = Measure(100.0 * share)
        trend = followed(trend, autoscale, seen, 1, float(now))
        if next_workers(trend, autoscale, seen, 1, now=float(now), since_step=None) == 2:
            assert 10 <= now <= 22, "not for a short load, and with time to spare"
            return
    pytest.fail("nothing came")


MANY = Autoscale(1, 20, scale_out_lag_records=1000)


@pytest.mark.parametrize(
    ("seen", "workers", "growth", "expected"),
    [
        (Measure(50.0), 4, 0.0, 3),
        (Measure(80.0), 4, 0.0, 4),
        (Measure(81.0), 4, 0.0, 5),
        (Measure(400.0), 1, 0.0, 5),
        (Measure(50.0, 1000, rate=10.0), 4, 0.0, 3),
        (Measure(50.0, 1001, rate=1e6), 4, 0.0, 5),
        (Measure(50.0, 601_000, rate=1000.0), 1, 0.0, 11),
        (Measure(50.0, 1001, rate=1000.0), 1, 6000.0, 8),
        (Measure(50.0, 5000), 1, 0.0, 5),
        (Measure(50.0, 10**9, rate=1000.0), 1, 0.0, 20),
        (Measure(50.0, waiting=1, running=64, free_nodes=9), 1, 0.0, 2),
        (Measure(50.0, waiting=200, running=64, free_nodes=9), 1, 0.0, 5),
        (Measure(50.0, waiting=3, free_nodes=1), 2, 0.0, 3),
        (Measure(50.0, waiting=200, running=64, free_nodes=2), 1, 0.0, 3),
        (Measure(3.0, waiting=200, running=64), 2, 0.0, 2),
        (Measure(None, 10**9, waiting=9), 2, 0.0, 2),
        (Measure(1.0), 20, 0.0, 1),
    ],
)
def test_workers_are_computed_from_processors_lag_rate_and_slots(
    seen: Measure, workers: int, growth: float, expected: int
) -> None:
    assert needed(MANY, seen, workers, growth) == expected


def test_a_backlog_is_followed_in_one_step_although_lag_alone_calls_for_none() -> None:
    by_processor = Autoscale(1, 20)
    busy = Measure(100.0, lag_records=600_000, rate=1000.0)
    assert needed(by_processor, busy, 1) == 11
    assert leaning(by_processor, Measure(50.0, lag_records=600_000), 1) is Move.STAY


def test_a_lasting_backlog_takes_one_step() -> None:
    trend, workers, stepped = NO_TREND, 1, dict[float, int]()
    for now in range(60):
        seen = Measure(99.0, lag_records=100_000 * (now + 1), rate=5000.0)
        trend = followed(trend, MANY, seen, workers, float(now))
        if (new := next_workers(trend, MANY, seen, workers, now=float(now), since_step=None)) != workers:
            workers, stepped[now], trend = new, new, NO_TREND
    assert stepped == {10: 20}


def test_no_worker_leaves_whose_share_the_others_could_not_bear() -> None:
    narrow = Autoscale(1, 4, scale_in_cpu_percent=55, scale_out_cpu_percent=60)
    assert leaning(narrow, Measure(50.0), 2) is Move.STAY, "one would be used by 100 %, and call for another"
    assert leaning(narrow, Measure(50.0), 4) is Move.STAY
    assert leaning(narrow, Measure(45.0), 4) is Move.IN, "three are used by 60 %"


def test_tasks_without_a_slot_bring_workers_and_keep_them() -> None:
    assert walk(each_second(Measure(3.0, waiting=1, running=64, free_nodes=9), 60)) == [
        "20 s: 2 -> 3: 1 task without a slot in 3 samples"
    ]
    assert not walk(each_second(Measure(3.0, waiting=1, running=64), 60)), "no node is free, and none leaves"

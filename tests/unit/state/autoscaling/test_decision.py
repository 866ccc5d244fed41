from __future__ import annotations

from collections.abc import Iterable

import pytest

from keelman.model.autoscale import Autoscale
from keelman.state.autoscaling.decision import NO_TREND, Measure, Move, followed, leaning, next_workers, reason

WANTED = Autoscale(1, 4, scale_out_lag_records=1000, sample_seconds=10.0)
BUSY, IDLE, FAIR, SILENT = Measure(90.0), Measure(3.0), Measure(50.0), Measure(None, whole=False)
LAGGING, HALF_IDLE = Measure(3.0, lag_records=1001), Measure(3.0, whole=False)


REPORT_SECONDS = 5
"""A worker reports its use at this interval."""


def walk(looks: Iterable[tuple[float, Measure]], workers: int = 2, stepped: float | None = None) -> list[str]:
    """Returns each scaling with its time, for these measures."""
    trend, scalings = NO_TREND, []
    for now, seen in looks:
        trend = followed(trend, WANTED, seen, now)
        expected_workers = next_workers(trend, WANTED, workers, None if stepped is None else now - stepped)
        if expected_workers != workers:
            scalings.append(f"{now:g} s: {workers} -> {expected_workers}: {reason(WANTED, seen)}")
            workers, stepped, trend = expected_workers, now, NO_TREND
    return scalings


def each_second(seen: Measure, until: int, since: int = 0) -> list[tuple[float, Measure]]:
    return [(float(now), seen) for now in range(since, until)]


def test_a_load_brings_workers_one_by_one_up_to_the_most() -> None:
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
    assert leaning(WANTED, Measure(90.0, whole=False)) is Move.OUT


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
        trend = followed(trend, autoscale, Measure(100.0 * share), float(now))
        if next_workers(trend, autoscale, 1, None) == 2:
            assert 10 <= now <= 22, "not for a short load, and with time to spare"
            return
    pytest.fail("nothing came")

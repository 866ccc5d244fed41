"""Decides when a worker is added or removed. Pure: times are seconds of one clock that never goes back.

A sample counts when it points the same way as the samples before it and is a sample period later than the last one
counted. A measure between two samples that points another way discards the series: a load has to last.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum

from keelman.model.autoscale import Autoscale


class Move(StrEnum):
    """The step that a worker cluster needs."""

    OUT = "OUT"
    IN = "IN"
    STAY = "STAY"


@dataclass(frozen=True, slots=True)
class Measure:
    """The average use that workers make of their processors; None while none reports it. `whole`: all of them
    report."""

    cpu_percent: float | None
    lag_records: int = 0
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Trend:
    """A series of samples that point the same way."""

    move: Move = Move.STAY
    samples: int = 0
    last: float = 0.0
    """The time of the last sample that counted."""


NO_TREND = Trend()


def leaning(autoscale: Autoscale, seen: Measure) -> Move:
    """Returns the step that one measure calls for. Unless all workers report, none is removed."""
    if seen.cpu_percent is None:
        return Move.STAY
    if seen.cpu_percent > autoscale.scale_out_cpu_percent or _lags(autoscale, seen):
        return Move.OUT
    if seen.cpu_percent < autoscale.scale_in_cpu_percent and seen.whole:
        return Move.IN
    return Move.STAY


def followed(trend: Trend, autoscale: Autoscale, seen: Measure, now: float) -> Trend:
    """Returns the series, continued with the present measure."""
    move = leaning(autoscale, seen)
    if move is Move.STAY:
        return NO_TREND
    if move is not trend.move:
        return Trend(move, 1, now)
    if now - trend.last < autoscale.sample_seconds:
        return trend
    return dataclasses.replace(trend, samples=trend.samples + 1, last=now)


def next_workers(trend: Trend, autoscale: Autoscale, workers: int, since_step: float | None) -> int:
    """Returns the number of workers to run. `since_step`: seconds since the last step; None: there was none."""
    if trend.samples < autoscale.samples:
        return workers
    if since_step is not None and since_step < autoscale.cool_down_seconds:
        return workers
    return autoscale.bounded(workers + {Move.OUT: 1, Move.IN: -1, Move.STAY: 0}[trend.move])


def reason(autoscale: Autoscale, seen: Measure) -> str:
    """Returns the reason for a step taken after this measure, for people."""
    if seen.cpu_percent is None:
        return ""
    samples = f"in {autoscale.samples} sample{'' if autoscale.samples == 1 else 's'}"
    if seen.cpu_percent > autoscale.scale_out_cpu_percent:
        return f"processor {seen.cpu_percent:.0f} %, above {autoscale.scale_out_cpu_percent:g} % {samples}"
    if _lags(autoscale, seen):
        return f"lag {seen.lag_records:,} records, above {autoscale.scale_out_lag_records:,} {samples}"
    return f"processor {seen.cpu_percent:.0f} %, below {autoscale.scale_in_cpu_percent:g} % {samples}"


def _lags(autoscale: Autoscale, seen: Measure) -> bool:
    return 0 < autoscale.scale_out_lag_records < seen.lag_records

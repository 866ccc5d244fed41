"""Decides how many workers a load needs, and when to go there. Pure: times are seconds of one clock that never goes
back.

Up at once: to the computed number in one step. Down slowly: one worker a step. A sample counts when it points the same
way as the samples before it and is a sample period later than the last one counted. A measure between two samples that
points another way discards the series: a load has to last.

Between the two thresholds of the processor nothing happens, and no worker is removed whose share would bring the others
above the upper one: so a step never calls for the opposite step.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from enum import StrEnum

from keelman.model.autoscale import Autoscale
from keelman.model.rules.field_checks import MAX_WORKERS

DRAIN_SECONDS = 60.0
"""The time in which so many workers are to copy a backlog, beside what comes meanwhile."""


class Move(StrEnum):
    """The step that a worker cluster needs."""

    OUT = "OUT"
    IN = "IN"
    STAY = "STAY"


@dataclass(frozen=True, slots=True)
class Measure:
    """The load of a cluster's workers together."""

    cpu_percent: float | None
    """The average use that workers make of their processors; None while none reports it."""
    lag_records: int = 0
    whole: bool = True
    """Whether all workers report."""
    rate: float = 0.0
    """Records a second that they copy."""
    waiting: int = 0
    """Tasks that find no slot."""
    running: int = 0
    """Tasks that are in slots."""
    workers: int = 0
    """Workers that run."""
    free_nodes: int = 0
    """While tasks wait, the nodes that could get a first worker: the slots of a node are no more with another worker
    there. 0 otherwise: to look at all nodes for each cluster that is read costs too much."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A series of samples that point the same way."""

    move: Move = Move.STAY
    samples: int = 0
    last: float = 0.0
    """The time of the last sample that counted."""
    began: float = 0.0
    lag_records: int = 0
    """The lag at its beginning."""

    def growth(self, seen: Measure, now: float) -> float:
        """Returns by how many records a second the lag has grown since the series began."""
        took = now - self.began
        return max(0.0, (seen.lag_records - self.lag_records) / took) if self.samples > 1 and took > 0 else 0.0


NO_TREND = Trend()


def needed(autoscale: Autoscale, seen: Measure, workers: int, growth: float = 0.0) -> int:
    """Returns the number of workers that the load of so many workers needs, within the bounds; `workers` while none
    reports. `growth`: records a second by which the lag grows."""
    if seen.cpu_percent is None:
        return autoscale.bounded(workers)
    by_cpu = _share(workers, seen.cpu_percent, autoscale.scale_out_cpu_percent)
    by_lag = by_slots = 0
    if _lags(autoscale, seen) or (seen.cpu_percent > autoscale.scale_out_cpu_percent and seen.lag_records):
        by_lag = max(workers + 1, _for_lag(autoscale, seen, workers, growth))
    if seen.waiting:
        by_slots = max(workers + 1, _share(workers, seen.running + seen.waiting, seen.running))
        by_slots = min(by_slots, workers + seen.free_nodes)
    return autoscale.bounded(max(by_cpu, by_lag, by_slots))


def _for_lag(autoscale: Autoscale, seen: Measure, workers: int, growth: float) -> int:
    """Returns how many workers copy the records that come, and those above the threshold in DRAIN_SECONDS, at the
    present rate of each; without a rate one for each threshold."""
    excess = max(0, seen.lag_records - autoscale.scale_out_lag_records)
    if seen.rate > 0:
        return _share(workers, seen.rate + growth + excess / DRAIN_SECONDS, seen.rate)
    return _share(1, seen.lag_records, autoscale.scale_out_lag_records)


def _share(workers: int, load: float, bearable: float) -> int:
    """Returns how many workers bear a load of which `workers` bear so much; 1 at least, 0 if they bear none."""
    # Rounded, so that an exact multiple is no more than that; bounded, since a rate may be next to nothing.
    return max(1, math.ceil(round(min(workers * load / bearable, MAX_WORKERS), 9))) if bearable > 0 else 0


def leaning(autoscale: Autoscale, seen: Measure, workers: int) -> Move:
    """Returns the step that one measure calls for. Unless all workers report, none is removed."""
    if seen.cpu_percent is None:
        return Move.STAY
    if seen.cpu_percent > autoscale.scale_out_cpu_percent or _lags(autoscale, seen):
        return Move.OUT
    if seen.waiting:
        return Move.OUT if seen.free_nodes else Move.STAY
    idle = seen.cpu_percent < autoscale.scale_in_cpu_percent and seen.whole
    return Move.IN if idle and needed(autoscale, seen, workers) < workers else Move.STAY


def followed(trend: Trend, autoscale: Autoscale, seen: Measure, workers: int, now: float) -> Trend:
    """Returns the series, continued with the present measure."""
    move = leaning(autoscale, seen, workers)
    if move is Move.STAY:
        return NO_TREND
    if move is not trend.move:
        return Trend(move, 1, now, now, seen.lag_records)
    if now - trend.last < autoscale.sample_seconds:
        return trend
    return dataclasses.replace(trend, samples=trend.samples + 1, last=now)


def next_workers(
    trend: Trend, autoscale: Autoscale, seen: Measure, workers: int, *, now: float, since_step: float | None
) -> int:
    """Returns the number of workers to run, after the present measure `seen` has continued the series. `since_step`:
    seconds since the last step; None: there was none."""
    if trend.samples < autoscale.samples:
        return workers
    if since_step is not None and since_step < autoscale.cool_down_seconds:
        return workers
    if trend.move is Move.IN:
        return autoscale.bounded(workers - 1)
    return autoscale.bounded(max(workers, needed(autoscale, seen, workers, trend.growth(seen, now))))


def reason(autoscale: Autoscale, seen: Measure) -> str:
    """Returns the reason for a step taken after this measure, for people."""
    if seen.cpu_percent is None:
        return ""
    samples = f"in {autoscale.samples} sample{'' if autoscale.samples == 1 else 's'}"
    if seen.cpu_percent > autoscale.scale_out_cpu_percent:
        lag = f", {seen.lag_records:,} records of lag" if seen.lag_records else ""
        return f"processor {seen.cpu_percent:.0f} %, above {autoscale.scale_out_cpu_percent:g} % {samples}{lag}"
    if _lags(autoscale, seen):
        return f"lag {seen.lag_records:,} records, above {autoscale.scale_out_lag_records:,} {samples}"
    if seen.waiting:
        return f"{seen.waiting} task{'' if seen.waiting == 1 else 's'} without a slot {samples}"
    return f"processor {seen.cpu_percent:.0f} %, below {autoscale.scale_in_cpu_percent:g} % {samples}"


def _lags(autoscale: Autoscale, seen: Measure) -> bool:
    return 0 < autoscale.scale_out_lag_records < seen.lag_records

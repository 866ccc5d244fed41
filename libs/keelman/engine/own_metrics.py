"""Collects a connector task's own metrics every few seconds, for the progress of its copy run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.connect.contract import METRICS
from keelman.connect.tasks.own_metric import OwnMetric

EVERY_SECONDS = 5.0
MAX_METRICS, MAX_TAGS, MAX_TEXT = 100, 8, 120
"""Limits for one task; more is left out, for each report repeats all metrics."""


class OwnMetrics:
    """Collects the metrics of one copy run; its thread alone uses it."""

    def __init__(self, ask: Callable[[], Sequence[OwnMetric]], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._next = 0.0
        self._found: list[copy.OwnMetric] = []

    def news(self) -> bool:
        """Collects metrics when that is due. Returns whether they have changed. Raises the connector's errors."""
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + EVERY_SECONDS
        before, self._found = self._found, [_message(metric) for metric in reported(METRICS.of(self._ask))]
        return self._found != before

    def add_to(self, progress: copy.CopyProgress) -> None:
        """Adds the metrics to a progress report."""
        progress.own_metrics.extend(self._found)


def reported(metrics: Iterable[OwnMetric]) -> list[OwnMetric]:
    """Returns the reportable metrics of a task. Takes no more than needed, because each Java metric costs time."""
    return list(islice(filter(_is_reported, metrics), MAX_METRICS))


def _is_reported(metric: OwnMetric) -> bool:
    """Returns whether a metric is reported: its value must be a number, which an average of nothing is not."""
    return bool(metric.name) and not math.isnan(metric.value) and len(metric.tags) <= MAX_TAGS


def _message(metric: OwnMetric) -> copy.OwnMetric:
    tags = {key[:MAX_TEXT]: value[:MAX_TEXT] for key, value in metric.tags.items()}
    return copy.OwnMetric(
        name=metric.name[:MAX_TEXT], description=metric.description[:MAX_TEXT], tags=tags, value=float(metric.value)
    )

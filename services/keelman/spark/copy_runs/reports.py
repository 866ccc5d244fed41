"""Reports of copy runs to Kafka: each change of state at once, progress once a second at most for each copy run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from keelman.api.copy.v1.copy_run_pb2 import CopyRun, CopyRunState
from keelman.api.event.v1.report_pb2 import Report
from keelman.kafka.feed import COPY_RUN_REPORTS
from keelman.spark.copy_runs.runs import FINAL

PROGRESS_SECONDS = 1.0


class CopyRunPublisher(Protocol):
    """keelman.kafka.feed.ReportPublisher."""

    def publish(self, topic: str, key: str, value: bytes | None) -> None:
        """Takes the newest value of a key; never blocks."""


class CopyRunReporter:
    """Publishes changes of copy runs. `flush` is called several times a second."""

    def __init__(self, publisher: CopyRunPublisher, reporter: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._publisher, self._reporter, self._clock = publisher, reporter, clock
        self._reported: dict[str, tuple[CopyRunState.ValueType, str, float]] = {}
        self._held: dict[str, CopyRun] = {}

    def changed(self, run: CopyRun) -> None:
        """Takes a copy run that is new or has changed."""
        state, reason, when = self._reported.get(run.uid, (None, "", 0.0))
        if (state, reason) == (run.state, run.reason) and self._clock() - when < PROGRESS_SECONDS:
            self._held[run.uid] = run
        else:
            self._publish(run)

    def flush(self) -> None:
        """Publishes progress whose second is over."""
        now = self._clock()
        for run in [r for r in self._held.values() if now - self._reported[r.uid][2] >= PROGRESS_SECONDS]:
            self._publish(run)

    def _publish(self, run: CopyRun) -> None:
        self._held.pop(run.uid, None)
        if run.state in FINAL:
            self._reported.pop(run.uid, None)
        else:
            self._reported[run.uid] = (run.state, run.reason, self._clock())
        report = Report(reporter=self._reporter, name=run.uid, copy_run=run)
        report.time.GetCurrentTime()
        self._publisher.publish(COPY_RUN_REPORTS, run.uid, report.SerializeToString())

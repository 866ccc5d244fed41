"""Reports a source's copy run while it copies: its progress, what its reader waits for, and when it may be parked."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_RUNNING, LAG_UNIT_BYTES, LAG_UNIT_RECORDS, CopyProgress
from keelman.connect import contract
from keelman.connect.plugin import Reader
from keelman.connect.watches import Watch
from keelman.engine.idle import Idle
from keelman.engine.own_metrics import OwnMetrics
from keelman.engine.progress import Progress
from keelman.engine.reporter import RunReporter
from keelman.engine.source.read_position import ReadPosition

LAG_UNITS = {"bytes": LAG_UNIT_BYTES, "records": LAG_UNIT_RECORDS}


@dataclass(slots=True)
class SourceReports:
    """Reports one run of one source task; its thread alone uses it."""

    reporter: RunReporter
    _: KW_ONLY
    reader: Reader
    position: ReadPosition
    progress: Progress
    idle: Idle
    metrics: OwnMetrics
    part: bool = False
    """The run copies a part of a backlog, or a task that is split into such."""
    _waits_for: str = ""
    _rollbacks: int = 0
    _watch: Watch | None = None

    def message(self) -> CopyProgress:
        """The progress as it is now."""
        message = self.progress.message(self.position.lag(), LAG_UNITS[self.reader.lag_unit])
        message.rollbacks = self._rollbacks = self.reader.rollbacks
        message.taken_back = self.reader.taken_back
        self.metrics.add_to(message)
        message.set_aside.update(contract.ASIDE.of(self.reader.aside))
        return message

    def copied(self) -> None:
        """A batch was sent: there is nothing to park for."""
        self._watch = None

    def report_when_due(self, *, pending: bool) -> None:
        """Looks for news once a second and reports it. With something pending a run does not park."""
        if not self.reporter.due():
            return
        waits_for = contract.WAITS_FOR.of(self.reader.waits_for) or ""
        watch = self._watch
        if not pending and self.idle.may_park:
            watch = contract.WATCH.of(self.reader.watch)
        caught_up = self.part and contract.CAUGHT_UP.of(self.reader.caught_up)
        met = caught_up and not self.reporter.caught_up
        self.reporter.caught_up = self.reporter.caught_up or caught_up
        other = watch != self._watch or waits_for != self._waits_for or self.reader.rollbacks != self._rollbacks
        other = self.metrics.news() or other
        if met or other or self.progress.news(self.position.lag()):
            self._waits_for, self._watch = waits_for, watch
            self.reporter.report(COPY_RUN_STATE_RUNNING, message=waits_for, progress=self.message(), watch=watch)

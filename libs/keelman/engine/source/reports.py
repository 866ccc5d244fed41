"""Reports a source's copy run while it copies: its progress, what its reader waits for, and when it may be parked."""

from __future__ import annotations

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_RUNNING, LAG_UNIT_BYTES, LAG_UNIT_RECORDS, CopyProgress
from keelman.connect import contract
from keelman.connect.plugin import Reader
from keelman.connect.watches import Watch
from keelman.engine.idle import Idle
from keelman.engine.progress import Progress
from keelman.engine.reporter import RunReporter
from keelman.engine.source.read_position import ReadPosition

LAG_UNITS = {"bytes": LAG_UNIT_BYTES, "records": LAG_UNIT_RECORDS}


class SourceReports:
    """Of one run of one source task; its thread alone uses it."""

    def __init__(
        self,
        reporter: RunReporter,
        *,
        reader: Reader,
        position: ReadPosition,
        progress: Progress,
        idle: Idle,
        part: bool = False,
    ) -> None:
        """`part`: the run copies a part of a backlog, or a task that is split into such."""
        self._reporter = reporter
        self._reader = reader
        self._position = position
        self._progress = progress
        self._idle = idle
        self._part = part
        self._waits_for = ""
        self._watch: Watch | None = None

    def message(self) -> CopyProgress:
        """The progress as it is now."""
        return self._progress.message(self._position.lag(), LAG_UNITS[self._reader.lag_unit])

    def copied(self) -> None:
        """A batch was sent: there is nothing to park for."""
        self._watch = None

    def report_when_due(self, *, pending: bool) -> None:
        """Looks for news once a second and reports it. With something pending a run does not park."""
        if not self._reporter.due():
            return
        waits_for = contract.WAITS_FOR.of(self._reader.waits_for) or ""
        watch = self._watch
        if not pending and self._idle.may_park:
            watch = contract.WATCH.of(self._reader.watch)
        caught_up = self._part and contract.CAUGHT_UP.of(self._reader.caught_up)
        met = caught_up and not self._reporter.caught_up
        self._reporter.caught_up = self._reporter.caught_up or caught_up
        if met or watch != self._watch or waits_for != self._waits_for or self._progress.news(self._position.lag()):
            self._waits_for, self._watch = waits_for, watch
            self._reporter.report(COPY_RUN_STATE_RUNNING, message=waits_for, progress=self.message(), watch=watch)

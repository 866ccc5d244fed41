"""Reads a source, sends its records, and ends transactions, within the rate limits, until ordered to drain."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_DRAINING
from keelman.connect import contract
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Reader
from keelman.connect.records import SourceBatch
from keelman.engine.control import Control, GaveUp
from keelman.engine.failure import RunFailure, judge, refuses_topic
from keelman.engine.idle import Idle
from keelman.engine.idle_poller import IDLE_POLLER
from keelman.engine.producing.producer import RunProducer
from keelman.engine.reporter import RunReporter
from keelman.engine.source.boundary import Boundary
from keelman.engine.source.commits import SourceCommits
from keelman.engine.source.pipeline import SourcePipeline
from keelman.engine.source.read_position import ReadPosition
from keelman.engine.source.reports import SourceReports
from keelman.kafka.batches.producer import ProduceFailure

SHORT_REST_SECONDS = 0.02
LONGEST_REST_SECONDS = 0.5


@dataclass(slots=True)
class SourceLoop:
    """The loop of one run of one source task; its thread alone uses it."""

    control: Control
    reporter: RunReporter
    _: KW_ONLY
    reader: Reader
    pipeline: SourcePipeline
    producer: RunProducer
    boundary: Boundary
    position: ReadPosition
    commits: SourceCommits
    reports: SourceReports
    idle: Idle

    def run(self) -> None:
        """Copies until drained, or until all that there will ever be is read; then commits the rest. Raises CutShort
        when cut, anything else when it failed."""
        commits = self.commits
        while commits.torn or not (self._drained() or commits.finished):
            self.control.beat()
            self._keep_pace()
            self._limit_reads()
            started = time.monotonic()
            try:
                batch = contract.READ.of(self.reader.read)
                if batch is not None:
                    self._send(batch)
            except GaveUp:
                commits.give_up()
                break
            if commits.pending:
                commits.end(batch)
            if batch is None:
                self._idle_wait(time.monotonic() - started)
            self.reports.report_when_due(pending=bool(commits.pending))
        if commits.pending:
            self.reporter.report(COPY_RUN_STATE_DRAINING)
            commits.end_last()

    def _drained(self) -> bool:
        return self.control.draining and not contract.WIND_UP.of(self.reader.wind_up)

    def _limit_reads(self) -> None:
        reader, pace = self.reader, self.control.pace
        reader.most_bytes = self.producer.read_bytes
        reader.most_records = pace.most_records_of(None if reader.limits_bytes else reader.most_bytes)

    def _send(self, batch: SourceBatch) -> None:
        self.position.read(batch)
        try:
            prepared = self.pipeline.prepare(batch)
        except (ConnectError, RunFailure, ProduceFailure) as error:
            if not refuses_topic(error) or not contract.SET_ASIDE.of(self.reader.set_aside, judge(error).message):
                raise
            self.position.given_back()
            return
        if not self.commits.open:
            self.commits.begin()
        records, size = self.pipeline.send(batch, prepared)
        self.reporter.topics = self.pipeline.topics
        self.commits.add(batch, records, size)
        self.control.pace.spend(records, size)
        self.idle.copied()
        self.reports.copied()

    def _idle_wait(self, read_seconds: float) -> None:
        seconds = self.idle.wait_seconds(read_seconds)
        if seconds <= 0:
            return
        seen = None if self.commits.pending or self.idle.wakeful else self._has_data()
        if seen is None:
            self._rest(seconds)
        elif not seen:
            IDLE_POLLER.wait(self.control, self._has_data, quiet=self.idle.quiet)

    def _has_data(self) -> bool | None:
        return contract.GLANCE.of(self.reader.glance)

    def _keep_pace(self) -> None:
        """Waits as the limits and the slot's share of the processors want it, with nothing that is due left open; not
        in mid-poll, for its transaction would grow older than its time-out: the next one waits the longer."""
        while not self.control.draining:
            seconds = self.control.must_wait()
            if seconds <= 0 or self.commits.torn or (self.commits.open and not self.boundary.rests_inside):
                return
            if self.commits.pending and seconds > SHORT_REST_SECONDS:
                self.commits.end_at_rest()
            self.reports.report_when_due(pending=bool(self.commits.pending))
            self._rest(min(seconds, LONGEST_REST_SECONDS))

    def _rest(self, seconds: float) -> None:
        """Waits at most `seconds`, and meanwhile lets sent records go out."""
        until = time.monotonic() + seconds
        self.producer.let_out(seconds)
        self.control.wait(max(0.0, until - time.monotonic()))

"""Reports a sink's copy run while it copies: its progress, and what it waits for once there is nothing to copy."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Consumer

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_RUNNING, LAG_UNIT_RECORDS, CopyProgress
from keelman.connect.watches import TopicWatch, Watch
from keelman.engine.idle import Idle
from keelman.engine.progress import Progress
from keelman.engine.reporter import RunReporter
from keelman.engine.sink.commits import SinkCommits
from keelman.engine.sink.positions import Positions
from keelman.engine.sink.subscription import Subscription


class SinkReports:
    """Of one run of one sink task; its thread alone uses it."""

    def __init__(
        self,
        reporter: RunReporter,
        *,
        consumer: Consumer,
        subscription: Subscription,
        positions: Positions,
        commits: SinkCommits,
        progress: Progress,
        idle: Idle,
        watch_properties: Mapping[str, str],
    ) -> None:
        """`watch_properties` are those of the client that watches the topics of a parked task."""
        self._reporter = reporter
        self._consumer = consumer
        self._subscription = subscription
        self._positions = positions
        self._commits = commits
        self._progress = progress
        self._idle = idle
        self._watch_properties = watch_properties
        self._watch: Watch | None = None

    def message(self) -> CopyProgress:
        """The progress as it is now."""
        return self._progress.message(self._positions.lag(self._consumer), LAG_UNIT_RECORDS)

    def report(self) -> None:
        """Reports what is news."""
        watch = self._parkable()
        if watch != self._watch or self._progress.news(self._positions.lag(self._consumer)):
            self._watch = watch
            self._reporter.report(COPY_RUN_STATE_RUNNING, progress=self.message(), watch=watch)

    def _parkable(self) -> Watch | None:
        """What to wait for once all is read and committed. New topics are no topic's end, so they must all be there."""
        if not self._idle.may_park or not self._commits.settled:
            return None
        ends = self._positions.at_ends(self._consumer)
        if ends is None or (self._watch is None and not self._subscription.complete(self._consumer)):
            return None
        return TopicWatch(self._watch_properties, ends)

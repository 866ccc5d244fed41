"""Reports a sink's copy run while it copies: its progress, and the reason for its wait once there is nothing to
copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field

from confluent_kafka import Consumer

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_RUNNING, LAG_UNIT_RECORDS, CopyProgress
from keelman.connect import contract
from keelman.connect.plugin import Writer
from keelman.connect.watches import TopicWatch, Watch
from keelman.engine.idle import Idle
from keelman.engine.own_metrics import OwnMetrics
from keelman.engine.progress import Progress
from keelman.engine.reporter import RunReporter
from keelman.engine.sink.commits import SinkCommits
from keelman.engine.sink.consumer.subscription import Subscription
from keelman.engine.sink.missing_topics import MissingTopics
from keelman.engine.sink.positions.positions import Positions
from keelman.engine.sink.positions.source_topics import KEEP_SECONDS, SourceTopics


@dataclass(slots=True)
class SinkReports:
    """Reports one run of one sink task; its thread alone uses it."""

    reporter: RunReporter
    _: KW_ONLY
    consumer: Consumer
    writer: Writer
    subscription: Subscription
    missing: MissingTopics
    topics: SourceTopics
    positions: Positions
    commits: SinkCommits
    progress: Progress
    idle: Idle
    watch_properties: Mapping[str, str]
    """The properties of the client that watches the topics of a parked task."""
    _metrics: OwnMetrics = field(init=False)
    _waits_for: str = ""
    _watch: Watch | None = None

    def __post_init__(self) -> None:
        self._metrics = OwnMetrics(self.writer.metrics)

    def message(self) -> CopyProgress:
        """The progress as it is now."""
        message = self.progress.message(self.positions.lag(self.consumer), LAG_UNIT_RECORDS)
        self._metrics.add_to(message)
        message.set_aside.update(contract.ASIDE.of(self.writer.aside))
        return message

    def report(self) -> None:
        """Reports the progress, the watch and the reason for a wait, if any of them has changed."""
        watch = self._parkable()
        waits_for = self.missing.waits_for() or contract.WAITS_FOR.of(self.writer.waits_for) or ""
        other = self._metrics.news() or watch != self._watch or waits_for != self._waits_for
        if other or self.progress.news(self.positions.lag(self.consumer)):
            self._watch, self._waits_for = watch, waits_for
            self.reporter.report(COPY_RUN_STATE_RUNNING, message=waits_for, progress=self.message(), watch=watch)

    def _parkable(self) -> Watch | None:
        """Returns the watch to wait for once all is read and committed. All topics must exist, since a new topic is no
        topic's end."""
        if not self.idle.may_park or not self.commits.settled:
            return None
        ends = self.positions.at_ends(self.consumer)
        if ends is None or (self._watch is None and not self.subscription.complete(self.consumer)):
            return None
        if self._watch is None and self.topics.changed(KEEP_SECONDS):  # the ids are of the topics that were read
            return None
        return TopicWatch(self.watch_properties, ends, self.topics.known)

"""Has what a sink's consumer reads written and committed, at the pace that is allowed, until ordered to drain."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_DRAINING
from keelman.connect import contract
from keelman.connect.plugin import Writer
from keelman.connect.records import TopicPartition
from keelman.engine.control import Control, GaveUp
from keelman.engine.failure import RunFailure, judge_kafka
from keelman.engine.idle import Idle
from keelman.engine.progress import Progress
from keelman.engine.reporter import RunReporter
from keelman.engine.sink.assignment import SinkAssignment
from keelman.engine.sink.batch import split_errors
from keelman.engine.sink.commits import SinkCommits
from keelman.engine.sink.pipeline import SinkPipeline
from keelman.engine.sink.polling import Polling
from keelman.engine.sink.positions import Positions
from keelman.engine.sink.relocation import LOST
from keelman.engine.sink.reports import SinkReports
from keelman.engine.sink.source_topics import KEEP_SECONDS, READ_SECONDS, SourceTopics
from keelman.engine.sink.steering import Steering
from keelman.engine.sink.subscription import Subscription

POLL_SECONDS = 0.1
# A longer wait for a limit goes on polling, with its partitions paused: pausing drops what was fetched ahead.
SHORT_REST_SECONDS = 0.5
IDLE_SECONDS = 1.0
"""A writer hears so often that there is nothing to write."""


class _Moved(Exception):
    """What was read is not what is to be written next."""


class SinkLoop:
    """Of one run of one sink task; its thread alone uses it."""

    def __init__(
        self,
        control: Control,
        reporter: RunReporter,
        *,
        consumer: Consumer,
        subscription: Subscription,
        polling: Polling,
        writer: Writer,
        pipeline: SinkPipeline,
        positions: Positions,
        commits: SinkCommits,
        assignment: SinkAssignment,
        steering: Steering,
        topics: SourceTopics,
        reports: SinkReports,
        progress: Progress,
        idle: Idle,
        most_records: int,
        interval_seconds: float,
        log: Any,
    ) -> None:
        """`most_records` are read at a time; a commit is due each `interval_seconds`."""
        self._control = control
        self._reporter = reporter
        self._consumer = consumer
        self._subscription = subscription
        self._polling = polling
        self._writer = writer
        self._pipeline = pipeline
        self._positions = positions
        self._commits = commits
        self._assignment = assignment
        self._steering = steering
        self._topics = topics
        self._reports = reports
        self._progress = progress
        self._idle = idle
        self._most = most_records
        self._interval = interval_seconds
        self._log = log
        self._called_at = time.monotonic()

    def run(self) -> None:
        """Copies until drained, and commits the rest. Raises CutShort when cut, anything else when it failed."""
        commits = self._commits
        committed_at, all_read = time.monotonic(), False
        while not self._control.draining:
            self._control.beat()
            self._check_topics(all_read=all_read)
            try:
                all_read = self._step()
                self._assignment.follow()
                now = time.monotonic()
                if now - committed_at >= self._interval or self._writer.full:
                    committed_at = now
                    commits.commit()
                    self._assignment.follow()
                elif all_read and commits.records and self._writer.hides_until_commit and commits.may_commit():
                    commits.keep()
            except GaveUp:  # drained, or the batch was another's by the time it could be taken
                continue
            if self._reporter.due():
                self._subscription.refresh(self._consumer)
                self._reports.report()
        self._reporter.report(COPY_RUN_STATE_DRAINING)
        commits.finish()

    def _check_topics(self, *, all_read: bool) -> None:
        """Raises RunFailure where a topic was created again: the next run decides where to begin in it.

        What was taken of the former one is kept; what was read since it was last seen may be of either."""
        unkept = self._commits.unkept
        quiet = all_read and unkept and self._topics.doubtful
        changed = self._topics.changed(KEEP_SECONDS if quiet else READ_SECONDS)
        if changed:
            if unkept and self._writer.keeps_offsets:
                self._commits.keep()
            raise RunFailure("TOPIC_RECREATED", changed)

    def _step(self) -> bool:
        """Reads and writes a batch, or waits a little for a limit; whether all that was there is written."""
        wait = self._control.must_wait()
        if wait <= 0:
            self._polling.resume()
            return self._read(
                min(self._control.pace.most_records_of(self._writer.most_bytes) or self._most, self._most)
            )
        if wait > SHORT_REST_SECONDS:
            self._polling.pause()
        if self._polling.paused:
            self._read(1)
        else:
            self._control.wait(wait)
        return False

    def _read(self, most: int) -> bool:
        """Whether it found less than it asked for."""
        wait = 0 if self._commits.records and self._writer.hides_until_commit else POLL_SECONDS
        messages = self._polling.read(most, wait)
        if messages is None:  # the rebalance committed without what was read before it
            self._assignment.begin_again()
            return False
        self._take(messages)
        if self._positions and time.monotonic() - self._called_at >= IDLE_SECONDS:
            self._called_at = time.monotonic()
            contract.IDLE.of(self._writer.idle)
        return len(messages) < most

    def _take(self, messages: list[Message]) -> None:
        records, errors = split_errors(messages)
        if records:
            self._write(records)
        if errors or not records:
            self._commits.settle()
        for message, error in errors:  # after the records: a partition's end may come with its last ones
            self._take_error(message, error)

    def _write(self, messages: list[Message]) -> None:
        if not self._progress.left:  # to write may take for ever
            self._reports.report()
        last = self._positions.last_of_each(messages)
        if self._writer.keeps_offsets:
            self._positions.check(messages, last)
        self._topics.taken()
        self._steering.take_moved()
        try:
            records, size = self._pipeline.put(messages, self._writer, self._settle_before)
        except _Moved:
            self._assignment.go_on()
            return
        self._called_at = time.monotonic()
        self._commits.hand(last, len(messages), records, size)
        if not self._writer.writes_behind:
            self._commits.settle()
        self._idle.copied()
        self._control.pace.spend(len(messages), size)

    def _settle_before(self) -> None:
        """Raises _Moved where the task does not want what was read meanwhile."""
        self._commits.settle()
        if self._steering.take_moved():
            raise _Moved

    def _take_error(self, message: Message, error: KafkaError) -> None:
        if error.code() in LOST:
            self._assignment.relocate(TopicPartition(message.topic(), message.partition()), error)
        elif error.code() != KafkaError._PARTITION_EOF:
            reason, retriable = judge_kafka(error)
            if is_fatal(error) or reason == "FENCED" or not retriable:
                raise KafkaException(error)
            self._log.warning("consumer_trouble", error=error.str())
        elif self._positions.reached(TopicPartition(message.topic(), message.partition()), message.offset()):
            self._commits.advanced()


def is_fatal(error: KafkaError) -> bool:
    """Whether the client is of no further use. Of an error that comes in place of a message only its code says so."""
    return bool(error.fatal()) or error.code() == KafkaError._FATAL

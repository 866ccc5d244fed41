"""Writes and commits the records that a sink's consumer reads, within its rate limits, until ordered to drain."""

from __future__ import annotations

import math
import time
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_DRAINING
from keelman.connect import contract
from keelman.connect.plugin import Writer
from keelman.connect.records import TopicPartition
from keelman.engine.control import Control, GaveUp
from keelman.engine.failure import NOT_ALLOWED, RunFailure, judge_kafka
from keelman.engine.idle import Idle
from keelman.engine.progress import Progress
from keelman.engine.reporter import RunReporter
from keelman.engine.sink.assignment import SinkAssignment
from keelman.engine.sink.batch import split_errors
from keelman.engine.sink.commits import SinkCommits
from keelman.engine.sink.consumer.own_consumer import OwnRecords
from keelman.engine.sink.consumer.subscription import Subscription
from keelman.engine.sink.missing_topics import MissingTopics
from keelman.engine.sink.pipeline import SinkPipeline
from keelman.engine.sink.polling import Polling
from keelman.engine.sink.positions.positions import Positions
from keelman.engine.sink.positions.relocation import LOST
from keelman.engine.sink.positions.source_topics import KEEP_SECONDS, READ_SECONDS, SourceTopics
from keelman.engine.sink.reports import SinkReports
from keelman.engine.sink.steering import Steering

POLL_SECONDS = 0.1
# In a longer wait for a limit the loop polls with its partitions paused: pausing drops prefetched records.
SHORT_REST_SECONDS = 0.5


class _Moved(Exception):
    """The position has moved: the records just read are not the next to write."""


@dataclass(slots=True)
class SinkLoop:
    """The loop of one run of one sink task; its thread alone uses it. A read takes at most `most_records`;
    `group` is the consumer's."""

    control: Control
    reporter: RunReporter
    _: KW_ONLY
    consumer: Consumer
    subscription: Subscription
    polling: Polling
    writer: Writer
    pipeline: SinkPipeline
    positions: Positions
    commits: SinkCommits
    assignment: SinkAssignment
    steering: Steering
    topics: SourceTopics
    missing: MissingTopics
    reports: SinkReports
    progress: Progress
    idle: Idle
    most_records: int
    group: str
    log: Any
    _called_at: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Copies until drained, and commits the rest. Raises CutShort when cut, any other error when it failed."""
        commits = self.commits
        all_read = False
        while not self.control.draining:
            self.control.beat()
            self._check_topics(all_read=all_read)
            try:
                all_read = self._step()
                hidden = all_read and commits.records and self.writer.hides_until_commit
                if not commits.commit_when_due() and hidden and commits.may_commit():
                    commits.keep()
                self.assignment.follow()
            except GaveUp:  # drained, or the batch went to another task before the writer could take it
                continue
            self.subscription.refresh(self.consumer)
            if self.reporter.due():
                self.reports.report()
        self.reporter.report(COPY_RUN_STATE_DRAINING)
        commits.finish()

    def _check_topics(self, *, all_read: bool) -> None:
        """Raises RunFailure where a topic was created again: the next run decides where to begin in it.

        Keeps the offsets of records taken from the former topic; records read since its last check may be of either."""
        unkept = self.commits.unkept
        quiet = all_read and unkept and self.topics.doubtful
        changed = self.topics.changed(KEEP_SECONDS if quiet else READ_SECONDS)
        if changed:
            if unkept and self.writer.keeps_offsets:
                self.commits.keep()
            raise RunFailure("TOPIC_RECREATED", changed)

    def _step(self) -> bool:
        """Reads and writes a batch, or waits briefly for a limit. Returns whether all available records are written."""
        wait = self.control.must_wait()
        if wait <= 0:
            self.polling.resume()
            return self._read(
                min(self.control.pace.most_records_of(self.writer.most_bytes) or self.most_records, self.most_records)
            )
        if wait > SHORT_REST_SECONDS:
            self.polling.pause()
        if self.polling.paused:
            self._read(1)
        else:
            self.control.wait(wait)
        return False

    def _read(self, most: int) -> bool:
        """Reads and writes at most `most` records. Returns whether there were fewer."""
        wait = 0 if self.commits.records and self.writer.hides_until_commit else min(POLL_SECONDS, self._idle_in())
        messages = self.polling.read(most, wait)
        if messages is None:  # the rebalance committed without the records read before it
            self.assignment.begin_again()
            return False
        settled = self._take(messages)
        if self.positions and not (messages or settled) and self._idle_in() <= 0:
            contract.IDLE.of(self.writer.idle)
            self._called_at = time.monotonic()
        return len(messages) < most

    def _idle_in(self) -> float:
        """Returns the seconds until the writer's next idle call."""
        if not self.positions:
            return math.inf
        left = max(0.0, self._called_at + self.writer.idle_seconds - time.monotonic())
        return min(left, self.commits.clock.left_seconds) if self.writer.commits_on_time else left

    def _take(self, messages: list[Message] | OwnRecords) -> bool:
        """Writes the records and handles the errors. Returns whether the writer finished an earlier batch only now."""
        records, errors = split_errors(messages)
        if records:
            self._write(records)
        settled = bool(errors or not records) and self.commits.settle()
        if settled:
            self._called_at = time.monotonic()
        for message, error in errors:  # after the records: a partition's end may come with its last ones
            self._take_error(message, error)
        return settled

    def _write(self, messages: list[Message] | OwnRecords) -> None:
        if not self.progress.left:  # a write may take for ever
            self.reports.report()
        last = self.positions.last_of_each(messages)
        if self.writer.keeps_offsets:
            self.positions.check(messages, last)
        self.topics.taken()
        self.steering.take_moved()
        try:
            records, size = self.pipeline.put(messages, self.writer, self._settle_before)
        except _Moved:
            self.assignment.go_on()
            return
        self._called_at = time.monotonic()
        self.commits.hand(last, len(messages), records, size)
        if not self.writer.writes_behind:
            self.commits.settle()
        self.idle.copied()
        self.control.pace.spend(len(messages), size)

    def _settle_before(self) -> None:
        """Settles the earlier batch. Raises _Moved if the task sought elsewhere, so that the new batch is void."""
        self.commits.settle()
        if self.steering.take_moved():
            raise _Moved

    def _take_error(self, message: Message, error: KafkaError) -> None:
        if error.code() in LOST:
            self.assignment.relocate(TopicPartition(message.topic(), message.partition()), error)
        elif error.code() != KafkaError._PARTITION_EOF:
            reason, retriable = judge_kafka(error)
            if reason == NOT_ALLOWED:
                what = f"topic {message.topic()}" if message.topic() else f"group {self.group}"
                raise KafkaException(KafkaError(error.code(), f"{what}: {error.str()}"))
            if is_fatal(error) or reason == "FENCED" or not retriable:
                raise KafkaException(error)
            if message.topic():
                self.missing.suspect(message.topic())
            self.log.warning("consumer_trouble", error=error.str())
            if error.code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL:
                self.assignment.place.refused()
                self.control.wait(SHORT_REST_SECONDS)  # Java's consumer tries again at once
        elif self.positions.reached(TopicPartition(message.topic(), message.partition()), message.offset()):
            self.commits.advanced()


def is_fatal(error: KafkaError) -> bool:
    """Returns whether the client is unusable. An error that comes in place of a message shows that only by its code."""
    return bool(error.fatal()) or error.code() == KafkaError._FATAL

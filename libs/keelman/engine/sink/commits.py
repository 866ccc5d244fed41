"""Counts the records that a sink has written since its last commit, and commits: first its writer, then its group."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass

from confluent_kafka import Consumer

from keelman.connect import contract
from keelman.connect.plugin import Writer
from keelman.connect.records import TopicPartition
from keelman.engine.control import Control, GaveUp
from keelman.engine.failure import RunFailure
from keelman.engine.progress import Progress
from keelman.engine.sink.commit_clock import CommitClock
from keelman.engine.sink.pipeline import SinkPipeline
from keelman.engine.sink.polling import Polling
from keelman.engine.sink.positions.positions import LastMessages, Positions
from keelman.engine.sink.positions.source_topics import KEEP_SECONDS, SourceTopics
from keelman.runtime.logs.logging import get_logger

_log = get_logger()
ANSWER_SECONDS, AGAIN_SECONDS = 8.0, 0.5


@dataclass(frozen=True, slots=True)
class _Handed:
    """A batch that the writer has received, and may not have written yet."""

    last: LastMessages
    passed: int
    records: int
    size: int


@dataclass(slots=True)
class SinkCommits:
    """Commits one run of one sink task; its thread alone uses it. Its methods raise RunFailure, KafkaException, and
    what the writer raises."""

    control: Control
    _: KW_ONLY
    consumer: Consumer
    writer: Writer
    pipeline: SinkPipeline
    positions: Positions
    polling: Polling
    topics: SourceTopics
    progress: Progress
    clock: CommitClock
    unkept: bool = False
    """Whether the writer has something to commit."""
    records: int = 0
    """Good records since its last commit."""
    _unsent: bool = False
    _bytes: int = 0
    _passed: int = 0
    _handed: _Handed | None = None
    _settling: bool = False

    def hand(self, last: LastMessages, passed: int, records: int, size: int) -> None:
        """Notes a batch that the writer has received: `last` has the last message of each partition, `passed` counts
        all messages, `records` the good ones, `size` is the bytes of all. It counts as written once it is settled."""
        self._handed = _Handed(last, passed, records, size)

    def settle(self, *, last: bool = False) -> bool:
        """Waits until the writer's last batch is written, and counts it. Returns whether there was one. Raises GaveUp
        if the batch never will be written; with `last` no record may be retried."""
        handed = self._handed
        if handed is None or self._settling:
            return False
        skipped, self._settling = 0, True
        try:
            if self.writer.writes_behind:
                skipped = self.pipeline.settle(self.writer, last=last)
        except GaveUp:
            self._handed = None
            raise
        finally:
            self._settling = False
        self._handed = None
        self.positions.advance(handed.last)
        self.add(handed.passed, handed.records - skipped, handed.size)
        return True

    def add(self, passed: int, records: int, size: int) -> None:
        """Counts a written batch: `passed` messages, good records among them, and the bytes of all."""
        if self.writer.commits_on_time:  # that may be rare
            self.progress.count(records, size, passed=passed)
        else:
            self._passed += passed
            self.records += records
            self._bytes += size
        self.unkept = self._unsent = True

    def advanced(self) -> None:
        """Notes that a position advanced without a record, to its partition's end."""
        self.unkept = self._unsent = True

    @property
    def settled(self) -> bool:
        """Whether all written records are committed, by the writer and to the group."""
        return not (
            self._handed
            or self.unkept
            or self._unsent
            or self.positions.overdue
            or self.positions.in_flight
            or self.positions.held_back
        )

    def commit_when_due(self) -> bool:
        """Commits if that is due, or the writer is full. Returns whether it was. Raises GaveUp as `settle` does."""
        if self.clock.left_seconds > 0 and not self.writer.full:
            return False
        self.clock.restart()
        self.commit()
        return True

    def commit(self) -> None:
        """Commits the writer, then the group's offsets, with at most one group commit under way; does nothing if a
        rebalance has just committed everything. Raises GaveUp as `settle` does."""
        self.control.beat()
        self.settle()
        if not self.may_commit():
            return
        if self.unkept or self.positions.held_back or self.writer.commits_on_time:
            self.keep()
        if (self._unsent or self.positions.overdue) and not self.positions.in_flight and self.positions:
            self.send_group(asynchronous=True)

    def may_commit(self) -> bool:
        """Polls the group, and returns whether this task may still commit the records written since the last commit."""
        if self.writer.zombie_seconds <= 0:
            return True
        self.polling.check()
        return self.polling.attend()

    def keep(self, *, clean: bool = False, only: Collection[TopicPartition] | None = None) -> None:
        """Commits the writer; `clean` marks the last commit of a drained run, `only` are the only partitions
        revoked."""
        if self.unkept and self.writer.keeps_offsets:
            changed = self.topics.changed(KEEP_SECONDS)
            if changed and self.topics.doubtful:
                raise RunFailure("TOPIC_RECREATED", changed)
        self.pipeline.flush()
        contract.COMMIT.of(self.writer.commit, self.positions.kept(only), clean=clean)
        self.pipeline.flush()  # a writer may learn of bad records while it commits
        if self.positions.allow(contract.COMMITTABLE.of(self.writer.committable)):
            self._unsent = True
        self.progress.commit(self.records, self._bytes, self.positions.texts(), passed=self._passed)
        self.records = self._bytes = self._passed = 0
        self.unkept = only is not None

    def send_group(self, *, asynchronous: bool) -> None:
        """Commits to the group."""
        self.positions.send(self.consumer, asynchronous=asynchronous)
        self._unsent = False

    def finish(self) -> None:
        """Makes the last commits of a drained run: data and journal, the group, and the journal with the group's
        offsets."""
        with suppress(GaveUp):
            self.settle()
        if self.positions:
            self.commit()
            self._await_group()
        if not self.writer.commits_on_time:
            self._keep_last()
        contract.HAND_OVER.of(self.writer.hand_over)

    def finish_failed(self) -> None:
        """Commits the records written before a failure, as Kafka Connect does: calls the task's preCommit before its
        close."""
        if not (self.writer.commits_on_time and self.positions):
            return
        self._handed = None
        try:
            self.keep()
            if self._unsent:
                self.send_group(asynchronous=True)
                self._await_group()
        except Exception as error:
            _log.warning("commit_after_failure_failed", error=repr(error))

    def _keep_last(self) -> None:
        if self.positions and not self.positions.mirrored:
            self.send_group(asynchronous=True)
            self._await_group()
        if self.positions:
            self.keep(clean=True)
            if self._unsent:
                self.send_group(asynchronous=True)
                self._await_group()
        else:
            contract.COMMIT.of(self.writer.commit, {}, clean=True)

    def forget(self) -> None:
        """Forgets partitions that are no longer assigned, with all their uncommitted records."""
        self.polling.forget()
        self.positions.forget()
        self._handed = None
        self.unkept = self._unsent = False

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forgets these partitions, which are fully committed; others stay."""
        self.polling.release(partitions)
        self.positions.drop(partitions)

    def _await_group(self) -> None:
        """Waits for the commit that is under way, and repeats it after a passing failure; records consumed meanwhile
        are dropped and will be read again."""
        self.consumer.pause(self.positions.partitions())
        begun = sent = time.monotonic()
        while (self.positions.in_flight or self.positions.overdue) and time.monotonic() < begun + ANSWER_SECONDS:
            self.control.beat()
            self.consumer.poll(0.05)
            if self.positions.overdue and not self.positions.in_flight and time.monotonic() >= sent + AGAIN_SECONDS:
                sent = time.monotonic()
                self.send_group(asynchronous=True)

"""Copies one sink task: consume, convert, write, commit the writer and then the group.

An exactly-once sink reads read_committed unless `consumer.override.isolation.level` says otherwise. A transactional
source that died in the middle of a transaction leaves its records in the log as aborted and writes them again; to read
them uncommitted would put them into the sink twice, and no care of the sink's own could undo that.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from keelman.api.copy.v1.copy_run_pb2 import (
    COPY_RUN_STATE_DRAINING,
    COPY_RUN_STATE_FENCED,
    COPY_RUN_STATE_RUNNING,
    LAG_UNIT_RECORDS,
)
from keelman.api.copy.v1.ticket_pb2 import DELIVERY_GUARANTEE_EXACTLY_ONCE, StartTicket
from keelman.connect import contract
from keelman.connect.plugin import Connector, Writer
from keelman.connect.records import TopicPartition
from keelman.connect.watches import TopicWatch, Watch
from keelman.engine.clients import with_token
from keelman.engine.control import Control, GaveUp
from keelman.engine.failure import BROKER_REFUSED, RunFailure, judge_kafka
from keelman.engine.idle import Idle, park_after_seconds
from keelman.engine.progress import Progress
from keelman.engine.reporter import RunReporter
from keelman.engine.sink.batch import sorted_out
from keelman.engine.sink.consumer import (
    close_soon,
    lapse_seconds,
    most_records,
    sink_consumer_properties,
    watch_properties,
)
from keelman.engine.sink.pipeline import SinkPipeline
from keelman.engine.sink.place import Place
from keelman.engine.sink.polling import Polling
from keelman.engine.sink.positions import Positions
from keelman.engine.sink.relocation import LOST, Reset, goes_on_at
from keelman.engine.sink.source_topics import KEEP_SECONDS, READ_SECONDS, SourceTopics
from keelman.engine.sink.start import Beginnings
from keelman.engine.sink.subscription import Subscription
from keelman.engine.source.boundary import commit_interval_seconds
from keelman.runtime.logs.logging import get_logger

POLL_SECONDS = 0.1
ANSWER_SECONDS = 8.0
# A longer wait for a limit goes on polling, with its partitions paused: pausing drops what was fetched ahead.
SHORT_REST_SECONDS = 0.5

_log = get_logger()


class SinkCopy:
    """One run of one sink task. Made and run in the run's own thread."""

    _consumer: Consumer
    _writer: Writer
    _polling: Polling
    _reset: Reset

    def __init__(
        self, ticket: StartTicket, connector: type[Connector], control: Control, reporter: RunReporter
    ) -> None:
        """Raises ConfigValueError when a converter, the topics or an interval is not legal."""
        self._ticket = ticket
        self._connector = connector
        self._control = control
        self._reporter = reporter
        self._worker = dict(ticket.worker_config)
        self._config = {**ticket.connector_config, **ticket.task_config}
        self._exactly_once = ticket.delivery == DELIVERY_GUARANTEE_EXACTLY_ONCE
        self._interval = commit_interval_seconds(self._worker, self._config)
        self._most = most_records(self._worker, self._config)
        self._pipeline = SinkPipeline(
            ticket.connector, ticket.task, self._worker, self._config, control, on_wait=self._attend_in_batch
        )
        self._subscription = Subscription(self._config)
        self._place = Place(self._worker, self._config, ticket.connector, ticket.task)
        self._topics = SourceTopics(watch_properties(self._worker, self._config), control.beat)
        self._beginnings = Beginnings(self._worker, self._config, ticket.connector, self._topics)
        self._idle = Idle(park_after_seconds(self._worker, self._config))
        self._progress = Progress(bad=self._pipeline.counts)
        self._positions = Positions()
        reporter.topics = self._positions.topics
        self._log = _log.bind(connector=ticket.connector, task=ticket.task)
        self._watch: Watch | None = None
        self._starts: dict[tuple[str, int], int] = {}
        self._unkept = self._unsent = self._in_batch = False
        self._records = self._bytes = self._passed = 0

    def run(self) -> None:
        """Copies until drained. Raises CutShort when cut, anything else when it failed."""
        with ExitStack() as stack:
            self._reporter.tell(COPY_RUN_STATE_FENCED)
            if self._control.await_confirmation() is None:
                return
            stack.callback(self._pipeline.close)
            task = self._pipeline.task()
            self._writer = contract.OPEN_WRITER.of(
                self._connector.open_task_writer, self._config, task, exactly_once=self._exactly_once
            )
            stack.callback(self._writer.close)
            self._pipeline.open(self._writer)
            properties = self._properties()
            self._reset = Reset(properties)
            self._consumer = Consumer(with_token(properties, self._control.beat))
            stack.callback(close_soon, self._consumer)
            stack.callback(self._topics.close)
            self._polling = Polling(self._consumer, self._positions, lapse_seconds(properties))
            self._subscription.begin(self._consumer, self._assigned, self._revoked, self._lost)
            self._reporter.tell(COPY_RUN_STATE_RUNNING, progress=self._message())
            try:
                self._copy()
            except BaseException:
                self._reporter.final_progress = self._message()
                self._forget()  # closing revokes; nothing may be committed after a failure
                raise

    def _properties(self) -> dict[str, Any]:
        properties = sink_consumer_properties(
            self._worker,
            self._config,
            self._ticket.connector,
            self._ticket.task,
            read_committed=self._exactly_once,
            zombie_seconds=self._writer.zombie_seconds,
        )
        return {**properties, "on_commit": self._positions.answered, "error_cb": self._client_error}

    def _copy(self) -> None:
        committed_at, all_read = time.monotonic(), False
        while not self._control.draining:
            self._control.beat()
            self._check_topics(all_read=all_read)
            try:
                all_read = self._step()
            except GaveUp:  # drained, or the batch was another's by the time it could be taken
                continue
            now = time.monotonic()
            if now - committed_at >= self._interval or self._writer.full:
                self._commit()
                committed_at = now
            elif all_read and self._records and self._writer.hides_until_commit and self._attended():
                self._keep()
            if self._reporter.due():
                self._subscription.refresh(self._consumer)
                self._tell()
        self._reporter.tell(COPY_RUN_STATE_DRAINING)
        self._finish()
        self._reporter.final_progress = self._message()
        self._forget()

    def _check_topics(self, *, all_read: bool) -> None:
        """Raises RunFailure where a topic was created again: the next run decides where to begin in it.

        What was taken of the former one is kept; what was read since it was last seen may be of either."""
        quiet = all_read and self._unkept and self._topics.doubtful
        changed = self._topics.changed(KEEP_SECONDS if quiet else READ_SECONDS)
        if changed:
            if self._unkept and self._writer.keeps_offsets:
                self._keep()
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
        wait = 0 if self._records and self._writer.hides_until_commit else POLL_SECONDS
        messages = self._polling.read(most, wait)
        if messages is None:
            # The rebalance committed without what was read before it. All that was read is dropped and the assignment
            # begun again from what is committed.
            self._assigned(self._consumer, self._consumer.assignment())
            return False
        self._take(messages)
        return len(messages) < most

    def _take(self, messages: list[Message]) -> None:
        records, told = sorted_out(messages)
        if records:
            self._write(records)
        for message, error in told:  # after the records: a partition's end may come with its last ones
            self._take_error(message, error)

    def _write(self, messages: list[Message]) -> None:
        if not self._progress.left:  # to write may take for ever
            self._tell()
        last = self._positions.last_of_each(messages)
        if self._writer.keeps_offsets:
            self._positions.check(messages, last)
        self._topics.taken()
        self._in_batch = True
        try:
            records, size = self._pipeline.put(messages, self._writer)
        finally:
            self._in_batch = False
        self._positions.advance(last)
        self._passed += len(messages)
        self._records, self._bytes = self._records + records, self._bytes + size
        self._unkept = self._unsent = True
        self._idle.copied()
        self._control.pace.spend(len(messages), size)

    def _take_error(self, message: Message, error: KafkaError) -> None:
        if error.code() in LOST:
            self._relocate(TopicPartition(message.topic(), message.partition()), error)
        elif error.code() != KafkaError._PARTITION_EOF:
            reason, retriable = judge_kafka(error)
            if _is_fatal(error) or reason == "FENCED" or not retriable:
                raise KafkaException(error)
            self._log.warning("consumer_trouble", error=error.str())
        elif self._positions.reached(TopicPartition(message.topic(), message.partition()), message.offset()):
            self._unkept = self._unsent = True

    def _relocate(self, where: TopicPartition, error: KafkaError) -> None:
        """Goes on where the log still has what was not taken. Raises RunFailure where it has lost what was kept with
        the data: the next run decides by that."""
        if where not in self._positions:
            return
        due, epoch = self._positions.due(where)
        found = self._beginnings.found(self._consumer, where, epoch)
        at = None if due is None else goes_on_at(due, found)
        if due is not None and at is not None and at < due and self._writer.keeps_offsets:
            raise RunFailure("LOG_TRUNCATED", f"partition {where} was truncated to {at}, and {due} was to be read next")
        self._log.warning("source_position_lost", partition=str(where), offset=due, goes_on=at, why=error.str())
        if at is None:
            at = found.end if self._reset.offset(str(where), error.str()) == OFFSET_END else found.begin
        self._positions.move(where, at)
        # The client does not seek in a partition that it has stopped to fetch.
        self._consumer.assign([self._at(one) for one in self._positions.partitions()])
        self._polling.forget()

    def _at(self, one: ClientPartition) -> ClientPartition:
        due, _ = self._positions.due(TopicPartition(one.topic, one.partition))
        return ClientPartition(one.topic, one.partition, self._starts[one.topic, one.partition] if due is None else due)

    def _commit(self) -> None:
        """Writer first, then the group, of which at most one commit is under way; nothing where a rebalance has just
        committed all of it."""
        self._control.beat()
        if not self._attended():
            return
        if self._unkept:
            self._keep()
        if self._unsent and not self._positions.in_flight and self._positions:
            self._send_group(asynchronous=True)

    def _attended(self) -> bool:
        """Whether what is written since the last commit is still this task's to commit: its group is asked first."""
        if self._writer.zombie_seconds <= 0:
            return True
        self._polling.check()
        return self._polling.attend()

    def _attend_in_batch(self) -> None:
        """Keeps the place in the group while a batch waits. Raises GaveUp when the batch is another's."""
        self._polling.attend_in_batch()

    def _keep(self, *, clean: bool = False) -> None:
        if self._unkept and self._writer.keeps_offsets:
            changed = self._topics.changed(KEEP_SECONDS)
            if changed and self._topics.doubtful:
                raise RunFailure("TOPIC_RECREATED", changed)
        self._pipeline.flush()
        contract.COMMIT.of(self._writer.commit, self._positions.kept(), clean=clean)
        self._progress.commit(self._records, self._bytes, self._positions.texts(), passed=self._passed)
        self._records = self._bytes = self._passed = 0
        self._unkept = False

    def _send_group(self, *, asynchronous: bool) -> None:
        self._positions.send(self._consumer, asynchronous=asynchronous)
        self._unsent = False

    def _finish(self) -> None:
        """The last commits of a drained run: data and journal, the group, and the journal again with the group's."""
        if self._positions:
            self._commit()
            self._await_group()
        if self._positions and not self._positions.mirrored:
            self._send_group(asynchronous=True)
            self._await_group()
        if self._positions:
            self._keep(clean=True)
        else:
            contract.COMMIT.of(self._writer.commit, {}, clean=True)
        contract.HAND_OVER.of(self._writer.hand_over)

    def _await_group(self) -> None:
        """Waits for the commit that is under way; what is consumed meanwhile is dropped and will be read again."""
        self._consumer.pause(self._positions.partitions())
        deadline = time.monotonic() + ANSWER_SECONDS
        while self._positions.in_flight and time.monotonic() < deadline:
            self._control.beat()
            self._consumer.poll(0.05)

    def _assigned(self, consumer: Consumer, partitions: list[ClientPartition]) -> None:
        if self._place.given_up(consumer, self._subscription, partitions):
            return
        begun = self._beginnings.of(consumer, self._writer, partitions)
        self._forget()
        self._topics.begin({one.where.topic: one.topic_id for one in begun})
        chosen = []
        for one in begun:
            start = one.start.offset
            self._positions.begin(one.where, one.group.shown, start, one.topic_id, one.leader_epoch)
            if start is None:
                nothing = "its group has no offset"
                start = OFFSET_BEGINNING if one.start.from_beginning else self._reset.offset(str(one.where), nothing)
            chosen.append(ClientPartition(*one.where, start))
        self._starts = {(one.topic, one.partition): one.offset for one in chosen}
        consumer.assign(chosen)
        self._positions.assigned = True
        self._progress.changed = True

    def _revoked(self, _consumer: Consumer, _partitions: list[ClientPartition]) -> None:
        if self._in_batch:  # which waits for something, and will be another's
            self._pipeline.give_up()
        if self._positions:
            self._keep()
            self._send_group(asynchronous=False)
        if self._positions.assigned:
            contract.HAND_OVER.of(self._writer.hand_over)
        self._forget()

    def _lost(self, _consumer: Consumer, _partitions: list[ClientPartition]) -> None:
        """The group went on without us.

        A writer that nobody else can have taken over still keeps what it wrote. What others may have begun to write
        again must not be kept: the run ends, and its writer gives up what is not committed.
        """
        if self._writer.zombie_seconds > 0 and self._positions.assigned:
            self._forget()
            raise RunFailure("FENCED", "the group gave the task's partitions to others")
        if self._positions and self._writer.keeps_offsets:
            self._keep()
        self._forget()

    def _forget(self) -> None:
        self._positions.forget()
        self._polling.forget()
        self._unkept = self._unsent = False

    def _client_error(self, error: KafkaError) -> None:
        """Authentication and TLS failures are permanent: fails now, unless the consumer was assigned before."""
        refused = error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL)
        refused |= judge_kafka(error)[0] == BROKER_REFUSED
        if _is_fatal(error) or (refused and not self._positions.assigned):
            raise KafkaException(error)
        self._log.info("consumer_notice", error=error.str())

    def _tell(self) -> None:
        watch = self._parkable()
        if watch != self._watch or self._progress.news(self._positions.lag(self._consumer)):
            self._watch = watch
            self._reporter.tell(COPY_RUN_STATE_RUNNING, progress=self._message(), watch=watch)

    def _parkable(self) -> Watch | None:
        """What to wait for once all is read and committed. New topics are no topic's end, so they must all be there."""
        if not self._idle.may_park or self._unkept or self._unsent or self._positions.in_flight:
            return None
        ends = self._positions.at_ends(self._consumer)
        if ends is None or (self._watch is None and not self._subscription.complete(self._consumer)):
            return None
        return TopicWatch(watch_properties(self._worker, self._config), ends)

    def _message(self) -> Any:
        return self._progress.message(self._positions.lag(self._consumer), LAG_UNIT_RECORDS)


def _is_fatal(error: KafkaError) -> bool:
    """Whether the client is of no further use. Of an error that comes in place of a message only its code says so."""
    return bool(error.fatal()) or error.code() == KafkaError._FATAL

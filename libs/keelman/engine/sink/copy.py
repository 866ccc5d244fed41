"""Copies one sink task: consume, convert, write, commit the writer and then the group.

An exactly-once sink reads read_committed unless `consumer.override.isolation.level` changes that. A transactional
source that died in the middle of a transaction leaves its records in the log as aborted and writes them again; to read
them uncommitted would put them into the sink twice, and no care of the sink's own could undo that.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_FENCED, COPY_RUN_STATE_RUNNING
from keelman.api.copy.v1.ticket_pb2 import DELIVERY_GUARANTEE_EXACTLY_ONCE, StartTicket
from keelman.connect import contract
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Connector, Writer
from keelman.connect.policy.topics import InternalTopics
from keelman.connect.watches import TopicWatch
from keelman.engine.commit_interval import commit_interval_seconds, flush_seconds
from keelman.engine.control import Control
from keelman.engine.failure import BROKER_REFUSED, RunFailure, judge_kafka
from keelman.engine.idle import Idle, park_after_seconds
from keelman.engine.progress import Progress
from keelman.engine.reporter import RunReporter
from keelman.engine.sink.assignment import SinkAssignment
from keelman.engine.sink.commit_clock import CommitClock
from keelman.engine.sink.commits import SinkCommits
from keelman.engine.sink.consumer.consumer import (
    close_soon,
    lapse_seconds,
    library_consumer,
    metadata_age_seconds,
    most_records,
    own_consumer_properties,
    passed_over_assignors,
    sink_consumer_properties,
    watch_properties,
)
from keelman.engine.sink.consumer.own_consumer import BringsConsumer, ConsumerOrder
from keelman.engine.sink.consumer.place import ConsumerPlace
from keelman.engine.sink.consumer.subscription import Subscription
from keelman.engine.sink.loop import SinkLoop, is_fatal
from keelman.engine.sink.missing_topics import MissingTopics
from keelman.engine.sink.pipeline import SinkPipeline
from keelman.engine.sink.polling import Polling
from keelman.engine.sink.positions.positions import Positions
from keelman.engine.sink.positions.relocation import Reset
from keelman.engine.sink.positions.source_topics import SourceTopics
from keelman.engine.sink.positions.start import Beginnings
from keelman.engine.sink.reports import SinkReports
from keelman.engine.sink.steering import Steering
from keelman.engine.watches import topics_from_wire
from keelman.kafka.properties.connector_clients import merged, sink_group
from keelman.kafka.properties.table import ASSIGNMENT
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.tls.followed import stores_changed

_log = get_logger()


class SinkCopy:
    """One run of one sink task: opens all that it takes, in its order, and has a SinkLoop copy. Made and run in the
    run's own thread."""

    _polling: Polling
    _commits: SinkCommits

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
        self._flush_interval = flush_seconds(self._worker, self._config)
        self._most = most_records(self._worker, self._config)
        self._pipeline = SinkPipeline(
            *(ticket.connector, ticket.task, self._worker, self._config, control),
            converted=connector.converts,
            on_wait=self._attend_in_batch,
        )
        self._steering = Steering(control, self._pipeline, lambda: self._polling, lambda: self._commits)
        refresh_seconds = metadata_age_seconds(self._worker, self._config)
        self._subscription = Subscription(self._config, refresh_seconds, InternalTopics(self._worker).has)
        self._idle = Idle(park_after_seconds(self._worker, self._config))
        self._stores = self._stores_changed()
        self._positions = Positions()
        reporter.topics = self._positions.topics
        self._log = _log.bind(connector=ticket.connector, task=ticket.task)

    def run(self) -> None:
        """Copies until drained. Raises CutShort when cut, anything else when it failed."""
        with ExitStack() as last, ExitStack() as stack:
            self._reporter.report(COPY_RUN_STATE_FENCED)
            if self._control.await_confirmation() is None:
                return
            stack.callback(self._pipeline.close)
            writer = self._open_writer(stack)
            self._pipeline.open(writer)
            properties = self._properties(writer)
            reset = Reset(properties)
            if isinstance(writer, BringsConsumer):
                consumer = self._own_consumer(writer, properties)
                last.callback(close_soon, consumer)  # after its writer, which may use it to the last
            else:
                consumer = self._library_consumer(properties)
                stack.callback(close_soon, consumer)
            committed = properties["isolation.level"] == "read_committed"
            watched = watch_properties(self._worker, self._config)
            topics = SourceTopics(watched, self._control.beat, read_committed=committed)
            stack.callback(topics.close)
            self._polling = Polling(consumer, self._positions, lapse_seconds(properties))
            self._copy(consumer, writer, topics, reset)

    def _parked(self) -> TopicWatch | None:
        return topics_from_wire(self._ticket.parked) if self._ticket.HasField("parked") else None

    def _open_writer(self, stack: ExitStack) -> Writer:
        task = self._pipeline.task(dict(self._ticket.task_config), self._steering)
        writer = contract.OPEN_WRITER.of(
            self._connector.open_task_writer, self._config, task, exactly_once=self._exactly_once
        )
        stack.callback(writer.close)
        return writer

    def _properties(self, writer: Writer) -> dict[str, Any]:
        return sink_consumer_properties(
            self._worker,
            self._config,
            self._ticket.connector,
            self._ticket.task,
            read_committed=self._exactly_once,
            zombie_seconds=writer.zombie_seconds,
        )

    def _callbacks(self) -> dict[str, Any]:
        return {"on_commit": self._positions.answered, "error_cb": self._client_error}

    def _library_consumer(self, properties: dict[str, Any]) -> Consumer:
        if passed_over := passed_over_assignors(self._worker, self._config, properties):
            used = properties.get(ASSIGNMENT)
            self._log.warning("sink_assignors_passed_over", key=ASSIGNMENT, assignors=passed_over, used=used)
        return library_consumer({**properties, **self._callbacks()}, self._control.beat)

    def _own_consumer(self, writer: BringsConsumer, properties: dict[str, Any]) -> Consumer:
        consumer_properties = own_consumer_properties(self._worker, self._config, properties, self._most)
        order = ConsumerOrder(consumer_properties, self._positions.answered, self._client_error)
        return cast("Consumer", writer.open_consumer(order))

    def _client_error(self, error: KafkaError) -> None:
        """Authentication and TLS failures are permanent: fails now, unless the consumer was assigned before.

        The consumer reads its stores once: if their files were changed since, a new run reads them.
        """
        refused = error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL)
        refused |= judge_kafka(error)[0] == BROKER_REFUSED
        if refused and self._stores != self._stores_changed():
            raise RunFailure("BROKER_LOST", f"{error.str()}: key or trust store were changed: connects again")
        if is_fatal(error) or (refused and not self._positions.assigned):
            raise KafkaException(error)
        self._log.info("consumer_notice", error=error.str())

    def _stores_changed(self) -> tuple[int, ...]:
        return stores_changed(merged(self._worker, self._config, "consumer"))

    def _attend_in_batch(self) -> None:
        """Keeps the place in the group while a batch waits. Raises GaveUp when the batch is another's."""
        self._polling.attend_in_batch()

    def _copy(self, consumer: Consumer, writer: Writer, topics: SourceTopics, reset: Reset) -> None:
        progress = Progress(bad=self._pipeline.counts)
        commits = self._commits = SinkCommits(
            self._control,
            consumer=consumer,
            writer=writer,
            pipeline=self._pipeline,
            positions=self._positions,
            polling=self._polling,
            topics=topics,
            progress=progress,
            clock=CommitClock(self._flush_interval if writer.commits_on_time else self._interval),
        )
        assignment = SinkAssignment(
            consumer,
            writer=writer,
            pipeline=self._pipeline,
            positions=self._positions,
            polling=self._polling,
            commits=commits,
            topics=topics,
            beginnings=Beginnings(self._worker, self._config, self._ticket.connector, topics, self._parked()),
            place=ConsumerPlace(self._worker, self._config, self._ticket.connector, self._ticket.task),
            subscription=self._subscription,
            reset=reset,
            steering=self._steering,
            progress=progress,
            log=self._log,
        )
        missing = MissingTopics(self._subscription, self._positions, topics)
        reports = self._reports(consumer, writer, missing, topics, commits)
        loop = SinkLoop(
            self._control,
            self._reporter,
            consumer=consumer,
            subscription=self._subscription,
            polling=self._polling,
            writer=writer,
            pipeline=self._pipeline,
            positions=self._positions,
            commits=commits,
            assignment=assignment,
            steering=self._steering,
            topics=topics,
            missing=missing,
            reports=reports,
            progress=progress,
            idle=self._idle,
            most_records=self._most,
            group=sink_group(self._worker, self._config, self._ticket.connector),
            log=self._log,
        )
        assignment.subscribe()
        self._reporter.report(COPY_RUN_STATE_RUNNING, progress=reports.message())
        self._loop(loop, reports, commits)

    def _loop(self, loop: SinkLoop, reports: SinkReports, commits: SinkCommits) -> None:
        try:
            loop.run()
        except ConnectError:
            commits.finish_failed()
            raise
        finally:
            self._reporter.final_progress = reports.message()
            loop.assignment.end()

    def _reports(
        self, consumer: Consumer, writer: Writer, missing: MissingTopics, topics: SourceTopics, commits: SinkCommits
    ) -> SinkReports:
        return SinkReports(
            self._reporter,
            consumer=consumer,
            writer=writer,
            subscription=self._subscription,
            missing=missing,
            topics=topics,
            positions=self._positions,
            commits=commits,
            progress=commits.progress,
            idle=self._idle,
            watch_properties=watch_properties(self._worker, self._config),
        )

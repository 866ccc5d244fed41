"""Copies one source task: read, convert, produce, commit records and offsets together."""

from __future__ import annotations

import time
from contextlib import ExitStack

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_FENCED, COPY_RUN_STATE_RUNNING
from keelman.api.copy.v1.ticket_pb2 import DELIVERY_GUARANTEE_EXACTLY_ONCE, StartTicket
from keelman.connect import contract
from keelman.connect.offsets import CommittedOffsets
from keelman.connect.plugin import Connector, Reader
from keelman.connect.tasks.source_task import SourceTask
from keelman.engine.clients import admin_properties
from keelman.engine.control import Control
from keelman.engine.idle import Idle, park_after_seconds
from keelman.engine.own_metrics import OwnMetrics
from keelman.engine.producing.producer import RunProducer
from keelman.engine.producing.producer_options import producer_options
from keelman.engine.producing.transactions import AtLeastOnceProducer, TransactionalProducer, outlived
from keelman.engine.progress import Progress
from keelman.engine.reporter import ALL_READ, RunReporter
from keelman.engine.source.boundary import boundary_for
from keelman.engine.source.commits import SourceCommits
from keelman.engine.source.loop import SourceLoop
from keelman.engine.source.pipeline import SourcePipeline
from keelman.engine.source.read_position import ReadPosition
from keelman.engine.source.reports import SourceReports
from keelman.engine.source.split_plan import SplitPlan
from keelman.engine.source.worker_offsets import WorkerOffsets
from keelman.engine.topics import ensure_offset_topic
from keelman.kafka.batches.producer import ProduceFailure
from keelman.kafka.properties.connector_clients import merged


class SourceCopy:
    """One run of one source task: opens all that it takes, in its order, and has a SourceLoop copy. Made and run in the
    run's own thread."""

    def __init__(
        self, ticket: StartTicket, connector: type[Connector], control: Control, reporter: RunReporter
    ) -> None:
        """Raises ConfigValueError when a converter, the boundary or an interval is not legal."""
        self._ticket = ticket
        self._connector = connector
        self._control = control
        self._reporter = reporter
        self._worker = dict(ticket.worker_config)
        self._config = dict(connector.completed({**ticket.connector_config, **ticket.task_config}, self._worker))
        self._exactly_once = ticket.delivery == DELIVERY_GUARANTEE_EXACTLY_ONCE
        self._boundary = boundary_for(
            self._config,
            self._worker,
            time.monotonic,
            transactional=self._exactly_once,
            large_polls=connector.converts,
        )
        self._idle = Idle(park_after_seconds(self._worker, self._config))
        self._pipeline = SourcePipeline(ticket, self._worker, self._config, control, converted=connector.converts)

    def run(self) -> None:
        """Copies until drained. Raises CutShort when cut, anything else when it failed."""
        with ExitStack() as stack:
            producer = self._open_producer()
            stack.callback(producer.close)
            producer.fence()
            worker_offsets = self._prepare_offset_topics(producer, stack)
            self._reporter.report(COPY_RUN_STATE_FENCED)
            confirmation = self._control.await_confirmation()
            if confirmation is None:
                return
            committed = CommittedOffsets(self._ticket.connector, [(o.key, o.value) for o in confirmation.offsets])
            plan = self._split(producer, committed)
            reader = self._open_reader(producer, committed, stack)
            self._pipeline.open(producer, reader)
            self._copy(reader, producer, committed, plan, worker_offsets)

    def _open_producer(self) -> RunProducer:
        merged_config = merged(self._worker, self._config, "producer")
        client_id = f"connector-producer-{self._ticket.connector}-{self._ticket.task}"
        if not self._exactly_once:
            return AtLeastOnceProducer(producer_options(merged_config, client_id=client_id), self._control)
        options = producer_options(
            merged_config,
            client_id=client_id,
            transactional_id=self._ticket.transactional_id,
            transaction_seconds=self._boundary.timeout_seconds,
            delivery_seconds=self._boundary.delivery_seconds,
        )
        return TransactionalProducer(options, self._control, commits_when_full=self._boundary.kind == "poll")

    def _prepare_offset_topics(self, producer: RunProducer, stack: ExitStack) -> WorkerOffsets | None:
        """The connector's own offset topic, where it has one, is there before the worker looks into it; then the
        worker's is written, too."""
        if not self._ticket.worker_offset_topic:
            return None
        admin = admin_properties(self._worker, self._config)
        ensure_offset_topic(self._ticket.offset_topic, producer.partitions, admin, self._worker)
        client_id = f"connector-offsets-{self._ticket.connector}-{self._ticket.task}"
        properties = merged(self._worker, {}, "producer")
        worker_offsets = WorkerOffsets(
            self._ticket.worker_offset_topic, properties, self._control, self._ticket.connector, client_id
        )
        stack.callback(worker_offsets.close)
        return worker_offsets

    def _split(self, producer: RunProducer, committed: CommittedOffsets) -> SplitPlan | None:
        """Splits the task if its backlog is worth it; this run then copies one part."""
        if not self._exactly_once or self._ticket.bulk.part:
            return None
        plan = SplitPlan(self._ticket, producer, committed)
        self._config = dict(plan.split(self._connector, self._config))
        self._reporter.parts = plan.parts
        return plan

    def _open_reader(self, producer: RunProducer, committed: CommittedOffsets, stack: ExitStack) -> Reader:
        ticket = self._ticket
        task = SourceTask(
            connector=ticket.connector,
            task=ticket.task,
            config=dict(ticket.task_config),
            worker=self._worker,
            exactly_once=self._exactly_once,
            committed=committed,
            target=self._pipeline,
            beat=self._control.beat,
        )
        reader = contract.OPEN_READER.of(self._connector.open_task_reader, self._config, task, committed.offset)
        stack.callback(reader.close)
        reader.codec, reader.packs = producer.codec, self._pipeline.plain
        return reader

    def _copy(
        self,
        reader: Reader,
        producer: RunProducer,
        committed: CommittedOffsets,
        plan: SplitPlan | None,
        worker_offsets: WorkerOffsets | None,
    ) -> None:
        position = ReadPosition(reader)
        progress = Progress(bad=self._pipeline.counts)
        commits = SourceCommits(
            self._ticket.offset_topic,
            reader=reader,
            producer=producer,
            committed=committed,
            boundary=self._boundary,
            position=position,
            progress=progress,
            worker_offsets=worker_offsets,
        )
        part = bool(self._ticket.bulk.part or self._reporter.parts)
        reports = SourceReports(
            self._reporter,
            reader=reader,
            position=position,
            progress=progress,
            idle=self._idle,
            metrics=OwnMetrics(reader.metrics),
            part=part,
        )
        loop = SourceLoop(
            self._control,
            self._reporter,
            reader=reader,
            pipeline=self._pipeline,
            producer=producer,
            boundary=self._boundary,
            position=position,
            commits=commits,
            reports=reports,
            idle=self._idle,
        )
        self._reporter.report(COPY_RUN_STATE_RUNNING, progress=reports.message())
        try:
            commits.write_again()
            loop.run()
            if plan is not None and self._control.whole:
                plan.take_back()
            self._reporter.final_progress = reports.message()
            if commits.finished:
                self._reporter.end_reason = ALL_READ
        except BaseException as error:
            self._reporter.final_progress = reports.message()
            producer.abort()
            age = self._boundary.age
            if commits.open and age >= producer.open_seconds and isinstance(error, ProduceFailure):
                raise outlived(age, producer.open_seconds) from error
            raise

"""Copies one source task: read, convert, produce, commit records and offsets together."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from keelman.api.copy.v1.copy_run_pb2 import (
    COPY_RUN_STATE_DRAINING,
    COPY_RUN_STATE_FENCED,
    COPY_RUN_STATE_RUNNING,
    LAG_UNIT_BYTES,
    LAG_UNIT_RECORDS,
)
from keelman.api.copy.v1.ticket_pb2 import DELIVERY_GUARANTEE_EXACTLY_ONCE, StartTicket
from keelman.connect import contract
from keelman.connect.offsets import CommittedOffsets, identity
from keelman.connect.plugin import Connector, Reader
from keelman.connect.records import Offset, Partition, SourceBatch
from keelman.connect.watches import Watch
from keelman.engine.clients import admin_properties
from keelman.engine.control import Control, GaveUp
from keelman.engine.idle import Idle, park_after_seconds
from keelman.engine.idle_poller import IDLE_POLLER
from keelman.engine.progress import Progress
from keelman.engine.reporter import ALL_READ, RunReporter
from keelman.engine.source.boundary import Act, boundary_for
from keelman.engine.source.pipeline import SourcePipeline
from keelman.engine.source.producer import RunProducer
from keelman.engine.source.producer_options import producer_options
from keelman.engine.source.split_plan import Plan
from keelman.engine.source.transactions import AtLeastOnceProducer, TransactionalProducer
from keelman.engine.source.worker_offsets import WorkerOffsets
from keelman.engine.topics import ensure_offset_topic
from keelman.kafka.properties.connector_clients import merged

SHORT_REST_SECONDS = 0.02
LONGEST_REST_SECONDS = 0.5
LAG_UNITS = {"bytes": LAG_UNIT_BYTES, "records": LAG_UNIT_RECORDS}


class ReadPosition:
    """Of one run of one source task; its thread alone uses it.

    A reader goes on from what it has read, the next run from what is committed: what is between the two is still left.
    """

    _reader: Reader

    def __init__(self) -> None:
        self._unsent: int | None = 0
        self._sent = 0

    def open(self, reader: Reader) -> None:
        """Whose it is."""
        self._reader = reader

    def read(self, batch: SourceBatch) -> None:
        """A batch was read: it is sent next, or given up, and then it is the last one."""
        self._unsent = self._taken(batch)

    def sent(self, written: int) -> None:
        """It has gone to the producer, as so many bytes of keys and values."""
        self._sent += written if self._unsent is None else self._unsent
        self._unsent = 0

    def committed(self) -> int:
        """What was sent is committed: how much it took of what the reader had left."""
        sent, self._sent = self._sent, 0
        return sent

    def lag(self) -> int | None:
        """What is left behind the committed positions; None when the reader does not know what it has left."""
        left = contract.LEFT.of(self._reader.left)
        return None if left is None else left + self._sent + (self._unsent or 0)

    def _taken(self, batch: SourceBatch) -> int | None:
        """What it has taken of the lag; None for as many bytes as will be written."""
        if batch.passed is not None:
            return batch.passed
        if self._reader.lag_unit == "bytes":
            return None
        return sum(one.records for one in batch.packed) or len(batch.values.values)


class SourceCopy:
    """One run of one source task. Made and run in the run's own thread."""

    _producer: RunProducer
    _reader: Reader
    _committed: CommittedOffsets

    def __init__(
        self, ticket: StartTicket, connector: type[Connector], control: Control, reporter: RunReporter
    ) -> None:
        """Raises ConfigValueError when a converter, the boundary or an interval is not legal."""
        self._ticket = ticket
        self._connector = connector
        self._control = control
        self._reporter = reporter
        config, worker = dict(ticket.connector_config), dict(ticket.worker_config)
        self._config = {**config, **ticket.task_config}
        self._worker = worker
        self._exactly_once = ticket.delivery == DELIVERY_GUARANTEE_EXACTLY_ONCE
        self._boundary = boundary_for(self._config, worker, time.monotonic, transactional=self._exactly_once)
        self._idle = Idle(park_after_seconds(worker, self._config))
        self._pipeline = SourcePipeline(ticket, worker, self._config, control)
        self._progress = Progress(bad=self._pipeline.counts)
        self._position = ReadPosition()
        self._pending: dict[str, tuple[Partition, Offset | None]] = {}
        self._open = False
        self._gave_up = False
        self._records = 0
        self._bytes = 0
        self._waits_for = ""
        self._watch: Watch | None = None
        self._worker_offsets: WorkerOffsets | None = None
        self._plan: Plan | None = None

    def run(self) -> None:
        """Copies until drained. Raises CutShort when cut, anything else when it failed."""
        with ExitStack() as stack:
            self._producer = producer = self._open_producer()
            stack.callback(producer.close)
            producer.fence()
            self._prepare_offset_topics(stack)
            self._reporter.tell(COPY_RUN_STATE_FENCED)
            confirmation = self._control.await_confirmation()
            if confirmation is None:
                return
            records = [(o.key, o.value) for o in confirmation.offsets]
            self._committed = CommittedOffsets(self._ticket.connector, records)
            if self._exactly_once and not self._ticket.bulk.part:
                self._plan = Plan(self._ticket, producer, self._committed)
                self._config = dict(self._plan.split(self._connector, self._config))
                self._reporter.parts = self._plan.parts
            self._reader = contract.OPEN_READER.of(self._connector.open_reader, self._config, self._committed.offset)
            stack.callback(self._reader.close)
            self._reader.codec, self._reader.packs = producer.codec, self._pipeline.plain
            self._pipeline.open(producer, self._reader)
            self._position.open(self._reader)
            self._reporter.tell(COPY_RUN_STATE_RUNNING, progress=self._message())
            try:
                self._write_again()
                self._copy()
            except BaseException:
                self._reporter.final_progress = self._message()
                producer.abort()
                raise

    def _open_producer(self) -> RunProducer:
        given = merged(self._worker, self._config, "producer")
        client_id = f"connector-producer-{self._ticket.connector}-{self._ticket.task}"
        if not self._exactly_once:
            return AtLeastOnceProducer(producer_options(given, client_id=client_id), self._control)
        options = producer_options(
            given,
            client_id=client_id,
            transactional_id=self._ticket.transactional_id,
            transaction_seconds=self._boundary.timeout_seconds,
        )
        return TransactionalProducer(options, self._control, commits_when_full=self._boundary.kind == "poll")

    def _prepare_offset_topics(self, stack: ExitStack) -> None:
        """The connector's own offset topic, where it has one, is there before the worker looks into it."""
        if not self._ticket.worker_offset_topic:
            return
        admin = admin_properties(self._worker, self._config)
        ensure_offset_topic(self._ticket.offset_topic, self._producer.partitions, admin, self._worker)
        client_id = f"connector-offsets-{self._ticket.connector}-{self._ticket.task}"
        properties = merged(self._worker, {}, "producer")
        self._worker_offsets = WorkerOffsets(
            self._ticket.worker_offset_topic, properties, self._control, self._ticket.connector, client_id
        )
        stack.callback(self._worker_offsets.close)

    def _write_again(self) -> None:
        """The task's committed offsets go into its first transaction once more.

        An aborted transaction of a predecessor may have left newer offset records behind; a Java worker that reads
        uncommitted would go on from those. After this the last record of every key is a committed one. Where the first
        transaction may stay open for long, or be aborted by its connector, they get one of their own.
        """
        if not isinstance(self._producer, TransactionalProducer):
            return
        for partition in contract.PARTITIONS.of(self._reader.partitions):
            offset = self._committed.offset(partition)
            if offset is not None:
                self._pending[identity(partition)] = (partition, offset)
        if self._pending and self._boundary.kind != "poll":
            self._commit()

    def _copy(self) -> None:
        while not (self._control.draining or self._finished):
            self._control.beat()
            self._keep_pace()
            self._limit_reads()
            started = time.monotonic()
            batch = contract.READ.of(self._reader.read)
            if batch is not None:
                try:
                    self._send(batch)
                except GaveUp:
                    self._gave_up = True
                    break
            if self._pending:
                act = self._boundary.after(batch)
                self._end("commit" if act is None and self._producer.full else act)
            if batch is None:
                self._nap(time.monotonic() - started)
            self._tell_when_due()
        if self._pending:
            self._reporter.tell(COPY_RUN_STATE_DRAINING)
            self._end(self._boundary.at_end if self._open else "commit", last=True)
        if self._plan is not None and self._control.whole:
            self._plan.take_back()
        self._reporter.final_progress = self._message()
        if self._finished:
            self._reporter.end_reason = ALL_READ

    def _limit_reads(self) -> None:
        reader, pace = self._reader, self._control.pace
        reader.most_bytes = self._producer.read_bytes
        reader.most_records = pace.most_records_of(None if reader.limits_bytes else reader.most_bytes)

    @property
    def _finished(self) -> bool:
        return not self._pending and not self._gave_up and contract.FINISHED.of(self._reader.finished)

    def _nap(self, read_seconds: float) -> None:
        seconds = self._idle.nap_seconds(read_seconds)
        if seconds <= 0:
            return
        seen = None if self._pending or self._idle.wakeful else self._glance()
        if seen is None:
            self._rest(seconds)
        elif not seen:
            IDLE_POLLER.wait(self._control, self._glance, quiet=self._idle.quiet)

    def _glance(self) -> bool | None:
        return contract.GLANCE.of(self._reader.glance)

    def _keep_pace(self) -> None:
        """Waits as the limits and the slot's share of the processors want it, with nothing that is due left open."""
        while not self._control.draining:
            seconds = self._control.must_wait()
            if seconds <= 0 or (self._open and not self._boundary.rests_inside):
                return
            if self._pending and seconds > SHORT_REST_SECONDS:
                self._end(self._boundary.after(None))
            self._tell_when_due()
            self._rest(min(seconds, LONGEST_REST_SECONDS))

    def _rest(self, seconds: float) -> None:
        """Waits that long at most, and meanwhile lets go out what was sent."""
        until = time.monotonic() + seconds
        self._producer.let_out(seconds)
        self._control.wait(max(0.0, until - time.monotonic()))

    def _send(self, batch: SourceBatch) -> None:
        if not self._open:
            self._boundary.begun()
            self._open = True
        self._position.read(batch)
        records, size = self._pipeline.send(batch)
        self._reporter.topics = self._pipeline.topics
        self._records += records
        self._bytes += size
        self._position.sent(size)
        self._control.pace.spend(records, size)
        for partition, offset in batch.offsets:
            self._pending[identity(partition)] = (partition, offset)
        if not batch.offsets:
            self._pending.setdefault("", ({}, None))
        self._idle.copied()
        self._watch = None

    def _end(self, act: Act | None, *, last: bool = False) -> None:
        """Ends what is pending as the boundary wants it.

        The records of a transaction that its connector aborts are gone, their offsets are committed, as in Connect: the
        task does not see them again. What a drained run leaves open is aborted with its offsets, to be read again.
        """
        if act == "abort":
            assert isinstance(self._producer, TransactionalProducer)
            self._producer.abandon()
            self._open, self._records, self._bytes = False, 0, 0
            if last:
                return
        if act is not None:
            self._commit()

    def _commit(self) -> None:
        pending = [(p, o) for name, (p, o) in self._pending.items() if name]
        offsets = [self._committed.record(p, o) for p, o in pending]
        self._producer.committed = False
        if self._worker_offsets is not None:
            self._worker_offsets.before_commit(offsets)
        try:
            self._producer.commit(self._ticket.offset_topic, offsets)
        finally:
            if self._producer.committed:
                self._settle(pending)
                if self._worker_offsets is not None:
                    self._worker_offsets.after_commit(offsets)
                if not self._gave_up:  # it would take the batch that was given up for committed, too
                    contract.COMMITTED.of(self._reader.committed)

    def _settle(self, pending: list[tuple[Partition, Offset | None]]) -> None:
        for partition, offset in pending:
            self._committed.note(partition, offset)
        offsets = {identity(p): _text(o) for p, o in pending}
        self._progress.commit(self._records, self._bytes, offsets, passed=self._position.committed())
        self._boundary.committed()
        self._pending, self._open, self._records, self._bytes = {}, False, 0, 0

    def _tell_when_due(self) -> None:
        if not self._reporter.due():
            return
        waits_for = contract.WAITS_FOR.of(self._reader.waits_for) or ""
        watch = self._watch
        if not self._pending and self._idle.may_park:
            watch = contract.WATCH.of(self._reader.watch)
        caught_up = bool(self._ticket.bulk.part or self._reporter.parts) and contract.CAUGHT_UP.of(
            self._reader.caught_up
        )
        met = caught_up and not self._reporter.caught_up
        self._reporter.caught_up = self._reporter.caught_up or caught_up
        if met or watch != self._watch or waits_for != self._waits_for or self._progress.news(self._position.lag()):
            self._waits_for, self._watch = waits_for, watch
            self._reporter.tell(COPY_RUN_STATE_RUNNING, message=waits_for, progress=self._message(), watch=watch)

    def _message(self) -> Any:
        return self._progress.message(self._position.lag(), LAG_UNITS[self._reader.lag_unit])


def _text(offset: Mapping[str, Any] | None) -> str:
    return "null" if offset is None else identity(offset)

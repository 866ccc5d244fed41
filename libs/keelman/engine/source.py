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
from keelman.connect import answers
from keelman.connect.offsets import CommittedOffsets, identity
from keelman.connect.plugin import Connector, Reader
from keelman.connect.records import Offset, Partition, SourceBatch
from keelman.connect.watches import Watch
from keelman.engine.boundary import Act, boundary_for
from keelman.engine.clients import admin_properties
from keelman.engine.control import Control, GaveUp
from keelman.engine.idle import Idle, park_after_seconds
from keelman.engine.lookout import LOOKOUT
from keelman.engine.outlet import Outlet
from keelman.engine.passage import Passage
from keelman.engine.plan import Plan
from keelman.engine.producer_options import producer_options
from keelman.engine.progress import Progress
from keelman.engine.shipment import Shipment
from keelman.engine.teller import ALL_READ, Teller
from keelman.engine.topics import ensure_offset_topic
from keelman.engine.transactions import PlainOutlet, Transactions
from keelman.engine.worker_offsets import WorkerOffsets
from keelman.kafka.client_properties import merged

SHORT_REST_SECONDS = 0.02
LONGEST_REST_SECONDS = 0.5
LAG_UNITS = {"bytes": LAG_UNIT_BYTES, "records": LAG_UNIT_RECORDS}


class SourceCopy:
    """One run of one source task. Made and run in the run's own thread."""

    _outlet: Outlet
    _reader: Reader
    _committed: CommittedOffsets

    def __init__(self, ticket: StartTicket, connector: type[Connector], control: Control, teller: Teller) -> None:
        """Raises ConfigValueError when a converter, the boundary or an interval is not legal."""
        self._ticket = ticket
        self._connector = connector
        self._control = control
        self._teller = teller
        config, worker = dict(ticket.connector_config), dict(ticket.worker_config)
        self._config = {**config, **ticket.task_config}
        self._worker = worker
        self._exactly_once = ticket.delivery == DELIVERY_GUARANTEE_EXACTLY_ONCE
        self._boundary = boundary_for(self._config, worker, transactional=self._exactly_once)
        self._idle = Idle(park_after_seconds(worker, self._config))
        self._shipment = Shipment(ticket, worker, self._config, control)
        self._progress = Progress(bad=self._shipment.counts)
        self._passage = Passage()
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
            self._outlet = outlet = self._open_outlet()
            stack.callback(outlet.close)
            outlet.fence()
            self._prepare_offset_topics(stack)
            self._teller.tell(COPY_RUN_STATE_FENCED)
            confirmation = self._control.await_confirmation()
            if confirmation is None:
                return
            records = [(o.key, o.value) for o in confirmation.offsets]
            self._committed = CommittedOffsets(self._ticket.connector, records)
            if self._exactly_once and not self._ticket.bulk.part:
                self._plan = Plan(self._ticket, outlet, self._committed)
                self._config = dict(self._plan.split(self._connector, self._config))
                self._teller.parts = self._plan.parts
            self._reader = answers.OPEN_READER.of(self._connector.open_reader, self._config, self._committed.offset)
            stack.callback(self._reader.close)
            self._reader.codec, self._reader.packs = outlet.codec, self._shipment.plain
            self._shipment.open(outlet, self._reader)
            self._passage.open(self._reader)
            self._teller.tell(COPY_RUN_STATE_RUNNING, progress=self._message())
            try:
                self._write_again()
                self._copy()
            except BaseException:
                self._teller.final_progress = self._message()
                outlet.abort()
                raise

    def _open_outlet(self) -> Outlet:
        given = merged(self._worker, self._config, "producer")
        client_id = f"connector-producer-{self._ticket.connector}-{self._ticket.task}"
        if not self._exactly_once:
            return PlainOutlet(producer_options(given, client_id=client_id), self._control)
        options = producer_options(
            given,
            client_id=client_id,
            transactional_id=self._ticket.transactional_id,
            transaction_seconds=self._boundary.timeout_seconds,
        )
        made = Transactions(options, self._control)
        made.commits_when_full = self._boundary.kind == "poll"
        return made

    def _prepare_offset_topics(self, stack: ExitStack) -> None:
        """The connector's own offset topic, where it has one, is there before the worker looks into it."""
        if not self._ticket.worker_offset_topic:
            return
        admin = admin_properties(self._worker, self._config)
        ensure_offset_topic(self._ticket.offset_topic, self._outlet.partitions, admin, self._worker)
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
        if not isinstance(self._outlet, Transactions):
            return
        for partition in answers.PARTITIONS.of(self._reader.partitions):
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
            batch = answers.READ.of(self._reader.read)
            if batch is not None:
                try:
                    self._send(batch)
                except GaveUp:
                    self._gave_up = True
                    break
            if self._pending:
                act = self._boundary.after(batch)
                self._end("commit" if act is None and self._outlet.full else act)
            if batch is None:
                self._nap(time.monotonic() - started)
            self._tell_when_due()
        if self._pending:
            self._teller.tell(COPY_RUN_STATE_DRAINING)
            self._end(self._boundary.at_end if self._open else "commit", last=True)
        if self._plan is not None and self._control.whole:
            self._plan.take_back()
        self._teller.final_progress = self._message()
        if self._finished:
            self._teller.end_reason = ALL_READ

    def _limit_reads(self) -> None:
        reader, pace = self._reader, self._control.pace
        reader.most_bytes = self._outlet.read_bytes
        reader.most_records = pace.most_records_of(None if reader.limits_bytes else reader.most_bytes)

    @property
    def _finished(self) -> bool:
        return not self._pending and not self._gave_up and answers.FINISHED.of(self._reader.finished)

    def _nap(self, read_seconds: float) -> None:
        seconds = self._idle.nap_seconds(read_seconds)
        if seconds <= 0:
            return
        seen = None if self._pending or self._idle.wakeful else self._glance()
        if seen is None:
            self._rest(seconds)
        elif not seen:
            LOOKOUT.wait(self._control, self._glance, quiet=self._idle.quiet)

    def _glance(self) -> bool | None:
        return answers.GLANCE.of(self._reader.glance)

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
        self._outlet.let_out(seconds)
        self._control.wait(max(0.0, until - time.monotonic()))

    def _send(self, batch: SourceBatch) -> None:
        if not self._open:
            self._boundary.begun()
            self._open = True
        self._passage.read(batch)
        records, size = self._shipment.send(batch)
        self._teller.topics = self._shipment.topics
        self._records += records
        self._bytes += size
        self._passage.sent(size)
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
            assert isinstance(self._outlet, Transactions)
            self._outlet.abandon()
            self._open, self._records, self._bytes = False, 0, 0
            if last:
                return
        if act is not None:
            self._commit()

    def _commit(self) -> None:
        pending = [(p, o) for name, (p, o) in self._pending.items() if name]
        offsets = [self._committed.record(p, o) for p, o in pending]
        self._outlet.committed = False
        if self._worker_offsets is not None:
            self._worker_offsets.before_commit(offsets)
        try:
            self._outlet.commit(self._ticket.offset_topic, offsets)
        finally:
            if self._outlet.committed:
                self._settle(pending)
                if self._worker_offsets is not None:
                    self._worker_offsets.after_commit(offsets)
                if not self._gave_up:  # it would take the batch that was given up for committed, too
                    answers.COMMITTED.of(self._reader.committed)

    def _settle(self, pending: list[tuple[Partition, Offset | None]]) -> None:
        for partition, offset in pending:
            self._committed.note(partition, offset)
        offsets = {identity(p): _text(o) for p, o in pending}
        self._progress.commit(self._records, self._bytes, offsets, passed=self._passage.committed())
        self._boundary.committed()
        self._pending, self._open, self._records, self._bytes = {}, False, 0, 0

    def _tell_when_due(self) -> None:
        if not self._teller.due():
            return
        waits_for = answers.WAITS_FOR.of(self._reader.waits_for) or ""
        watch = self._watch
        if not self._pending and self._idle.may_park:
            watch = answers.WATCH.of(self._reader.watch)
        caught_up = bool(self._ticket.bulk.part or self._teller.parts) and answers.CAUGHT_UP.of(self._reader.caught_up)
        met = caught_up and not self._teller.caught_up
        self._teller.caught_up = self._teller.caught_up or caught_up
        if met or watch != self._watch or waits_for != self._waits_for or self._progress.news(self._passage.lag()):
            self._waits_for, self._watch = waits_for, watch
            self._teller.tell(COPY_RUN_STATE_RUNNING, message=waits_for, progress=self._message(), watch=watch)

    def _message(self) -> Any:
        return self._progress.message(self._passage.lag(), LAG_UNITS[self._reader.lag_unit])


def _text(offset: Mapping[str, Any] | None) -> str:
    return "null" if offset is None else identity(offset)

"""Copies one source task: read, convert, produce, commit records and offsets together."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any

from confluent_kafka import KafkaException

from keelman.api.copy.v1.copy_run_pb2 import (
    COPY_RUN_STATE_DRAINING,
    COPY_RUN_STATE_FENCED,
    COPY_RUN_STATE_RUNNING,
    LAG_UNIT_BYTES,
    LAG_UNIT_RECORDS,
)
from keelman.api.copy.v1.ticket_pb2 import DELIVERY_GUARANTEE_EXACTLY_ONCE, StartTicket
from keelman.connect.converters import converter_for
from keelman.connect.errors import ConnectError
from keelman.connect.offsets import CommittedOffsets, identity
from keelman.connect.plugin import Connector, Reader
from keelman.connect.records import Offset, Partition, SourceBatch
from keelman.engine.clients import admin_properties, commit_interval_seconds, producer_properties
from keelman.engine.control import Control
from keelman.engine.outlet import Outlet
from keelman.engine.progress import Progress, payload_bytes
from keelman.engine.teller import Teller
from keelman.engine.topics import ensure_topic
from keelman.engine.transactions import PlainOutlet, Transactions

TRANSACTION_SECONDS = 10.0
SHORTEST_NAP_SECONDS = 0.005
LONGEST_NAP_SECONDS = 0.08
LAG_UNITS = {"bytes": LAG_UNIT_BYTES, "records": LAG_UNIT_RECORDS}


class SourceCopy:
    """One run of one source task. Made and run in the run's own thread."""

    def __init__(self, ticket: StartTicket, connector: type[Connector], control: Control, teller: Teller) -> None:
        """Raises ConfigValueError when a converter or the commit interval is not legal."""
        self._ticket = ticket
        self._connector = connector
        self._control = control
        self._teller = teller
        config, worker = dict(ticket.connector_config), dict(ticket.worker_config)
        self._config = {**config, **ticket.task_config}
        self._worker = worker
        self._interval = commit_interval_seconds(worker, self._config)
        self._values = converter_for("value", self._config, worker)
        self._keys = converter_for("key", self._config, worker)
        self._progress = Progress()
        self._pending: dict[str, tuple[Partition, Offset | None]] = {}
        self._records = 0
        self._bytes = 0
        self._begun_at = 0.0
        self._waits_for = ""
        self._topics: set[str] = set()

    def run(self) -> None:
        """Copies until drained. Raises CutShort when cut, anything else when it failed."""
        with ExitStack() as stack:
            outlet = self._open_outlet()
            stack.callback(outlet.close)
            outlet.fence()
            self._teller.tell(COPY_RUN_STATE_FENCED)
            confirmation = self._control.await_confirmation()
            if confirmation is None:
                return
            records = [(o.key, o.value) for o in confirmation.offsets]
            committed = CommittedOffsets(self._ticket.connector, records)
            reader = self._connector.open_reader(self._config, committed.offset)
            stack.callback(reader.close)
            self._teller.tell(COPY_RUN_STATE_RUNNING, progress=self._message(reader))
            try:
                self._write_again(outlet, reader, committed)
                self._copy(outlet, reader, committed)
            except BaseException:
                self._teller.final_progress = self._message(reader)
                with suppress(KafkaException):
                    outlet.abort()
                raise

    def _open_outlet(self) -> Outlet:
        properties = producer_properties(self._worker, self._config)
        properties.setdefault("client.id", f"connector-producer-{self._ticket.connector}-{self._ticket.task}")
        if self._ticket.delivery != DELIVERY_GUARANTEE_EXACTLY_ONCE:
            properties.pop("transactional.id", None)
            return PlainOutlet(properties, self._control)
        properties.setdefault("transactional.id", self._ticket.transactional_id)
        # A transaction may stay open for one interval; what is beyond that is what its readers wait for a dead run.
        timeout = max(TRANSACTION_SECONDS, self._interval + TRANSACTION_SECONDS if self._interval > 1 else 0)
        return Transactions(properties, self._control, timeout_seconds=timeout)

    def _write_again(self, outlet: Outlet, reader: Reader, committed: CommittedOffsets) -> None:
        """Commits the task's committed offsets once more.

        An aborted transaction of a predecessor may have left newer offset records behind; a Java worker that reads
        uncommitted would go on from those. After this the last record of every key is a committed one.
        """
        if not isinstance(outlet, Transactions):
            return
        for partition in reader.partitions():
            offset = committed.offset(partition)
            if offset is not None:
                self._pending[identity(partition)] = (partition, offset)
        if self._pending:
            outlet.begin()
            self._commit(outlet, committed)

    def _copy(self, outlet: Outlet, reader: Reader, committed: CommittedOffsets) -> None:
        nap = SHORTEST_NAP_SECONDS
        while not self._control.draining:
            self._control.beat()
            batch = reader.read()
            if batch is not None:
                self._send(outlet, batch)
                nap = SHORTEST_NAP_SECONDS
            due = batch is None or batch.short or time.monotonic() - self._begun_at >= self._interval
            if self._pending and due:
                self._commit(outlet, committed)
            if self._teller.due():
                self._tell(reader)
            if batch is None:
                self._control.wait(nap)
                nap = min(nap * 1.5, LONGEST_NAP_SECONDS)
        self._teller.tell(COPY_RUN_STATE_DRAINING)
        if self._pending:
            self._commit(outlet, committed)
        self._teller.final_progress = self._message(reader)

    def _send(self, outlet: Outlet, batch: SourceBatch) -> None:
        values = self._values.from_connect(batch.values)
        keys = None if batch.keys is None else self._keys.from_connect(batch.keys)
        if batch.topic not in self._topics:
            self._meet_topic(outlet, batch.topic)
        if not self._pending:
            outlet.begin()
            self._begun_at = time.monotonic()
        outlet.send(batch, values, keys)
        self._records += len(values)
        self._bytes += payload_bytes(values) + (0 if keys is None else payload_bytes(keys))
        for partition, offset in batch.offsets:
            self._pending[identity(partition)] = (partition, offset)
        if not batch.offsets:
            self._pending.setdefault("", ({}, None))

    def _meet_topic(self, outlet: Outlet, topic: str) -> None:
        if topic == self._ticket.offset_topic:
            raise ConnectError(f"a task cannot produce to its own offsets topic {topic}")
        ensure_topic(topic, outlet.producer, admin_properties(self._worker, self._config), self._worker, self._config)
        self._topics.add(topic)
        self._teller.topics = sorted(self._topics)

    def _commit(self, outlet: Outlet, committed: CommittedOffsets) -> None:
        pending = [(p, o) for name, (p, o) in self._pending.items() if name]
        try:
            outlet.commit(self._ticket.offset_topic, [committed.record(p, o) for p, o in pending])
        finally:
            if outlet.committed:
                for partition, offset in pending:
                    committed.note(partition, offset)
                texts = {identity(p): _text(o) for p, o in pending}
                self._progress.commit(self._records, self._bytes, texts)
                self._pending, self._records, self._bytes = {}, 0, 0

    def _tell(self, reader: Reader) -> None:
        waits_for = reader.waits_for()
        if waits_for != self._waits_for or self._progress.news(reader.left()):
            self._waits_for = waits_for
            self._teller.tell(COPY_RUN_STATE_RUNNING, message=waits_for, progress=self._message(reader))

    def _message(self, reader: Reader) -> Any:
        return self._progress.message(reader.left(), LAG_UNITS[reader.lag_unit])


def _text(offset: Mapping[str, Any] | None) -> str:
    return "null" if offset is None else identity(offset)

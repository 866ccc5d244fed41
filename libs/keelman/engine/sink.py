"""Copies one sink task: consume, convert, write, commit the writer and then the group.

An exactly-once sink reads read_committed unless `consumer.override.isolation.level` says otherwise. A transactional
source that died in the middle of a transaction leaves its records in the log as aborted and writes them again; to read
them uncommitted would put them into the sink twice, and no care of the sink's own could undo that.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import Any

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
)
from confluent_kafka import TopicPartition as ClientPartition

from keelman.api.copy.v1.copy_run_pb2 import (
    COPY_RUN_STATE_DRAINING,
    COPY_RUN_STATE_FENCED,
    COPY_RUN_STATE_RUNNING,
    LAG_UNIT_RECORDS,
)
from keelman.api.copy.v1.ticket_pb2 import DELIVERY_GUARANTEE_EXACTLY_ONCE, StartTicket
from keelman.connect.converters import converter_for
from keelman.connect.java import json_text
from keelman.connect.plugin import Connector, KeptOffset, Writer
from keelman.connect.records import SinkBatch, TopicPartition
from keelman.engine.clients import commit_interval_seconds, consumer_properties
from keelman.engine.control import Control
from keelman.engine.failure import judge_kafka
from keelman.engine.progress import Progress, payload_bytes
from keelman.engine.sink_offsets import Mirror, Start, start_of
from keelman.engine.subscription import Subscription
from keelman.engine.teller import Teller
from keelman.runtime.logging import get_logger

BATCH_RECORDS = 10_000
ANSWER_SECONDS = 8.0
CLOSE_SECONDS = 2.0

# Bounded so that a copy of any size stays small: what waits in the client is at most 16 MB and one fetch.
CONSUMER_DEFAULTS: dict[str, Any] = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "fetch.queue.backoff.ms": 5,
    "queued.max.messages.kbytes": 16_384,
    "queued.min.messages": 100_000,
    "fetch.message.max.bytes": 1_048_576,
    "session.timeout.ms": 10_000,
    "heartbeat.interval.ms": 1_000,
    "socket.nagle.disable": True,
}

_log = get_logger()


class SinkCopy:
    """One run of one sink task. Made and run in the run's own thread."""

    def __init__(self, ticket: StartTicket, connector: type[Connector], control: Control, teller: Teller) -> None:
        """Raises ConfigValueError when a converter, the topics or the commit interval is not legal."""
        self._ticket = ticket
        self._connector = connector
        self._control = control
        self._teller = teller
        self._worker = dict(ticket.worker_config)
        self._config = {**ticket.connector_config, **ticket.task_config}
        self._exactly_once = ticket.delivery == DELIVERY_GUARANTEE_EXACTLY_ONCE
        self._interval = commit_interval_seconds(self._worker, self._config)
        self._values = converter_for("value", self._config, self._worker)
        self._keys = converter_for("key", self._config, self._worker)
        self._subscription = Subscription(self._config)
        self._progress = Progress()
        self._log = _log.bind(connector=ticket.connector, task=ticket.task)
        self._consumer: Consumer
        self._writer: Writer
        self._positions: dict[TopicPartition, int] = {}
        self._mirrors: dict[TopicPartition, Mirror] = {}
        self._assignments = 0
        self._in_flight = 0
        self._dirty = False
        self._records = 0
        self._bytes = 0

    def run(self) -> None:
        """Copies until drained. Raises CutShort when cut, anything else when it failed."""
        with ExitStack() as stack:
            self._consumer = Consumer(self._properties())
            stack.callback(self._close)
            self._teller.tell(COPY_RUN_STATE_FENCED)
            if self._control.await_confirmation() is None:
                return
            self._writer = self._connector.open_writer(
                self._config, self._ticket.connector, exactly_once=self._exactly_once
            )
            stack.callback(self._writer.close)
            self._subscription.begin(self._consumer, self._assigned, self._revoked, self._lost)
            self._teller.tell(COPY_RUN_STATE_RUNNING, progress=self._message())
            try:
                self._copy()
            except BaseException:
                self._teller.final_progress = self._message()
                self._forget()  # closing revokes; nothing may be committed after a failure
                raise

    def _close(self) -> None:
        """Closes the consumer; when no broker answers it is left to close behind the run, which has ended."""
        closing = threading.Thread(target=self._consumer.close, name="closing", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)

    def _properties(self) -> dict[str, Any]:
        name, task = self._ticket.connector, self._ticket.task
        chosen = {
            "group.id": f"connect-{name}",
            "group.instance.id": f"{name}-{task}",
            "client.id": f"connector-consumer-{name}-{task}",
            "isolation.level": "read_committed" if self._exactly_once else "read_uncommitted",
            "on_commit": self._group_committed,
            "error_cb": self._client_error,
        }
        return {**CONSUMER_DEFAULTS, **chosen, **consumer_properties(self._worker, self._config)}

    def _copy(self) -> None:
        committed_at = time.monotonic()
        while not self._control.draining:
            self._control.beat()
            self._read()
            now = time.monotonic()
            if now - committed_at >= self._interval:
                if self._dirty:
                    self._commit()
                committed_at = now
            if self._teller.due():
                self._subscription.refresh(self._consumer)
                self._tell()
        self._teller.tell(COPY_RUN_STATE_DRAINING)
        self._finish()
        self._teller.final_progress = self._message()
        self._forget()

    def _read(self) -> None:
        first = self._consumer.poll(0.1)
        if first is None:
            return
        assignments = self._assignments
        messages = [first, *self._consumer.consume(BATCH_RECORDS, 0)]
        if assignments == self._assignments:
            self._take(messages)
        else:
            # A rebalance came between the two reads and committed without what the first had read. What both read is
            # dropped and the assignment begun again from what is committed.
            self._assigned(self._consumer, self._consumer.assignment())

    def _take(self, messages: list[Message]) -> None:
        records = [m for m in messages if m.error() is None]
        if len(records) != len(messages):
            for message in messages:
                if (error := message.error()) is not None:
                    self._take_error(message, error)
        if not records:
            return
        payloads = [m.value() for m in records]
        keys = [m.key() for m in records] if self._writer.wants_keys else None
        batch = SinkBatch(self._values.to_connect(payloads), None if keys is None else self._keys.to_connect(keys))
        self._writer.write(batch)
        self._records += len(records)
        self._bytes += payload_bytes(payloads) + (0 if keys is None else payload_bytes(keys))
        self._advance(records)

    def _advance(self, records: list[Message]) -> None:
        if len(self._mirrors) == 1:
            last = records[-1]
            ends = {TopicPartition(last.topic(), last.partition()): last.offset() + 1}
        else:
            ends = {TopicPartition(m.topic(), m.partition()): m.offset() + 1 for m in records}
        self._positions.update(ends)
        self._dirty = True

    def _take_error(self, message: Message, error: KafkaError) -> None:
        if error.code() != KafkaError._PARTITION_EOF:
            reason, retriable = judge_kafka(error)
            if error.fatal() or reason == "FENCED" or not retriable:
                raise KafkaException(error)
            self._log.warning("consumer_trouble", error=error.str())
            return
        # The end lies behind control records that are never delivered; to commit it shows a lag of 0 to everyone.
        partition = TopicPartition(message.topic(), message.partition())
        if message.offset() > self._positions.get(partition, -1) and partition in self._mirrors:
            self._positions[partition] = message.offset()
            self._dirty = True

    def _commit(self) -> None:
        """Writer first, then the group, of which at most one commit is under way."""
        self._control.beat()
        self._keep()
        if not self._in_flight and self._positions:
            self._send_group(asynchronous=True)

    def _keep(self, *, clean: bool = False) -> None:
        kept = {p: KeptOffset(offset, self._mirrors[p].candidates) for p, offset in self._positions.items()}
        self._writer.commit(kept, clean=clean)
        offsets = {json_text({"topic": p.topic, "partition": p.partition}): str(o) for p, o in self._positions.items()}
        self._progress.commit(self._records, self._bytes, offsets)
        self._records = self._bytes = 0
        self._dirty = self._in_flight > 0

    def _send_group(self, *, asynchronous: bool) -> None:
        for partition, offset in self._positions.items():
            self._mirrors[partition].sent(offset)
        listed = [ClientPartition(p.topic, p.partition, o) for p, o in self._positions.items()]
        if asynchronous:
            self._in_flight += 1
            self._consumer.commit(offsets=listed, asynchronous=True)
        else:
            self._consumer.commit(offsets=listed, asynchronous=False)
            for partition, offset in self._positions.items():
                self._mirrors[partition].acknowledged(offset)

    def _group_committed(self, error: KafkaError | None, partitions: list[ClientPartition]) -> None:
        self._in_flight = max(0, self._in_flight - 1)
        for one in partitions:
            problem = error or one.error
            if problem is not None:
                self._log.warning("group_commit_failed", topic=one.topic, partition=one.partition, error=str(problem))
            elif (mirror := self._mirrors.get(TopicPartition(one.topic, one.partition))) is not None:
                mirror.acknowledged(one.offset)

    def _finish(self) -> None:
        """The last commits of a drained run: data and journal, the group, and the journal again with the group's."""
        if not self._positions:
            self._writer.commit({}, clean=True)
            return
        self._commit()
        self._await_group()
        if any(m.candidates != (self._positions[p],) for p, m in self._mirrors.items()):
            self._send_group(asynchronous=True)
            self._await_group()
        self._keep(clean=True)

    def _await_group(self) -> None:
        """Waits for the commit that is under way; what is consumed meanwhile is dropped and will be read again."""
        self._consumer.pause([ClientPartition(p.topic, p.partition) for p in self._positions])
        deadline = time.monotonic() + ANSWER_SECONDS
        while self._in_flight and time.monotonic() < deadline:
            self._control.beat()
            self._consumer.poll(0.05)

    def _assigned(self, consumer: Consumer, partitions: list[ClientPartition]) -> None:
        kept = self._writer.kept() if self._writer.keeps_offsets else {}
        group = consumer.committed(partitions, timeout=ANSWER_SECONDS) if partitions else []
        for one in group:
            if one.error is not None:
                raise KafkaException(one.error)
        self._forget()
        chosen = []
        for one in group:
            partition = TopicPartition(one.topic, one.partition)
            committed = one.offset if one.offset >= 0 else None
            start = self._start(consumer, partition, kept.get(partition), committed)
            self._mirrors[partition] = Mirror(committed)
            if start.offset is not None:
                self._positions[partition] = start.offset
            offset = OFFSET_INVALID if start.offset is None else start.offset
            chosen.append(ClientPartition(one.topic, one.partition, offset))
        consumer.assign(chosen)
        self._teller.topics = sorted({one.topic for one in partitions})
        self._progress.changed = True

    def _start(
        self, consumer: Consumer, partition: TopicPartition, kept: KeptOffset | None, committed: int | None
    ) -> Start:
        end = None
        if kept is not None:
            client = ClientPartition(partition.topic, partition.partition)
            end = consumer.get_watermark_offsets(client, timeout=ANSWER_SECONDS)[1]
        start = start_of(kept, committed, end)
        if start.reason:
            self._log.warning("kept_offset_not_used", partition=str(partition), start=start.offset, why=start.reason)
        return start

    def _revoked(self, _consumer: Consumer, _partitions: list[ClientPartition]) -> None:
        if self._positions:
            self._keep()
            self._send_group(asynchronous=False)
        self._forget()

    def _lost(self, _consumer: Consumer, _partitions: list[ClientPartition]) -> None:
        """The group went on without us. What the writer keeps beside its data is still ours to keep."""
        if self._positions and self._writer.keeps_offsets:
            self._keep()
        self._forget()

    def _forget(self) -> None:
        self._assignments += 1
        self._positions.clear()
        self._mirrors.clear()
        self._dirty = False

    def _client_error(self, error: KafkaError) -> None:
        if error.fatal():
            raise KafkaException(error)
        self._log.info("consumer_notice", error=error.str())

    def _tell(self) -> None:
        if self._progress.news(self._lag()):
            self._teller.tell(COPY_RUN_STATE_RUNNING, progress=self._message())

    def _message(self) -> Any:
        return self._progress.message(self._lag(), LAG_UNIT_RECORDS)

    def _lag(self) -> int | None:
        """Records that wait in all assigned partitions; None before the first fetch of one of them."""
        if not self._mirrors:
            return None
        lag = 0
        for partition in self._mirrors:
            client = ClientPartition(partition.topic, partition.partition)
            known = self._consumer.get_watermark_offsets(client, cached=True)
            if known is None or known[1] < 0:
                return None
            low, end = known
            lag += max(0, end - self._positions.get(partition, max(0, low)))
        return lag

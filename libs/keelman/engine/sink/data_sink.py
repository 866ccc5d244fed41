"""Copies a sink task whose data Spark writes: ranges of offsets, one bounded job after another, then the group."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, OffsetSpec

from keelman.api.copy.v1.copy_run_pb2 import (
    COPY_RUN_STATE_DRAINING,
    COPY_RUN_STATE_FENCED,
    COPY_RUN_STATE_RUNNING,
    LAG_UNIT_RECORDS,
)
from keelman.api.copy.v1.ticket_pb2 import DELIVERY_GUARANTEE_EXACTLY_ONCE, StartTicket
from keelman.api.copy.v1.write_job_pb2 import WriteJob, WriteRange
from keelman.connect.java.text import json_text
from keelman.connect.plugin import Connector
from keelman.connect.policy.topics import InternalTopics
from keelman.connect.records import TopicPartition
from keelman.engine.clients import admin_properties, portable, with_token
from keelman.engine.control import Control
from keelman.engine.failure import RunFailure
from keelman.engine.partition_offsets import offsets_at
from keelman.engine.progress import Progress
from keelman.engine.reporter import RunReporter
from keelman.engine.sink.consumer.consumer import sink_consumer_properties
from keelman.engine.sink.consumer.subscription import Subscription
from keelman.engine.sink.writes import Write, Writes
from keelman.kafka.fetching.isolation import reads_committed
from keelman.kafka.groups.changes import GroupChanges
from keelman.kafka.groups.offsets import Committed
from keelman.kafka.properties.connector_clients import merged, sink_group_client
from keelman.kafka.security.oauth import ALLOWED_KEY
from keelman.model.errors import FailedPrecondition
from keelman.runtime.side_loop import KAFKA_LOOP

EVERY_KEY, MAX_KEY = "spark.write.every.ms", "spark.write.max.records"
EVERY_MS, MAX_RECORDS = 10_000, 1_000_000
ANSWER_SECONDS = 4.0  # twice in a row, and a slot that gives no sign of life for ten seconds is given up
REPORT_SECONDS = 1.0
MEMBER_SECONDS, AGAIN_SECONDS = 20.0, 0.2
"""How long, and how often, a member of the group is waited for."""


class DataSinkCopy:
    """One run of such a task. It is its connector's only one, so its group needs no members: it has all partitions.

    Exactly once where the data set knows the numbers of its writes: a write whose offsets were not committed is
    repeated with the same records and number (keelman.engine.sink.writes). Else at least once: its records are
    written again, in whatever write comes next.
    """

    def __init__(
        self, ticket: StartTicket, connector: type[Connector], control: Control, reporter: RunReporter
    ) -> None:
        """Raises ConfigValueError for an illegal configuration."""
        self._ticket, self._control, self._reporter = ticket, control, reporter
        self._worker = dict(ticket.worker_config)
        self._config = {**ticket.connector_config, **ticket.task_config}
        parsed = connector.config_def().parse(self._config)
        self._every = parsed[EVERY_KEY] / 1000
        self._once = ticket.delivery == DELIVERY_GUARANTEE_EXACTLY_ONCE
        self._subscription = Subscription(self._config, is_internal=InternalTopics(self._worker).has)
        self._properties = sink_consumer_properties(
            self._worker, self._config, ticket.connector, ticket.task, read_committed=True, zombie_seconds=0.0
        )
        self._properties.pop("group.instance.id")
        client = sink_group_client(self._worker, self._config)
        group = str(self._properties["group.id"])
        self._group = GroupChanges(client, group, client_id=f"connector-adminclient-{ticket.connector}-{ticket.task}")
        self._progress = Progress()
        self._writes = Writes(parsed[MAX_KEY], once=self._once)
        self._number = 0

    def run(self) -> None:
        """Copies until drained. Raises CutShort when cut, anything else when it failed."""
        with ExitStack() as stack:
            self._reporter.report(COPY_RUN_STATE_FENCED)
            if self._control.await_confirmation() is None:
                return
            self._consumer = Consumer(with_token(self._properties, self._control.beat))
            stack.callback(self._consumer.close)
            admin = admin_properties(self._worker, self._config)
            self._admin = AdminClient(with_token(admin, self._control.beat))
            self._reporter.report(COPY_RUN_STATE_RUNNING, progress=self._message())
            due = 0.0
            while not self._control.draining:
                self._control.beat()
                if time.monotonic() < due:
                    self._control.wait(min(0.5, self._every))
                    continue
                write = self._next()
                if self._writes.repairs:
                    self._commit(self._writes.repairs)
                due = time.monotonic() + self._every
                if write.stretches:
                    self._write(write)
                    due = 0.0 if self._writes.lag else due
                self._reporter.report(COPY_RUN_STATE_RUNNING, progress=self._message())
            self._reporter.report(COPY_RUN_STATE_DRAINING)
            self._reporter.final_progress = self._message()

    def _next(self) -> Write:
        topics = self._consumer.list_topics(timeout=ANSWER_SECONDS).topics
        names = self._subscription.names(topics)
        partitions = [TopicPartition(n, p) for n in names if n in topics for p in topics[n].partitions]
        if not partitions:
            return Write()
        self._reporter.topics = sorted({partition.topic for partition in partitions})
        self._control.beat()
        ends = self._offsets(partitions, OffsetSpec.latest())
        self._control.beat()
        begins = self._offsets(partitions, OffsetSpec.earliest())
        kept = KAFKA_LOOP.call(self._group.committed(), self._control.beat)
        latest = str(self._properties.get("auto.offset.reset")) == "latest"
        return self._writes.next(kept, begins, ends, latest=latest)

    def _offsets(self, partitions: list[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
        committed = reads_committed(self._properties)
        return offsets_at(spec, partitions, self._admin, read_committed=committed, seconds=ANSWER_SECONDS)

    def _write(self, write: Write) -> None:
        self._number += 1
        if self._once and not write.again:
            self._commit(write.begun)
        java = merged(self._worker, self._config, "consumer")
        allowed = {ALLOWED_KEY: self._worker.get(ALLOWED_KEY, "")}
        properties = portable(self._properties, {**java, **allowed})
        ranges = [WriteRange(topic=w.topic, partition=w.partition, begin=b, end=e) for w, b, e in write.stretches]
        job = WriteJob(
            number=self._number, config=self._config, client_properties=properties, ranges=ranges,
            writer=write.writer, version=write.version,
        )  # fmt: skip
        self._reporter.write = job
        try:
            self._reporter.report(COPY_RUN_STATE_RUNNING, progress=self._message())
            while not self._control.await_written(self._number, REPORT_SECONDS):
                self._reporter.report(COPY_RUN_STATE_RUNNING, progress=self._message())
        finally:
            self._reporter.write = None
        done = self._control.last_written
        if done.error:
            raise RunFailure("WRITE_FAILED", f"Spark did not write: {done.error}", retriable=not done.lasting)
        self._commit(write.ended)
        self._writes.done(write)
        texts = {json_text({"topic": w.topic, "partition": w.partition}): str(end) for w, _, end in write.stretches}
        self._progress.commit(sum(end - begin for _, begin, end in write.stretches), 0, texts)

    def _commit(self, offsets: Mapping[tuple[str, int], Committed]) -> None:
        """The group has no members, so its offsets are set from outside. A worker that has the brokers keep them is one
        for a moment: it is waited for, since a run that fails now writes it all again. Raises FailedPrecondition and
        Unavailable."""
        until = time.monotonic() + MEMBER_SECONDS
        while True:
            try:
                return KAFKA_LOOP.call(self._group.write(offsets), self._control.beat)
            except FailedPrecondition:
                if time.monotonic() > until:
                    raise
            time.sleep(AGAIN_SECONDS)

    def _message(self) -> Any:
        return self._progress.message(self._writes.lag, LAG_UNIT_RECORDS)

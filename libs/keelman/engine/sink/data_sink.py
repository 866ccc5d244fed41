"""Copies a sink task whose data Spark writes: ranges of offsets, one bounded job after another, then the group."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from keelman.api.copy.v1.copy_run_pb2 import (
    COPY_RUN_STATE_DRAINING,
    COPY_RUN_STATE_FENCED,
    COPY_RUN_STATE_RUNNING,
    LAG_UNIT_RECORDS,
)
from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.api.copy.v1.write_job_pb2 import WriteJob, WriteRange
from keelman.connect.java.text import json_text
from keelman.connect.plugin import Connector
from keelman.connect.policy.topics import InternalTopics
from keelman.connect.records import TopicPartition
from keelman.engine.clients import admin_properties, partition_of, portable, with_token
from keelman.engine.control import Control
from keelman.engine.failure import RunFailure
from keelman.engine.partition_offsets import offsets_at
from keelman.engine.progress import Progress
from keelman.engine.reporter import RunReporter
from keelman.engine.sink.consumer.consumer import sink_consumer_properties
from keelman.engine.sink.consumer.subscription import Subscription
from keelman.kafka.fetching.isolation import reads_committed
from keelman.kafka.properties.connector_clients import merged
from keelman.kafka.security.oauth import ALLOWED_KEY

EVERY_KEY, MAX_KEY = "spark.write.every.ms", "spark.write.max.records"
EVERY_MS, MAX_RECORDS = 10_000, 1_000_000
ANSWER_SECONDS = 4.0  # twice in a row, and a slot that gives no sign of life for ten seconds is given up
REPORT_SECONDS = 1.0
MEMBER_SECONDS, AGAIN_SECONDS = 20.0, 0.2
"""How long, and how often, a member of the group is waited for."""


class DataSinkCopy:
    """One run of such a task. It is its connector's only one, so its group needs no members: it has all partitions.

    At least once: records of a job whose offsets were not committed are written again.
    """

    def __init__(
        self, ticket: StartTicket, connector: type[Connector], control: Control, reporter: RunReporter
    ) -> None:
        """Raises ConfigValueError for an illegal configuration."""
        self._ticket, self._control, self._reporter = ticket, control, reporter
        self._worker = dict(ticket.worker_config)
        self._config = {**ticket.connector_config, **ticket.task_config}
        parsed = connector.config_def().parse(self._config)
        self._every, self._most = parsed[EVERY_KEY] / 1000, parsed[MAX_KEY]
        self._subscription = Subscription(self._config, is_internal=InternalTopics(self._worker).has)
        self._properties = sink_consumer_properties(
            self._worker, self._config, ticket.connector, ticket.task, read_committed=True, zombie_seconds=0.0
        )
        self._properties.pop("group.instance.id")
        self._progress = Progress()
        self._lag: int | None = None
        self._number = 0
        self._first: dict[TopicPartition, int] = {}

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
                ranges = self._ranges()
                due = time.monotonic() + self._every
                if ranges:
                    self._write(ranges)
                    due = 0.0 if self._lag else due
                self._reporter.report(COPY_RUN_STATE_RUNNING, progress=self._message())
            self._reporter.report(COPY_RUN_STATE_DRAINING)
            self._reporter.final_progress = self._message()

    def _ranges(self) -> list[WriteRange]:
        """Returns the ranges behind the group's offsets, up to the limit of records."""
        topics = self._consumer.list_topics(timeout=ANSWER_SECONDS).topics
        names = self._subscription.names(topics)
        partitions = [TopicPartition(n, p) for n in names if n in topics for p in topics[n].partitions]
        if not partitions:
            return []
        self._reporter.topics = sorted({partition.topic for partition in partitions})
        self._control.beat()
        ends = self._offsets(partitions, OffsetSpec.latest())
        self._control.beat()
        begins = self._offsets(partitions, OffsetSpec.earliest())
        self._control.beat()
        latest = str(self._properties.get("auto.offset.reset")) == "latest"
        ranges, lag, left = [], 0, self._most
        committed = self._consumer.committed(
            [ClientPartition(*partition) for partition in partitions], timeout=ANSWER_SECONDS
        )
        for committed_partition in committed:
            if committed_partition.error is not None:
                raise KafkaException(committed_partition.error)
            where = partition_of(committed_partition)
            # A partition without an offset begins at its first known begin or end; so does a truncated partition.
            first = self._first.setdefault(where, ends[where] if latest else begins[where])
            begin = max(
                committed_partition.offset if 0 <= committed_partition.offset <= ends[where] else first, begins[where]
            )
            end = min(ends[where], begin + left)
            lag += max(0, ends[where] - begin)
            if end > begin:
                ranges.append(
                    WriteRange(
                        topic=committed_partition.topic, partition=committed_partition.partition, begin=begin, end=end
                    )
                )
                left -= end - begin
        self._lag = lag
        return ranges

    def _offsets(self, partitions: list[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
        committed = reads_committed(self._properties)
        return offsets_at(spec, partitions, self._admin, read_committed=committed, seconds=ANSWER_SECONDS)

    def _write(self, ranges: list[WriteRange]) -> None:
        self._number += 1
        java = merged(self._worker, self._config, "consumer")
        allowed = {ALLOWED_KEY: self._worker.get(ALLOWED_KEY, "")}
        properties = portable(self._properties, {**java, **allowed})
        job = WriteJob(number=self._number, config=self._config, client_properties=properties, ranges=ranges)
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
        ends = [ClientPartition(written.topic, written.partition, written.end) for written in ranges]
        self._commit(ends)
        records = sum(written.end - written.begin for written in ranges)
        self._lag = max(0, (self._lag or 0) - records)
        texts = {
            json_text({"topic": written.topic, "partition": written.partition}): str(written.end) for written in ranges
        }
        self._progress.commit(records, 0, texts)

    def _commit(self, ends: list[ClientPartition]) -> None:
        """The group has no members, so its offsets are set from outside. A worker that has the brokers keep them is one
        for a moment: it is waited for, since a run that fails now writes it all again. Raises KafkaException."""
        until = time.monotonic() + MEMBER_SECONDS
        while (refused := self._refused(ends)) is not None:
            if refused.code() != KafkaError.UNKNOWN_MEMBER_ID or time.monotonic() > until:
                raise KafkaException(refused)
            time.sleep(AGAIN_SECONDS)

    def _refused(self, ends: list[ClientPartition]) -> KafkaError | None:
        """Returns why the group's offsets could not be set, None if they were; a broker that is too slow fails the
        run."""
        self._control.beat()
        requests = [ConsumerGroupTopicPartitions(str(self._properties["group.id"]), ends)]
        for answer in self._admin.alter_consumer_group_offsets(requests, request_timeout=ANSWER_SECONDS).values():
            for topic_partition in answer.result(ANSWER_SECONDS + 1).topic_partitions or []:
                if topic_partition.error is not None:
                    return topic_partition.error
        return None

    def _message(self) -> Any:
        return self._progress.message(self._lag, LAG_UNIT_RECORDS)

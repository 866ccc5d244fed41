"""Passes records of a source's reader to the producer: transformed and converted, bad records handled by the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from keelman.api.copy.v1.ticket_pb2 import DELIVERY_GUARANTEE_EXACTLY_ONCE, StartTicket
from keelman.connect import contract
from keelman.connect.bad_records.tolerance import Policy
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Reader
from keelman.connect.policy.topics import InternalTopics
from keelman.connect.records import SourceBatch
from keelman.engine.clients import admin_properties
from keelman.engine.control import Control, GaveUp
from keelman.engine.failure import CONFIG_INVALID, RunFailure, TopicRefused
from keelman.engine.producing.dead_letters import DeadLetterWriter
from keelman.engine.producing.producer import RunProducer
from keelman.engine.records.bad_records import BadRecords, Counts
from keelman.engine.records.fused import Sent
from keelman.engine.records.size import Sizes
from keelman.engine.source.conversion import SourceConversion, without_steps
from keelman.engine.source.unpacking import unpacked
from keelman.engine.topics import ensure_topic, record_sizes

T = TypeVar("T")


class SourcePipeline:
    """The pipeline of one run of one source task; its thread alone uses it."""

    _producer: RunProducer
    _reader: Reader

    def __init__(
        self,
        ticket: StartTicket,
        worker: Mapping[str, str],
        config: Mapping[str, str],
        control: Control,
        *,
        converted: bool = False,
    ) -> None:
        """`converted`: the connector's readers transform and convert themselves.

        Raises ConfigValueError when a converter, a transform or a key about errors is not legal."""
        self._worker = worker
        self._config = config
        exactly_once = ticket.delivery == DELIVERY_GUARANTEE_EXACTLY_ONCE
        self._forbidden = ticket.offset_topic if exactly_once else ""
        self._policy = Policy.of(config, sink=False)
        self._bad = BadRecords(ticket.connector, ticket.task, self._policy, control)
        steps = without_steps(config) if converted else config
        self._conversion = SourceConversion(steps, worker, self._bad, self._sizes_of)
        self._internal = InternalTopics(worker)
        self._topics: set[str] = set()
        self._sizes: dict[str, Sizes] = {}
        self._dead: DeadLetterWriter | None = None
        if self._policy.keeps_dead_letters:
            self._dead = DeadLetterWriter(self._bad, worker, config)

    @property
    def plain(self) -> bool:
        """Whether packed batches may pass unchanged: without transforms."""
        return self._conversion.plain

    def partitions(self, topic: str) -> int:
        """Returns a topic's number of partitions; creates a missing topic first. Raises as `send`."""
        self._meet_topic(topic)
        return self._producer.known_partitions(topic)

    def batch_bytes(self, topic: str) -> int:
        """Returns the most bytes of a packed batch for the topic. Raises as `send`."""
        return min(self._producer.batch_bytes(topic), self._sizes_of(topic).least)

    def retry(self, work: Callable[[], T]) -> T:
        """Returns the result of `work`, retried by the policy. Raises GaveUp, and what `work` raises."""
        return self._bad.retry(work)

    @property
    def counts(self) -> Counts:
        """Counts of failures in this run."""
        return self._bad.counts

    @property
    def topics(self) -> list[str]:
        """The topics that were written to, in their order."""
        return sorted(self._topics)

    def open(self, producer: RunProducer, reader: Reader) -> None:
        """Sets the producer and the reader of the records. Raises KafkaException, RunFailure or ConnectError."""
        self._producer, self._reader = producer, reader
        if self._dead is not None:
            self._dead.ensure(producer)

    def prepare(self, batch: SourceBatch) -> list[Sent]:
        """Converts a batch, and makes sure that each target topic exists and takes its records. Returns nothing for a
        packed batch that passes unchanged. Raises RecordRefused, RunFailure, GaveUp, ConnectError: then nothing is
        sent."""
        if batch.packed:
            self._meet(batch)
            if not self._reader.sets_aside or self._fits(batch):
                return []
            batch = unpacked(batch)
        try:
            converted = list(self._conversion.payloads(batch))
        except GaveUp:
            self._bad.give_up()
            raise
        for converted_batch, values, _ in converted:
            if values:
                self._meet(converted_batch)
        return converted

    def send(self, batch: SourceBatch, prepared: list[Sent]) -> tuple[int, int]:
        """Sends a prepared batch. Returns the number of good records, and their bytes. Raises what a producer
        raises."""
        if batch.packed and not prepared:
            self._producer.send_packed(batch)
            return sum(packed.records for packed in batch.packed), sum(len(packed.data) for packed in batch.packed)
        records = size = 0
        for prepared_batch, values, keys in prepared:
            if values:
                size += self._producer.send(prepared_batch, values, keys)
            records += len(values)
        if self._dead is not None:
            self._dead.send(self._producer)
        return records, size

    def _fits(self, batch: SourceBatch) -> bool:
        """Returns whether the topic takes the packed batch unchanged."""
        return max(len(packed.data) for packed in batch.packed) <= self._sizes_of(batch.topic).topic

    def _meet(self, batch: SourceBatch) -> None:
        """Makes sure that the batch's topic exists, with each partition that the batch names."""
        topic = batch.topic
        self._meet_topic(topic)
        if not self._reader.sets_aside:
            return
        numbers: Any = [packed.partition for packed in batch.packed] or batch.partitions or ()
        last: int = -1 if not numbers or None in numbers else max(numbers)
        if last >= self._producer.known_partitions(topic):
            there = self._producer.partitions(topic, last + 1)
            if last >= there:
                raise TopicRefused(f"topic {topic} has {there} partitions, and a record names partition {last}")

    def _meet_topic(self, topic: str) -> None:
        if topic in self._topics:
            return
        if topic == self._forbidden:
            raise ConnectError(
                "Source tasks may not produce to their own offsets topics when exactly-once support is enabled"
            )
        if self._internal.has(topic):
            raise RunFailure(CONFIG_INVALID, InternalTopics.why(topic), retriable=False)
        admin = admin_properties(self._worker, self._config)
        plan = contract.TOPIC_PLAN.of(self._reader.topic_plan, topic)
        ensure_topic(topic, self._producer.partitions, admin, self._worker, self._config, plan=plan)
        self._topics.add(topic)

    def _sizes_of(self, topic: str) -> Sizes:
        """Returns the size limits of a record for a topic. Queries the topic's own limit only if a record that is too
        large may be passed over, or its topic set aside; else the brokers' refusal fails the task all the same."""
        size = self._sizes.get(topic)
        if size is None:
            size = Sizes(self._producer.request_bytes)
            if self._reader.sets_aside and not self._policy.tolerant:
                self._meet_topic(topic)
                ask = partial(self._producer.most_message_bytes, topic)
                size = Sizes(self._producer.request_bytes, ask(), self._producer.codec or 0, ask)
            elif self._policy.tolerant:
                self._meet_topic(topic)
                admin = admin_properties(self._worker, self._config)
                size = record_sizes(topic, admin, self._producer.request_bytes, self._producer.codec or 0)
            self._sizes[topic] = size
        return size

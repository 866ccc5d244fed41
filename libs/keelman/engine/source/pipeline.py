"""Takes what a source's reader gave to the producer: transformed and converted, bad records as the policy says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from keelman.api.copy.v1.ticket_pb2 import DELIVERY_GUARANTEE_EXACTLY_ONCE, StartTicket
from keelman.connect import contract
from keelman.connect.bad_records.tolerance import Policy
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import Reader
from keelman.connect.records import SourceBatch
from keelman.engine.clients import admin_properties
from keelman.engine.control import Control, GaveUp
from keelman.engine.dead_letters.writer import DeadLetterWriter
from keelman.engine.records.bad_records import BadRecords, Counts
from keelman.engine.records.size import Sizes
from keelman.engine.source.conversion import SourceConversion, without_steps
from keelman.engine.source.producer import RunProducer
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
        self._topics: set[str] = set()
        self._sizes: dict[str, Sizes] = {}
        self._dead: DeadLetterWriter | None = None
        if self._policy.keeps_dead_letters:
            self._dead = DeadLetterWriter(self._bad, worker, config)

    @property
    def plain(self) -> bool:
        """Whether records may go as they are packed: without transforms."""
        return self._conversion.plain

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; one that is not there is made first. Raises as `send`."""
        self._meet_topic(topic)
        return self._producer.known_partitions(topic)

    def batch_bytes(self, topic: str) -> int:
        """How much one packed batch for the topic may take. Raises as `send`."""
        return min(self._producer.batch_bytes(topic), self._sizes_of(topic).least)

    def retry(self, work: Callable[[], T]) -> T:
        """What the work gives, tried again as the policy says. Raises GaveUp, and what the work raises."""
        return self._bad.retry(work)

    @property
    def counts(self) -> Counts:
        """What went wrong."""
        return self._bad.counts

    @property
    def topics(self) -> list[str]:
        """The topics that were written to, in their order."""
        return sorted(self._topics)

    def open(self, producer: RunProducer, reader: Reader) -> None:
        """Where the records go to, and who gives them. Raises KafkaException, RunFailure or ConnectError."""
        self._producer, self._reader = producer, reader
        if self._dead is not None:
            self._dead.ensure(producer)

    def send(self, batch: SourceBatch) -> tuple[int, int]:
        """Sends a batch; its good records, and their bytes. Raises RecordRefused, RunFailure, GaveUp before any of
        it is sent, and what a producer raises."""
        if batch.packed:
            self._meet_topic(batch.topic)
            self._producer.send_packed(batch)
            return sum(one.records for one in batch.packed), sum(len(one.data) for one in batch.packed)
        records = size = 0
        try:
            converted = list(self._conversion.payloads(batch))
        except GaveUp:
            self._bad.give_up()
            raise
        for made, values, keys in converted:
            if values:
                self._meet_topic(made.topic)
                size += self._producer.send(made, values, keys)
            records += len(values)
        if self._dead is not None:
            self._dead.send(self._producer)
        return records, size

    def _meet_topic(self, topic: str) -> None:
        if topic in self._topics:
            return
        if topic == self._forbidden:
            raise ConnectError(
                "Source tasks may not produce to their own offsets topics when exactly-once support is enabled"
            )
        admin = admin_properties(self._worker, self._config)
        plan = contract.TOPIC_PLAN.of(self._reader.topic_plan, topic)
        ensure_topic(topic, self._producer.partitions, admin, self._worker, self._config, plan=plan)
        self._topics.add(topic)

    def _sizes_of(self, topic: str) -> Sizes:
        """What a record for a topic may take. The topic itself is asked where a record that is too large may be passed
        over; else the brokers' refusal fails the task all the same."""
        found = self._sizes.get(topic)
        if found is None:
            found = Sizes(self._producer.request_bytes)
            if self._policy.tolerant:
                self._meet_topic(topic)
                admin = admin_properties(self._worker, self._config)
                found = record_sizes(topic, admin, self._producer.request_bytes, self._producer.codec or 0)
            self._sizes[topic] = found
        return found

"""A producer under one copy run: how records are queued and delivered, whatever commits them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from keelman.connect.records import SourceBatch
from keelman.engine.control import Control
from keelman.engine.failure import RunFailure, judge_kafka

COORDINATOR = "TxnCoordinator"

OffsetRecord = tuple[bytes, bytes | None]

# Bounded so that a copy of any size stays small: 32 MB of payload wait at most, and each has 100 bytes of overhead.
PRODUCER_DEFAULTS: dict[str, Any] = {
    "partitioner": "murmur2_random",
    "linger.ms": 5,
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 32_768,
    "message.max.bytes": 1_048_576,
    "compression.type": "none",
    "enable.idempotence": True,
    "acks": "all",
    "delivery.report.only.error": True,
    "socket.nagle.disable": True,
}


class Outlet(ABC):
    """A producer under one copy run. One thread uses it; every wait beats, so that a cut is heard within a second."""

    committed = False
    """Whether the last call of `commit` did commit, also when it raised after that."""

    def __init__(self, properties: dict[str, Any], control: Control) -> None:
        """Opens the producer. Raises KafkaException for properties that it refuses."""
        self._control = control
        self._failed: KafkaError | None = None
        self._coordinator_losses = 0
        settings = {**PRODUCER_DEFAULTS, **properties}
        settings["on_delivery"] = self._undelivered
        settings["error_cb"] = self._client_error
        self._producer: Producer | None = Producer(settings)

    @property
    def producer(self) -> Producer:
        """The open producer."""
        if self._producer is None:
            raise RunFailure("BROKER_LOST", "the producer was dropped")
        return self._producer

    @abstractmethod
    def fence(self) -> None:
        """Ends what a predecessor may still do. Raises RunFailure or KafkaException."""

    @abstractmethod
    def begin(self) -> None:
        """Makes ready for the first record of a commit."""

    @abstractmethod
    def commit(self, offset_topic: str, offsets: Sequence[OffsetRecord]) -> None:
        """Commits all that was sent since `begin`, with these offsets. Raises RunFailure or KafkaException."""

    @abstractmethod
    def abort(self) -> None:
        """Gives up what was sent since `begin`, as far as that can be done quickly."""

    def send(self, batch: SourceBatch, values: list[bytes | None], keys: list[bytes | None] | None) -> None:
        """Queues a batch, waiting for room as needed. Raises RunFailure when there is none for too long."""
        if batch.headers is None and batch.partitions is None and batch.timestamps_ms is None:
            if keys is None:
                messages = [{"value": v} for v in values]
            else:
                messages = [{"value": v, "key": k} for v, k in zip(values, keys, strict=True)]
            self._send_plain(batch.topic, messages)
        else:
            self._send_rich(batch, values, keys)
        self.producer.poll(0)
        self._check()

    def _send_plain(self, topic: str, messages: list[dict[str, Any]]) -> None:
        producer = self.producer
        started = time.monotonic()
        while messages:
            try:
                queued = producer.produce_batch(topic, messages)
            except BufferError:
                queued = 0
            if queued == len(messages):
                return
            error = messages[queued].get("_error")
            if error is not None and error.code() != KafkaError._QUEUE_FULL:
                raise KafkaException(error)
            messages = messages[queued:]
            for message in messages:
                message.pop("_error", None)
            self._make_room(started)

    def _send_rich(self, batch: SourceBatch, values: list[bytes | None], keys: list[bytes | None] | None) -> None:
        produce = self.producer.produce
        for index, value in enumerate(values):
            options: dict[str, Any] = {}
            if batch.partitions is not None and (partition := batch.partitions[index]) is not None:
                options["partition"] = partition
            if batch.timestamps_ms is not None and (timestamp := batch.timestamps_ms[index]) is not None:
                options["timestamp"] = timestamp
            if batch.headers is not None and batch.headers[index]:
                options["headers"] = list(batch.headers[index])
            key = None if keys is None else keys[index]
            self._until_room(lambda v=value, k=key, o=options: produce(batch.topic, v, k, **o))  # type: ignore[misc]

    def _until_room(self, produce: Callable[[], None]) -> None:
        started = time.monotonic()
        while True:
            try:
                return produce()
            except BufferError:
                self._make_room(started)

    def _make_room(self, started: float) -> None:
        self._control.beat()
        self.producer.poll(0.01)
        self._check()
        if time.monotonic() - started > self.patience_seconds:
            raise RunFailure("BROKER_LOST", f"the brokers took no records for {self.patience_seconds:.0f} s")

    patience_seconds = 30.0
    """How long the brokers may take no records before the run ends."""

    def _flush(self) -> None:
        """Waits until everything queued is delivered."""
        producer = self.producer
        started = time.monotonic()
        while producer.flush(0.5):
            self._control.beat()
            self._check()
            if time.monotonic() - started > self.patience_seconds:
                raise RunFailure("BROKER_LOST", f"records were not delivered within {self.patience_seconds:.0f} s")
        self._check()

    def _send_offsets(self, topic: str, offsets: Sequence[OffsetRecord]) -> None:
        for key, value in offsets:
            self._until_room(lambda k=key, v=value: self.producer.produce(topic, v, k))  # type: ignore[misc]

    def close(self) -> None:
        """Drops the producer without waiting for anything it still holds."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.poll(0)

    def _undelivered(self, error: KafkaError | None, _message: object) -> None:
        if error is not None and self._failed is None:
            self._failed = error

    def _client_error(self, error: KafkaError) -> None:
        if error.fatal() and self._failed is None:
            self._failed = error
        if COORDINATOR in error.str():
            self._coordinator_losses += 1

    def _check(self) -> None:
        if self._failed is not None:
            reason, retriable = judge_kafka(self._failed)
            raise RunFailure(reason, f"{self._failed.name()}: {self._failed.str()}", retriable=retriable)

"""The worker's own offset topic, kept beside a connector's: for tools that look there, and to go back to it one day."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from keelman.engine.control import Control
from keelman.engine.failure import RunFailure
from keelman.engine.outlet import OffsetRecord
from keelman.runtime.logging import get_logger

TOMBSTONE_SECONDS = 10.0
CLOSE_SECONDS = 2.0
# What it holds is a record now and then; the brokers may be another cluster's, so nothing waits for them.
DEFAULTS: dict[str, Any] = {
    "partitioner": "murmur2_random",
    "linger.ms": 5,
    "queue.buffering.max.messages": 1000,
    "enable.idempotence": True,
    "delivery.report.only.error": False,
    "message.timeout.ms": 30_000,
}

_log = get_logger()


class WorkerOffsets:
    """Writes offsets to the worker's topic in no transaction, best effort. One thread uses it.

    Connect's order: an offset that is deleted goes from the worker's topic first, since that is read for what the
    connector's topic does not have; all others are written there after they are committed in the connector's.
    """

    def __init__(self, topic: str, properties: dict[str, Any], control: Control, connector: str) -> None:
        """`properties` are those of the worker's own producers. The client is opened with the first offset."""
        self._topic = topic
        self._properties = {**properties, **DEFAULTS}
        for key in ("transactional.id", "transaction.timeout.ms", "delivery.timeout.ms", "acks", "retries"):
            self._properties.pop(key, None)
        self._control = control
        self._log = _log.bind(connector=connector, topic=topic)
        self._producer: Producer | None = None
        self._failure: str | None = None
        self._told = False

    def before_commit(self, offsets: Sequence[OffsetRecord]) -> None:
        """Deletes what is about to be deleted. Raises RunFailure: what stays here would come back to life."""
        deleted = [key for key, value in offsets if value is None]
        if not deleted:
            return
        self._failure = None
        for key in deleted:
            self._produce(key, None)
        producer = self._producer
        deadline = time.monotonic() + TOMBSTONE_SECONDS
        while producer is not None and producer.flush(0.5) and self._failure is None and time.monotonic() < deadline:
            self._control.beat()
        if self._failure is not None or producer is None or len(producer):
            why = self._failure or f"no answer in {TOMBSTONE_SECONDS:.0f} s"
            raise RunFailure("BROKER_LOST", f"offsets were not deleted from the worker's topic {self._topic}: {why}")

    def after_commit(self, offsets: Sequence[OffsetRecord]) -> None:
        """Writes what is committed; what fails is logged once, for the connector's own topic has it."""
        for key, value in offsets:
            if value is not None:
                self._produce(key, value)
        if self._producer is not None:
            self._producer.poll(0)

    def close(self) -> None:
        """Waits a moment for what was written last."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.flush(CLOSE_SECONDS)
            producer.purge()
            producer.poll(0)

    def _produce(self, key: bytes, value: bytes | None) -> None:
        try:
            if self._producer is None:
                self._producer = Producer(self._properties)
            self._producer.produce(self._topic, value, key, on_delivery=self._delivered)
        except (KafkaException, BufferError) as error:
            self._failed(str(error))

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            self._failed(error.str())

    def _failed(self, why: str) -> None:
        self._failure = why
        if not self._told:
            self._told = True
            self._log.warning("worker_offsets_not_written", error=why, note="the connector's own topic has them")

"""Where a source's records and offsets are committed: in one transaction at a time, or plainly for at-least-once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, Producer

from keelman.engine.control import Control
from keelman.engine.failure import RunFailure
from keelman.engine.outlet import COORDINATOR, OffsetRecord, Outlet
from keelman.runtime.logging import get_logger

SLOW_COMMIT_SECONDS = 1.0
COMMIT_SECONDS = 5.0
FENCE_SECONDS = 60.0
REACH_ATTEMPTS = 5
_log = get_logger()


class Transactions(Outlet):
    """Records and offsets in one transaction. After any failure the producer is of no further use."""

    fails_whole = True

    def __init__(
        self, properties: dict[str, Any], control: Control, *, timeout_seconds: float, tells: bool = False
    ) -> None:
        """`properties` name the transactional.id; an open transaction of ours ends by itself after the time-out, which
        is theirs where they have one.
        """
        properties.setdefault("transaction.timeout.ms", round(timeout_seconds * 1000))
        timeout_ms = int(properties["transaction.timeout.ms"])
        self.patience_seconds = max(1.0, timeout_ms / 1000 - 1)
        if "delivery.timeout.ms" in properties:  # no record may outlive its transaction: the client refuses it
            properties["delivery.timeout.ms"] = min(int(properties["delivery.timeout.ms"]), timeout_ms)
        # A lost connection to the coordinator is in the client's log only: it repeats requests without an error.
        properties["logger"] = ClientLog(self._noted)
        super().__init__(properties, control, tells=tells)
        self._losses_before = 0
        self._open = False

    def fence(self, topic: str) -> None:
        """`init_transactions`: ends the predecessor's transaction and shuts its producer out.

        The client lets its bootstrap connection go as soon as it knows the brokers. An `init_transactions` that comes
        before it has another finds no broker and looks again half a second later.
        """
        reach(self.producer, topic, self._control)
        deadline = time.monotonic() + FENCE_SECONDS
        while True:
            self._control.beat()
            try:
                self.producer.init_transactions(1.0)
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise

    def begin(self) -> None:
        """Begins a transaction."""
        if not self._open:
            self.producer.poll(0)
            self._losses_before = self._coordinator_losses
            self.producer.begin_transaction()
            self._open = True

    def commit(self, offset_topic: str, offsets: Sequence[OffsetRecord]) -> None:
        """Sends the offsets and commits.

        A commit that was slow or saw its coordinator disconnect ends the producer even when it succeeded: librdkafka
        repeats EndTxn inside it, and without an epoch a transaction of its own a repeated one could meet the next
        transaction. The caller tells a RunFailure after a success by `committed`.
        """
        self.committed = False
        self._send_offsets(offset_topic, offsets)
        self._flush()
        self._control.beat()
        started = time.monotonic()
        self.producer.commit_transaction(COMMIT_SECONDS)
        took = time.monotonic() - started
        self._open = False
        self.committed = True
        self.producer.poll(0)
        self._judge_end("a commit", took)

    def abandon(self) -> None:
        """Aborts the open transaction because its connector asked for it; the producer stays of use.

        Nothing of the offset topic is in it, for offsets are sent with a commit only. A slow abort ends the producer as
        a slow commit does.
        """
        if not self._open:
            return
        self._flush()  # an abort before the coordinator knows the transaction is an error that ends the producer
        started = time.monotonic()
        while True:
            self._control.beat()
            try:
                self.producer.abort_transaction(1.0)
                break
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() - started > COMMIT_SECONDS:
                    raise
        took = time.monotonic() - started
        self._open = False
        self.producer.poll(0)
        self._judge_end("an abort", took)

    def _judge_end(self, what: str, took: float) -> None:
        if took > SLOW_COMMIT_SECONDS:
            raise RunFailure("COMMIT_SLOW", f"{what} took {took:.1f} s; the producer is not used again")
        if self._coordinator_losses != self._losses_before:
            raise RunFailure("BROKER_LOST", "the transaction coordinator disconnected; the producer is not used again")

    def _noted(self, facility: str, text: str) -> None:
        if facility == "FAIL" and f"{COORDINATOR}:" in text:
            self._coordinator_losses += 1

    def abort(self) -> None:
        """Aborts an open transaction, so that readers of its partitions need not wait for its time-out."""
        if self._open and self._producer is not None:
            self._open = False
            self._producer.purge()
            self._producer.abort_transaction(2.0)

    def close(self) -> None:
        """Drops the producer; what it still complains of changes nothing any more."""
        with suppress(KafkaException, SystemError):
            super().close()


def reach(producer: Producer, topic: str, control: Control) -> None:
    """Returns once a broker under its own id, not one of the bootstrap addresses, has said where the topic is.

    A few attempts only: what comes next reports the brokers' trouble better. Raises CutShort.
    """
    for _ in range(REACH_ATTEMPTS):
        control.beat()
        with suppress(KafkaException):
            if producer.list_topics(topic, 1.0).orig_broker_id >= 0:
                return


class ClientLog:
    """Takes the client library's log, in the thread that polls; has the one method of a logger that is called."""

    def __init__(self, note: Callable[[str, str], None]) -> None:
        """`note` is told facility and text of every line."""
        self._note = note

    def log(self, level: int, _format: str, facility: str, client: str, text: str) -> None:
        """One line, under Python's level."""
        self._note(facility, text)
        if level >= logging.WARNING:
            _log.warning("client_trouble", client=client, facility=facility, text=text)


class PlainOutlet(Outlet):
    """At-least-once: records first, then their offsets, each delivered before the next step."""

    def fence(self, topic: str) -> None:
        """Nothing can be fenced without transactions."""
        if topic:
            reach(self.producer, topic, self._control)

    def begin(self) -> None:
        """Nothing to begin."""

    def commit(self, offset_topic: str, offsets: Sequence[OffsetRecord]) -> None:
        """Waits for the records, then for the offsets."""
        self.committed = False
        self._flush()
        if offsets and offset_topic:
            self._send_offsets(offset_topic, offsets)
            self._flush()
        self.committed = True

    def abort(self) -> None:
        """What was sent may stand; without its offsets it will be sent again."""

"""A producer under one copy run: how records are queued and delivered, whatever commits them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import repeat
from operator import length_hint
from typing import Any, cast

from confluent_kafka import KafkaError, Message, Producer

from keelman.connect.records import Headers, SourceBatch
from keelman.engine.control import Control
from keelman.engine.failure import RunFailure, judge_kafka

COORDINATOR = "TxnCoordinator"
ANY_PARTITION = -1
NOW = 0

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
    # Half of it is how long the client waits between its first two connections: 50 ms by its own default.
    "reconnect.backoff.ms": 20,
    # The histograms that a client keeps for its brokers' telemetry are a third of what a small loop's producer holds.
    "enable.metrics.push": False,
}


class Outlet(ABC):
    """A producer under one copy run. One thread uses it; every wait beats, so that a cut is heard within a second."""

    fails_whole = False
    """Whether a commit fails when any record was not delivered, so that nobody needs to look at each."""
    committed = False
    """Whether the last call of `commit` did commit, also when it raised after that."""

    def __init__(self, properties: dict[str, Any], control: Control, *, tells: bool = False) -> None:
        """Opens the producer; with `tells` batches may ask to be told of deliveries (SourceBatch.delivered).

        Raises KafkaException for properties that it refuses.
        """
        self._control = control
        self._failed: KafkaError | None = None
        self._coordinator_losses = 0
        settings = {**PRODUCER_DEFAULTS, **properties, "error_cb": self._client_error}
        if tells:
            settings["delivery.report.only.error"] = False
        if not tells or not self.fails_whole:
            # With every delivery reported this is a call of Python a record: only where a failure shows nowhere else.
            settings["on_delivery"] = self._undelivered
        self._producer: Producer | None = Producer(settings)

    @property
    def producer(self) -> Producer:
        """The open producer."""
        if self._producer is None:
            raise RunFailure("BROKER_LOST", "the producer was dropped")
        return self._producer

    @abstractmethod
    def fence(self, topic: str) -> None:
        """Connects, and ends what a predecessor may still do. Raises RunFailure or KafkaException.

        `topic` is one that will be written, empty when there is none yet: its place is known after this.
        """

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
        """Queues a batch, waiting for room as needed. Raises RunFailure when there is none for too long.

        The call of the client is most of what a record costs, so no line of Python runs for it: `map` calls the client
        with one column an argument, in the order of its arguments.
        """
        columns: list[tuple[Sequence[Any] | None, Any]] = [  # each with what stands for its absence
            (keys, None),
            (_filled(batch.partitions, ANY_PARTITION), ANY_PARTITION),
            (self._callbacks(batch.delivered, len(values)), None),
            (None, None),  # the client's second name for the callback
            (_filled(batch.timestamps_ms, NOW), NOW),
            (_listed(batch.headers), None),
        ]
        while columns and columns[-1][0] is None:
            columns.pop()
        self._produce_all(batch.topic, values, columns)
        self.producer.poll(0)
        self._check()

    def _produce_all(
        self, topic: str, values: Sequence[bytes | None], columns: Sequence[tuple[Sequence[Any] | None, Any]]
    ) -> None:
        produce = self.producer.produce
        rest = iter(values)
        given = [repeat(absent) if column is None else column for column, absent in columns]
        calls = map(produce, repeat(topic), rest, *given)
        while True:
            try:
                deque(calls, maxlen=0)
                return
            except BufferError:
                # The call that found no room has taken its arguments; it alone is made again.
                at = len(values) - length_hint(rest) - 1
                arguments = [absent if column is None else column[at] for column, absent in columns]
                self._until_room(partial(produce, topic, values[at], *arguments))

    def _callbacks(
        self, delivered: Mapping[int, Callable[[int, int], None]] | None, count: int
    ) -> list[Callable[[KafkaError | None, Message], None] | None] | None:
        if not delivered:
            return None
        found: list[Callable[[KafkaError | None, Message], None] | None] = [None] * count
        for index, tell in delivered.items():
            found[index] = partial(self._delivered, tell)
        return found

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
            self._until_room(partial(self.producer.produce, topic, value, key))

    def close(self) -> None:
        """Drops the producer without waiting for anything it still holds."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.poll(0)

    def _delivered(self, tell: Callable[[int, int], None], error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            self._undelivered(error, message)
        else:
            tell(partition, offset)

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


def _filled(column: Sequence[int | None] | None, absent: int) -> Sequence[int] | None:
    if column is None or None not in column:
        return cast("Sequence[int] | None", column)
    return [absent if one is None else one for one in column]


def _listed(column: Sequence[Headers | None] | None) -> Sequence[list[tuple[str, bytes | None]] | None] | None:
    """The client takes lists only."""
    if column is None or set(map(type, column)) <= {list, type(None)}:
        return cast("Sequence[list[tuple[str, bytes | None]] | None] | None", column)
    return [list(one) if one else None for one in column]

"""Queues the batches of one partition in order, with the sequence numbers by which a broker recognises them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from keelman.kafka.batches.produce_failure import delay, first_delay
from keelman.kafka.batches.record_batch import SEQUENCES, halves, stamp

FORGOTTEN_SECONDS = 1.0
"""After such a pause a broker may have forgotten the producer: producer.id.expiration.ms, a day unless set."""


@dataclass(slots=True, eq=False)
class QueuedBatch:
    """`number` orders the batches of a producer; the range from `number` to `number` + `width` is this batch's alone.
    `queued_at` is in the loop's time; a sequence of -1 means none yet."""

    data: bytearray
    records: int
    number: float
    queued_at: float
    on_stored: Callable[[int], None] | None
    sequence: int = -1
    width: float = 1.0


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """A producer's identity for the brokers; all -1 for a producer that is not idempotent."""

    producer_id: int = -1
    epoch: int = -1


@dataclass(slots=True, eq=False)
class PartitionQueue:
    """`waiting` and `in_flight` are each in order; only batches to be sent again can overlap."""

    topic: str
    partition: int
    waiting: deque[QueuedBatch] = field(default_factory=deque)
    in_flight: deque[QueuedBatch] = field(default_factory=deque)
    node: int = -1
    """The broker of the batches in flight."""
    retry_at: float = 0.0
    problem: int = 0
    """The newest error code since the last success; `problem_text` is its message."""
    problem_text: str = ""
    _tries: int = 0
    _identity: ProducerIdentity = field(default_factory=ProducerIdentity)
    _sequence: int = 0
    _proven: int = -1
    _sent_at: float = 0.0

    def may_send(self, now: float, identity: ProducerIdentity) -> bool:
        """Whether the first waiting batch may be sent now.

        A repeated batch is sent alone, so that none that was sent before overtakes it. Nor is anything sent
        beside the first batch that this producer id ever sends to the partition, or sends after a pause: a broker that
        does not know a producer accepts any sequence number as its first, so it could store a second batch without
        the first.
        """
        if not self.waiting or now < self.retry_at:
            return False
        if not self.in_flight:
            if now - self._sent_at > FORGOTTEN_SECONDS:
                self._proven = -1
            self._sent_at = now
            return True
        return self.waiting[0].sequence < 0 and identity.producer_id >= 0 and self._proven == identity.producer_id

    def take(self, identity: ProducerIdentity, *, transactional: bool) -> QueuedBatch:
        """Returns the first waiting batch, stamped and from now on in flight."""
        batch = self.waiting.popleft()
        if batch.sequence < 0:
            if identity != self._identity:
                self._identity, self._sequence = identity, 0
            if identity.producer_id >= 0:
                batch.sequence = self._sequence
                self._sequence = (self._sequence + batch.records) % SEQUENCES
            stamp(batch.data, identity.producer_id, identity.epoch, batch.sequence, transactional=transactional)
        self.in_flight.append(batch)
        return batch

    def delivered(self, batch: QueuedBatch) -> None:
        """Records that the batch is in the log."""
        self.in_flight.remove(batch)
        self._proven = self._identity.producer_id
        self._tries = self.problem = 0
        self.problem_text = ""

    def again(self, batch: QueuedBatch) -> None:
        """Moves a batch in flight back to its place among the waiting ones."""
        self.in_flight.remove(batch)
        at = 0
        while at < len(self.waiting) and self.waiting[at].number < batch.number:
            at += 1
        self.waiting.insert(at, batch)

    def split(self, batch: QueuedBatch, *, transactional: bool) -> tuple[QueuedBatch, QueuedBatch]:
        """Replaces a waiting batch of several records by two, with the same sequence numbers."""
        (first, some), (second, rest) = halves(batch.data)
        width, who = batch.width / 2, self._identity
        # A batch's listener counts from its first record to its last. Another producer's batch may come between the
        # two: then offsets of the second come out too low, which is safe for callers that record a copy's progress.
        parts = (
            QueuedBatch(first, some, batch.number, batch.queued_at, batch.on_stored, batch.sequence, width),
            QueuedBatch(second, rest, batch.number + width, batch.queued_at, None, batch.sequence, width),
        )
        if batch.sequence >= 0:
            parts[1].sequence = (batch.sequence + some) % SEQUENCES
            for part in parts:
                stamp(part.data, who.producer_id, who.epoch, part.sequence, transactional=transactional)
        at = self.waiting.index(batch)
        self.waiting.remove(batch)
        for part in reversed(parts):
            self.waiting.insert(at, part)
        return parts

    def hold(self, now: float, code: int, text: str) -> None:
        """Sends nothing for a while, for this reason."""
        self.problem, self.problem_text = code, text
        self.retry_at = now + delay(self._tries, first_delay(code))
        self._tries += 1

    def follows_another(self, batch: QueuedBatch) -> bool:
        """Whether an earlier batch is not delivered yet."""
        first = [batches[0].number for batches in (self.waiting, self.in_flight) if batches]
        return min(first, default=batch.number) < batch.number

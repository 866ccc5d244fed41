"""Writes dead letters: a source's with its records; a sink's in its writer's transactions if these use the same
brokers, else by a separate producer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from keelman.connect.bad_records.dead_letter import RECORD_BYTES, LetterProducer
from keelman.connect.bad_records.tolerance import shortened
from keelman.connect.records import Column, Headers, SourceBatch
from keelman.engine.clients import admin_properties
from keelman.engine.control import Control
from keelman.engine.producing.producer_options import REQUEST_BYTES, producer_options
from keelman.engine.producing.transactions import AtLeastOnceProducer
from keelman.engine.records.bad_records import BadRecords, Letter
from keelman.engine.records.size import Sizes, record_bytes
from keelman.engine.topics import ensure_dead_letter_topic, record_sizes
from keelman.kafka.properties.connector_clients import merged

SHORTER = (1_000, 100, 1)
"""The characters kept of a trace, then of a message, if there is no room for more."""


class DeadLetterWriter:
    """The topic of one task's dead letters; used by its thread alone."""

    def __init__(self, bad: BadRecords, worker: Mapping[str, str], config: Mapping[str, str]) -> None:
        self._bad = bad
        self._topic = bad.policy.dead_letters
        self._admin = admin_properties(worker, config)
        self._config = config
        self.sizes = Sizes(REQUEST_BYTES)
        """The size limits of a dead letter; set by `ensure`."""

    def ensure(self, producer: LetterProducer) -> None:
        """Creates the topic if it is missing. Raises KafkaException, RunFailure or ConnectError."""
        ensure_dead_letter_topic(self._topic, producer.partitions, self._admin, self._config)
        self.sizes = record_sizes(self._topic, self._admin, producer.request_bytes)

    def send(self, producer: LetterProducer) -> int:
        """Queues the new dead letters. Returns their number."""
        letters = self._bad.take_letters()
        if letters:
            keys, values, headers = map(list, zip(*map(self.row, letters), strict=True))
            times = [letter.original.timestamp_ms for letter in letters]
            batch = SourceBatch(
                self._topic, Column(values), Column(keys), timestamps_ms=times, headers=headers, raw=True
            )
            producer.send(batch, values, keys)
        return len(letters)

    def row(self, letter: Letter) -> tuple[bytes | None, bytes | None, Headers]:
        """Returns key, value and headers. Leaves out parts without room: first of trace and message, then the value,
        the record's headers, its key, and at last all of its description but its size."""
        own = letter.original
        size = letter.size
        if size is None:
            for context in self._contexts(letter, None):
                headers = [*own.headers, *context]
                if self.sizes.room(record_bytes(own.key, own.value, headers)):
                    return own.key, own.value, headers
            size = record_bytes(own.key, own.value, own.headers)
        attempts: Sequence[tuple[bytes | None, Headers]] = ((own.key, own.headers), (own.key, ()), (None, ()))
        for key, kept_headers in attempts:
            for context in self._contexts(letter, size):
                if self.sizes.room(record_bytes(key, None, [*kept_headers, *context])):
                    return key, None, [*kept_headers, *context]
        return None, None, [(RECORD_BYTES, str(size).encode())]

    def _contexts(self, letter: Letter, size: int | None) -> Iterator[Headers]:
        """Yields descriptions of the error, each shorter than the previous one."""
        yield self._bad.context(letter, size)
        reason = letter.why
        for most in SHORTER:
            reason = replace(reason, trace=shortened(reason.trace, most))
            yield self._bad.context(replace(letter, why=reason), size)
        for most in SHORTER:
            reason = replace(reason, message=None if reason.message is None else shortened(reason.message, most))
            yield self._bad.context(replace(letter, why=reason), size)


class JoinedDeadLetterWriter(DeadLetterWriter):
    """Writes in the transactions of a sink's writer, which owns the producer: together with the records' offsets."""

    def __init__(
        self, bad: BadRecords, worker: Mapping[str, str], config: Mapping[str, str], producer: LetterProducer
    ) -> None:
        super().__init__(bad, worker, config)
        self._producer = producer

    def open(self) -> None:
        """Creates the topic if it is missing. Raises as `ensure`."""
        self.ensure(self._producer)

    def write(self) -> None:
        """Queues the new dead letters."""
        self.send(self._producer)

    def flush(self) -> None:
        """Does nothing: the writer's next commit includes the letters."""

    def close(self) -> None:
        """Does nothing: the writer owns the producer."""


class SinkDeadLetterWriter(DeadLetterWriter):
    """Writes with a separate producer, as Connect's `connector-dlq-producer-<connector>-<task>`."""

    def __init__(
        self, bad: BadRecords, worker: Mapping[str, str], config: Mapping[str, str], control: Control, *, client_id: str
    ) -> None:
        """Raises ConfigValueError for illegal producer properties."""
        super().__init__(bad, worker, config)
        self._producer = AtLeastOnceProducer(
            producer_options(merged(worker, config, "producer"), client_id=client_id), control
        )
        self._waiting = False

    def open(self) -> None:
        """Connects, and creates the topic if it is missing. Raises KafkaException, RunFailure or ProduceFailure."""
        self._producer.fence()
        self.ensure(self._producer)

    def write(self) -> None:
        """Queues the new dead letters."""
        self._waiting = bool(self.send(self._producer)) or self._waiting

    def flush(self) -> None:
        """Returns once all letters are in the topic. Raises ProduceFailure."""
        if self._waiting:
            try:
                self._producer.commit("", [])
            except BaseException:
                self._bad.counts.letters_failed += 1
                raise
            self._waiting = False

    def close(self) -> None:
        """Closes the producer."""
        self._producer.close()

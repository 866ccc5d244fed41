"""Turns the messages that a sink's consumer gave into a batch, with as much of each as the writer wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, Message

from keelman.connect.plugin import Writer
from keelman.connect.records import Column, Origin, SinkBatch
from keelman.connect.schema import OPTIONAL_BYTES
from keelman.engine.control import CutShort
from keelman.engine.progress import payload_bytes
from keelman.engine.records.bad_records import BadRecords
from keelman.engine.records.fused import Payloads
from keelman.engine.records.pieces import joined, origin_piece, ranges
from keelman.engine.sink.consumer.own_consumer import OwnRecords
from keelman.engine.sink.conversion import SinkConversion

_KIND, _TIME = itemgetter(0), itemgetter(1)


class BatchBuilder:
    """Builds columns with the task's converters: one pass in C over the messages for each, no loop in Python."""

    def __init__(self, config: Mapping[str, str], worker: Mapping[str, str], bad: BadRecords) -> None:
        """Raises ConfigValueError when a converter is not legal."""
        self._conversion = SinkConversion(config, worker, bad)
        self._bad = bad
        self._places: list[int] | None = None

    def batch(self, messages: list[Message] | OwnRecords, writer: Writer) -> tuple[SinkBatch, int]:
        """The batch without bad records, and the bytes of all keys and values. Raises RecordRefused or RunFailure."""
        assert isinstance(messages, list), "a writer with its own consumer converts the records itself"
        conversion, raw = self._conversion, writer.wants_payloads
        values = list(map(Message.value, messages))
        size = payload_bytes(values)
        keys = None
        wants = not conversion.plain
        if writer.wants_keys or wants or not (raw or conversion.takes_any_key):
            keys = list(map(Message.key, messages))
            size += payload_bytes(keys)
        wants = wants or conversion.by_topic or not (raw or conversion.takes_any_header)
        came = origin(messages) if writer.wants_origin or wants else None
        self._bad.took(len(messages))
        batch = self._together(values, keys, came, raw=raw)
        if batch is None:
            keys = keys or list(map(Message.key, messages))
            batch = self._in_pieces(values, keys, came or origin(messages), raw=raw)
        if not writer.wants_keys:
            batch.keys = None
        return batch, size

    def _together(self, values: Payloads, keys: Payloads | None, came: Origin | None, *, raw: bool) -> SinkBatch | None:
        """All records at once; None where some of them is a bad one, which shows when they are converted one by one."""
        try:
            batch = self._conversion.batch(values, keys, came, raw=raw)
        except CutShort:
            raise
        except Exception:  # the record at fault will raise it again
            return None
        self._places = self._conversion.places
        return batch

    def _in_pieces(self, values: Payloads, keys: Payloads, came: Origin, *, raw: bool) -> SinkBatch:
        parts: list[SinkBatch] = []
        places: list[int] = []
        for begin, end in ranges(len(values)):
            piece = values[begin:end], keys[begin:end], origin_piece(came, begin, end)
            self._bad.beat()
            batch = self._together(*piece, raw=raw)
            parts.append(self._conversion.one_by_one(*piece, raw=raw) if batch is None else batch)
            piece_places = self._conversion.places
            places += range(begin, end) if piece_places is None else [begin + place for place in piece_places]
        self._places = places
        return joined(parts)

    def place(self, index: int) -> int:
        """Returns the index, among the last messages, of the record with this index in their batch."""
        return index if self._places is None else self._places[index]


class RawColumns:
    """Builds batches for writers that convert themselves."""

    def __init__(self, bad: BadRecords) -> None:
        self._bad = bad

    def batch(self, messages: list[Message] | OwnRecords, _writer: Writer) -> tuple[SinkBatch, int]:
        """All of them as they are in Kafka, and the bytes of all keys and values. Those of a consumer of the writer's
        own are the batch's values as they are."""
        if isinstance(messages, OwnRecords):
            self._bad.took(len(messages))
            whole: Any = messages
            return SinkBatch(Column(whole, OPTIONAL_BYTES)), messages.size
        values, keys = list(map(Message.value, messages)), list(map(Message.key, messages))
        self._bad.took(len(messages))
        sink_batch = SinkBatch(Column(values, OPTIONAL_BYTES), Column(keys, OPTIONAL_BYTES), origin(messages))
        return sink_batch, payload_bytes(values) + payload_bytes(keys)

    def place(self, index: int) -> int:
        """Where the record with this index was among the messages."""
        return index


def origin(messages: list[Message]) -> Origin:
    """Where each message came from."""
    stamps = list(map(Message.timestamp, messages))
    times: list[int | None] = list(map(_TIME, stamps))
    if TIMESTAMP_NOT_AVAILABLE in map(_KIND, stamps):
        times = [time if kind != TIMESTAMP_NOT_AVAILABLE else None for kind, time in stamps]
    return Origin(
        list(map(Message.topic, messages)),
        list(map(Message.partition, messages)),
        list(map(Message.offset, messages)),
        times,
        list(map(Message.headers, messages)),
    )


def split_errors(
    messages: list[Message] | OwnRecords,
) -> tuple[list[Message] | OwnRecords, Sequence[tuple[Message, KafkaError]]]:
    """The records, and the events among them with their errors; each in their order."""
    if isinstance(messages, OwnRecords):
        return messages, messages.events
    errors = list(map(Message.error, messages))
    if not any(errors):
        return messages, []
    pairs = list(zip(messages, errors, strict=True))
    return [m for m, error in pairs if error is None], [(m, error) for m, error in pairs if error is not None]

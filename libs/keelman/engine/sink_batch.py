"""Turns the messages that a sink's consumer gave into a batch, with as much of each as the writer wants."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, Message

from keelman.connect.plugin import Writer
from keelman.connect.records import Origin, SinkBatch
from keelman.engine.conversion import SinkConversion
from keelman.engine.progress import payload_bytes


class Columns:
    """Builds columns with the task's converters: one pass in C over the messages for each, no loop in Python."""

    def __init__(self, config: Mapping[str, str], worker: Mapping[str, str]) -> None:
        """Raises ConfigValueError when a converter is not legal."""
        self._conversion = SinkConversion(config, worker)

    def batch(self, messages: list[Message], writer: Writer) -> tuple[SinkBatch, int]:
        """The batch, and the bytes of its keys and values. Raises DataError."""
        values = list(map(Message.value, messages))
        size = payload_bytes(values)
        keys = None
        wants = not self._conversion.plain
        if writer.wants_keys or wants:
            keys = list(map(Message.key, messages))
            size += payload_bytes(keys)
        came = origin(messages) if writer.wants_origin or wants else None
        return self._conversion.batch(values, keys, came, raw=writer.wants_payloads), size


def origin(messages: list[Message]) -> Origin:
    """Where each message came from."""
    times = map(Message.timestamp, messages)
    return Origin(
        list(map(Message.topic, messages)),
        list(map(Message.partition, messages)),
        list(map(Message.offset, messages)),
        [time if kind != TIMESTAMP_NOT_AVAILABLE else None for kind, time in times],
        list(map(Message.headers, messages)),
    )


def sorted_out(messages: list[Message]) -> tuple[list[Message], list[tuple[Message, KafkaError]]]:
    """The records, and the events among them with what they tell; each in their order."""
    errors = list(map(Message.error, messages))
    if not any(errors):
        return messages, []
    pairs = list(zip(messages, errors, strict=True))
    return [m for m, error in pairs if error is None], [(m, error) for m, error in pairs if error is not None]

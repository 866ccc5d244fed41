"""Reads ranges of offsets inside a Spark job: the rows of a sink that Spark writes for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from keelman.engine.clients import restored, with_token

SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>"
)
BATCH_RECORDS = 5_000
SILENT_SECONDS = 60.0


class Range(NamedTuple):
    """Offsets of one partition, from `begin` to before `end`."""

    topic: str
    partition: int
    begin: int
    end: int


def range_work(
    ranges: Sequence[Range], readers: int, properties: Mapping[str, str]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for mapInArrow over rows 0 to `readers` - 1: each reads every so manieth range.

    `properties` are the consumers' settings, made `portable`.
    """

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        from keelman.engine.sink.ranges import rows  # noqa: PLC0415  (this closure is pickled by value)

        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from rows(ranges[number::readers], properties)

    return work


def rows(ranges: Sequence[Range], properties: Mapping[str, str]) -> Iterator[Any]:
    """Arrow batches of the schema above. Raises KafkaException, TimeoutError when the brokers are silent."""
    consumer = Consumer({**with_token(restored(properties)), "enable.partition.eof": True, "enable.auto.commit": False})
    try:
        for stretch in ranges:
            yield from _range(consumer, stretch)
    finally:
        consumer.close()


def _range(consumer: Consumer, stretch: Range) -> Iterator[Any]:
    consumer.assign([ClientPartition(stretch.topic, stretch.partition, stretch.begin)])
    heard = time.monotonic()
    at = stretch.begin
    while at < stretch.end:
        consumed = consumer.consume(min(BATCH_RECORDS, stretch.end - at), 1.0)
        messages = [message for message in consumed if message.error() is None]
        if messages:
            at = messages[-1].offset() + 1
        if len(messages) < len(consumed):
            # Behind the last record may be the mark of a transaction.
            at = max(at, *(_end(message) for message in consumed if message.error() is not None))
        if at > stretch.end:
            messages = [message for message in messages if message.offset() < stretch.end]
        if consumed:
            heard = time.monotonic()
        elif time.monotonic() - heard > SILENT_SECONDS:
            raise TimeoutError(
                f"no records of {stretch.topic}-{stretch.partition} from {at} for {SILENT_SECONDS:.0f} s"
            )
        if messages:
            yield batch(messages)


def _end(message: Message) -> int:
    """Returns the end of a partition that a message without a record tells. Raises KafkaException for an error."""
    error = message.error()
    if error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    return int(message.offset())


def batch(messages: Sequence[Message]) -> Any:
    """Messages of one partition as an Arrow batch."""
    import pyarrow as pa  # noqa: PLC0415  (only where Spark runs)

    count, first = len(messages), messages[0]
    stamps = pa.array([m.timestamp()[1] for m in messages], pa.timestamp("ms", "UTC"))
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([m.key() for m in messages], pa.binary()),
            "value": pa.array([m.value() for m in messages], pa.binary()),
            "topic": pa.repeat(pa.scalar(first.topic(), pa.string()), count),
            "partition": pa.repeat(pa.scalar(first.partition(), pa.int32()), count),
            "offset": pa.array([m.offset() for m in messages], pa.int64()),
            "timestamp": stamps.cast(pa.timestamp("us", "UTC")),
            "headers": _headers([m.headers() for m in messages]),
        }
    )


def _headers(headers: Sequence[Any]) -> Any:
    import pyarrow as pa  # noqa: PLC0415  (only where Spark runs)

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    if not any(headers):
        nowhere = pa.repeat(pa.scalar(0, pa.int32()), len(headers) + 1)
        return pa.ListArray.from_arrays(nowhere, pa.array([], header))
    return pa.array([[{"key": name, "value": value} for name, value in row or ()] for row in headers], pa.list_(header))

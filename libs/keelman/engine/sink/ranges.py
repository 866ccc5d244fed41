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
        messages: list[Message] = []
        for message in consumed:
            error, offset = message.error(), message.offset()
            if error is None:
                at = offset + 1
                if offset < stretch.end:
                    messages.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                at = max(at, offset)  # behind the last record may be the mark of a transaction
            else:
                raise KafkaException(error)
        if consumed:
            heard = time.monotonic()
        elif time.monotonic() - heard > SILENT_SECONDS:
            raise TimeoutError(
                f"no records of {stretch.topic}-{stretch.partition} from {at} for {SILENT_SECONDS:.0f} s"
            )
        if messages:
            yield batch(messages)


def batch(messages: Sequence[Message]) -> Any:
    """Messages as an Arrow batch."""
    import pyarrow as pa  # noqa: PLC0415  (only where Spark runs)

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([m.key() for m in messages], pa.binary()),
            "value": pa.array([m.value() for m in messages], pa.binary()),
            "topic": pa.array([m.topic() for m in messages], pa.string()),
            "partition": pa.array([m.partition() for m in messages], pa.int32()),
            "offset": pa.array([m.offset() for m in messages], pa.int64()),
            "timestamp": pa.array([m.timestamp()[1] * 1000 for m in messages], pa.timestamp("us", "UTC")),
            "headers": pa.array([_headers(m) for m in messages], pa.list_(header)),
        }
    )


def _headers(message: Message) -> list[dict[str, Any]]:
    return [{"key": name, "value": value} for name, value in message.headers() or ()]

"""Reads topics to ends that are known beforehand: for previews and dead letters, not for copying."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

Place = tuple[str, int]
"""A topic and the number of a partition."""
BATCH = 500
WAIT_SECONDS = 0.2


def read_to(
    consumer: Consumer, starts: Mapping[Place, int], ends: dict[Place, int], until: float
) -> Iterator[list[Message]]:
    """Yields the messages from `starts` to before `ends`, until all are read or the monotonic clock is at `until`.

    Removes each partition whose end is reached from `ends`: partitions left there were not read wholly. The caller may
    remove partitions of which it has enough. The consumer must have `enable.partition.eof`. Raises KafkaException.
    """
    for place in [unread for unread, end in ends.items() if starts[unread] >= end]:
        del ends[place]
    consumer.assign([ClientPartition(*place, starts[place]) for place in ends])
    while ends and time.monotonic() < until:
        messages = []
        for message in consumer.consume(BATCH, WAIT_SECONDS):
            place, error = (message.topic() or "", message.partition() or 0), message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                ends.pop(place, None)
            elif error is not None:
                if error.fatal() or not error.retriable():
                    raise KafkaException(error)
            elif place in ends:
                offset, end = message.offset() or 0, ends[place]
                if offset < end:
                    messages.append(message)
                if offset + 1 >= end:
                    del ends[place]
        if messages:
            yield messages


def time_ms(message: Message) -> int | None:
    """A message's timestamp in ms since 1970; None where it has none."""
    kind, timestamp = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else int(timestamp)

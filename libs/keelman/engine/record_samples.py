"""Reads a few real records of a connector as its tasks would read them, and does nothing with them: no group, no
transaction, no offset committed, no topic made."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect import contract
from keelman.connect.offsets import CommittedOffsets
from keelman.connect.plugin import Connector
from keelman.connect.policy.topics import InternalTopics
from keelman.connect.records import SourceBatch
from keelman.connect.tasks.source_task import SourceTask
from keelman.engine.clients import with_token
from keelman.engine.reading import Place, read_to, time_ms
from keelman.engine.records.size import NO_LIMIT
from keelman.engine.sink.consumer.consumer import sink_consumer_properties
from keelman.engine.sink.consumer.subscription import Subscription

T = TypeVar("T")
QUIET_SECONDS = 3.0
AGAIN_SECONDS = 0.05
ASK_SECONDS = 10.0
# Markers of transactions have offsets too: so far beyond the wanted records is read.
MARKERS = 10


class NoTarget:
    """Replaces the target of a reader that packs when no records are written."""

    def partitions(self, _topic: str) -> int:
        """One, as if it were there."""
        return 1

    def batch_bytes(self, _topic: str) -> int:
        """Any number."""
        return NO_LIMIT

    def retry(self, work: Callable[[], T]) -> T:
        """Once."""
        return work()


def source_records(
    kind: type[Connector],
    config: Mapping[str, str],
    tasks: Sequence[Mapping[str, str]],
    worker: Mapping[str, str],
    committed: CommittedOffsets,
    *,
    most: int,
    seconds: float,
) -> Iterator[tuple[SourceBatch, int]]:
    """The next records of a source, task after task, as batch and index: until there are enough, or no task has had
    any for a while. `config` is the connector's, `tasks` are those of its tasks. Raises ConnectError."""
    until, count = time.monotonic() + seconds, 0
    for number, own in enumerate(tasks):
        task = SourceTask(
            connector=committed.connector,
            task=number,
            config=own,
            worker=worker,
            exactly_once=False,
            committed=committed,
            target=NoTarget(),
            beat=lambda: None,
            dry=True,
        )
        whole = kind.completed({**config, **own}, worker)
        reader = contract.OPEN_READER.of(kind.open_task_reader, whole, task, committed.offset)
        try:
            reader.packs = False
            heard = time.monotonic()
            while count < most and time.monotonic() < min(until, heard + QUIET_SECONDS):
                reader.most_records = most - count
                batch = contract.READ.of(reader.read)
                if batch is None:
                    time.sleep(AGAIN_SECONDS)
                    continue
                heard = time.monotonic()
                for index in range(min(len(batch.values.values), most - count)):
                    yield batch, index
                    count += 1
        finally:
            reader.close()
        if count >= most or time.monotonic() > until:
            return


def sink_records(
    worker: Mapping[str, str],
    config: Mapping[str, str],
    name: str,
    *,
    most: int,
    begin: Literal["beginning", "end"],
    seconds: float,
) -> list[Message]:
    """The first or the last records of a sink's topics, about as many of each partition, in their order. Raises
    KafkaException, ConfigValueError."""
    subscription = Subscription(config, is_internal=InternalTopics(worker).has)
    properties = sink_consumer_properties(worker, config, name, 0, read_committed=True, zombie_seconds=0)
    del properties["group.instance.id"]
    consumer = Consumer({**with_token(properties), "client.id": f"connector-preview-{name}"})
    try:
        topics = consumer.list_topics(timeout=ASK_SECONDS).topics
        names = [name for name in subscription.names(topics) if name in topics]
        ends = {}
        for topic in names:
            for number in topics[topic].partitions:
                low, high = consumer.get_watermark_offsets(ClientPartition(topic, number), ASK_SECONDS)
                if high > low:
                    ends[topic, number] = (low, high)
        return _read(consumer, ends, most, begin, seconds)
    finally:
        consumer.close()


def _read(
    consumer: Consumer, ends: Mapping[Place, tuple[int, int]], most: int, begin: str, seconds: float
) -> list[Message]:
    if not ends:
        return []
    each = math.ceil(most / len(ends))
    starts = {
        place: low if begin == "beginning" else max(low, high - 2 * each - MARKERS)
        for place, (low, high) in ends.items()
    }
    messages: dict[Place, deque[Message] | list[Message]] = {
        place: [] if begin == "beginning" else deque(maxlen=each) for place in ends
    }
    left = {place: high for place, (_, high) in ends.items()}
    for batch in read_to(consumer, starts, left, time.monotonic() + seconds):
        for message in batch:
            place = message.topic() or "", message.partition() or 0
            messages[place].append(message)
            if begin == "beginning" and len(messages[place]) >= each:
                left.pop(place, None)
    every = sorted(
        (m for messages_of_place in messages.values() for m in messages_of_place),
        key=lambda message: time_ms(message) or 0,
    )
    return every[:most] if begin == "beginning" else every[-most:]

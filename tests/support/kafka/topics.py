"""Topics of a test: created, read and measured, with librdkafka."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from support.waiting import until

AT_ONCE = {"fetch.wait.max.ms": 10, "fetch.queue.backoff.ms": 10}
"""For a consumer that reads to an end: brokers delay the answer that there is no more by 500 ms by default."""


def commit(bootstrap: str, group: str, topic: str, offset: int, partition: int = 0) -> None:
    """Commits an offset for a group without members."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})

    def committed() -> bool:
        consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
        return True

    try:
        until(committed, f"group {group} has an offset")
    finally:
        consumer.close()


def create_topic(bootstrap: str, topic: str, partitions: int = 1, **config: str) -> None:
    """Creates a topic; returns once the broker has it."""
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=config)
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.create_topics([new])[topic].result(300)

    def led() -> int:
        return sum(
            partition.leader >= 0 for partition in client.list_topics(topic, 60).topics[topic].partitions.values()
        )

    until(lambda: led() == partitions, f"the broker knows {topic}")  # its controller answers before the broker does


def creation(client: Callable[[], AdminClient], new: NewTopic, seconds: float = 300.0) -> Callable[[], bool]:
    """A function that requests a topic and returns True. `client` gives the client of each request.

    It may be called again after a KafkaException: a topic that exists then was created by a request whose answer was
    lost.
    """
    again = False

    def create() -> bool:
        nonlocal again
        try:
            client().create_topics([new])[new.topic].result(seconds)
        except KafkaException as error:
            if not again or error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        finally:
            again = True
        return True

    return create


def add_partitions(bootstrap: str, topic: str, partitions: int) -> None:
    """Gives a topic this number of partitions in all."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.create_partitions([NewPartitions(topic, partitions)])[topic].result(300)


def ends_of(bootstrap: str, topic: str) -> dict[int, int]:
    """The end of each partition, with open transactions."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "look", "isolation.level": "read_uncommitted"}

    def told() -> dict[int, int] | None:
        consumer = Consumer(settings)  # a client that was refused once keeps using its former settings
        try:
            partitions = consumer.list_topics(topic, 30).topics[topic].partitions
            return {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=300)[1] for p in partitions}
        except KafkaException as error:  # the broker of a new topic may not know yet that it leads it
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                raise
            return None
        finally:
            consumer.close()

    return until(told, f"{topic} has leaders")


def messages(
    bootstrap: str, topic: str, isolation: str = "read_committed", *, stays_open: bool = False
) -> list[Message]:
    """Every record up to the present end, each partition in its order.

    A transaction that is about to end is waited for: a commit is answered before its markers are written. With
    `stays_open` there is a transaction that does not end, and only the records before it are returned.
    """
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "look",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        **AT_ONCE,
    }
    ends = {} if stays_open else ends_of(bootstrap, topic)
    consumer = Consumer({**settings, "isolation.level": isolation, "enable.partition.eof": True})
    open_ends = set(consumer.list_topics(topic, 30).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, p, 0) for p in open_ends])
    actual_messages: list[Message] = []
    deadline = time.monotonic() + 300
    while open_ends:
        assert time.monotonic() < deadline, f"{topic} was not read to its end"
        message = consumer.poll(0.2)  # `consume` would wait for its whole time, though there is no more
        if message is None:
            continue
        if message.error() is None:
            actual_messages.append(message)
            continue
        assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
        if message.offset() >= ends.get(message.partition(), 0):
            open_ends.discard(message.partition())
    consumer.close()
    return actual_messages

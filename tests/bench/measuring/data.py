"""The copied data and its arrival: records of 100 bytes in a file and a topic, ends of topics and files."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.kafka.topics import creation

LINE_BYTES = 100
# Clients that outlive their broker would log that every 50 ms.
QUIET = {"log_level": 0}
PARTITIONS = 4
LED_SECONDS = 60.0
VISIBLE_SECONDS = 300.0  # three brokers on a busy machine may need as long
# Answers for a topic that has just been created, a leader that moves, or a broker that is briefly away.
PASSES = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_CONTROLLER,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._WAIT_COORD,
    }
)


def line(number: int) -> bytes:
    """A numbered text of 99 bytes: with its line end, 100."""
    return (b"%012d keelman copies what it is given, one numbered line after another, " % number).ljust(
        LINE_BYTES - 1, b"."
    )


def write_lines(file: Path, count: int, start: int = 0) -> None:
    """A file of that many lines."""
    with file.open("wb") as stream:
        for first in range(start, start + count, 100_000):
            stream.write(b"".join(line(n) + b"\n" for n in range(first, min(first + 100_000, start + count))))


class Missed(Exception):
    """A measurement missed the effect that it measures: it is repeated."""


def passes(error: KafkaException) -> bool:
    """Whether the error passes by itself: a later request succeeds."""
    return error.args[0].code() in PASSES


class Topics:
    """Topics of one cluster."""

    def __init__(self, bootstrap: str, replication: int = 1) -> None:
        """`replication` is the replication factor of topics created here."""
        self._bootstrap = bootstrap
        self._replication = replication
        self._admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
        # Its watermarks are those of a reader of committed records: the last stable offset.
        self._looker = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "bench-look", "isolation.level": "read_committed", **QUIET}
        )

    def create(self, topic: str, partitions: int = PARTITIONS, **config: str) -> None:
        """Makes a topic and waits until each partition has a leader; keys of `config` have `_` for `.`."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(topic, num_partitions=partitions, replication_factor=self._replication, config=settings)
        deadline = time.monotonic() + LED_SECONDS
        self._made(new, deadline)
        while (led := self._led(topic)) < partitions:
            assert time.monotonic() < deadline, f"{led} of {partitions} partitions of {topic} have a leader"
            time.sleep(0.05)

    def delete(self, topic: str) -> None:
        """Deletes a topic if it is there."""
        try:
            self._admin.delete_topics([topic])[topic].result(60)
        except KafkaException:
            return

    def fill(self, topic: str, count: int) -> None:
        """Writes numbered records with keys, evenly over the partitions.

        Raises AssertionError unless all arrived once.
        """
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "linger.ms": 50,
                "batch.size": 1_000_000,
                "batch.num.messages": 100_000,
                "queue.buffering.max.messages": 1_000_000,
                "queue.buffering.max.kbytes": 262_144,
                **QUIET,
            }
        )
        for first in range(0, count, 50_000):
            messages = [
                {"value": line(n), "key": b"%08d" % (n % 10_000)} for n in range(first, min(first + 50_000, count))
            ]
            while messages:
                try:
                    done = producer.produce_batch(topic, messages)
                except BufferError:
                    done = 0
                messages = [{"value": m["value"], "key": m["key"]} for m in messages[done:]]
                if messages:
                    producer.poll(0.05)
            producer.poll(0)
        assert not producer.flush(120), f"not all of {count} records reached {topic}"
        there = self.visible(topic, self.partitions(topic))
        assert there == count, f"{topic} has {there} of {count} records"

    def partitions(self, topic: str) -> list[int]:
        """The topic's partitions; empty while there is no such topic."""
        actual_topic = self._looker.list_topics(topic, 20).topics.get(topic)
        return [] if actual_topic is None or actual_topic.error is not None else sorted(actual_topic.partitions)

    def visible(self, topic: str, partitions: list[int]) -> int:
        """The number of offsets that readers of committed records could read, over all partitions.

        Control records count. Transient errors are retried. Raises KafkaException.
        """
        return sum(self._end(TopicPartition(topic, partition)) for partition in partitions)

    def _end(self, partition: TopicPartition) -> int:
        deadline = time.monotonic() + VISIBLE_SECONDS
        while True:
            try:
                # A request to a former leader waits for its timeout: a short one reaches the next leader soon.
                return max(0, int(self._looker.get_watermark_offsets(partition, timeout=2)[1]))
            except KafkaException as error:
                if not passes(error) or time.monotonic() > deadline:
                    raise
            with contextlib.suppress(KafkaException):  # otherwise a partition with a missed leader stays so for minutes
                self._looker.list_topics(partition.topic, timeout=2)
            time.sleep(0.05)

    def _made(self, new: NewTopic, deadline: float) -> None:
        create = creation(lambda: self._admin, new)
        while True:
            try:
                create()
                return
            except KafkaException as error:
                if not passes(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def _led(self, topic: str) -> int:
        """The number of its partitions with a leader."""
        try:
            actual_topic = self._looker.list_topics(topic, 20).topics.get(topic)
        except KafkaException as error:
            if not passes(error):
                raise
            return 0
        return (
            0 if actual_topic is None else sum(partition.leader >= 0 for partition in actual_topic.partitions.values())
        )

    def first(self, topic: str) -> bytes:
        """The value of the first record of the first partition. Raises AssertionError when there is none."""
        reader = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "bench-read", **QUIET})
        try:
            reader.assign([TopicPartition(topic, 0, 0)])
            message = reader.poll(20)
        finally:
            reader.close()
        assert message is not None, f"there is nothing in {topic}"
        return message.value() or b""


async def arrival_rate(
    level: Callable[[], int], expected: int, *, per: float = 1.0, seconds: float = 600.0, quiet: float = 2.0
) -> float:
    """Records per second from the first observed arrival to the last.

    The function reads `level` ten times a second; the end is the first reading of a level that then stays for `quiet`
    seconds at or above `wanted`. `per` is the amount that one record adds to the level. Raises Missed if the first
    reading already shows everything.
    """
    deadline = time.monotonic() + seconds
    first: tuple[float, int] | None = None
    last = (time.monotonic(), 0)
    while True:
        now, value = time.monotonic(), await asyncio.to_thread(level)
        if value > 0 and first is None:
            first = (now, value)
        if value > last[1]:
            last = (now, value)
        elif value >= expected and now - last[0] > quiet:
            break
        assert now < deadline, f"only {value} of {expected} after {seconds} s"
        await asyncio.sleep(0.1)
    assert first is not None
    if first[1] >= expected:
        raise Missed("all of it had arrived when it was first looked at")
    return (last[1] - first[1]) / per / max(last[0] - first[0], 1e-3)

"""The harness's own requests to the broker, in blocking calls: topics, committed records, ends of partitions."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

Partition = tuple[str, int]
ANSWER_SECONDS = 300.0
LOOK = "look"
"""The client id of the harness: faults of the slots' links do not affect it."""


def common(bootstrap: str) -> dict[str, Any]:
    """Settings of each client of the harness: it reconnects soon, so that its own absence is not measured."""
    quiet = {"error_cb": lambda _: None, "log_level": 0}
    return {"bootstrap.servers": bootstrap, "client.id": LOOK, "reconnect.backoff.max.ms": 300, **quiet}


class Topics:
    """One broker, observed from outside. Safe in any thread."""

    def __init__(self, bootstrap: str) -> None:
        # A request for a missing topic must not make brokers create it with their own settings.
        self._base = {**common(bootstrap), "allow.auto.create.topics": False}
        self._admin = AdminClient(self._base)

    def create(self, name: str, partitions: int) -> None:
        """Creates a topic, with the cluster's number of replicas; returns once it exists."""
        topics = self._admin.create_topics([NewTopic(name, num_partitions=partitions)])
        topics[name].result(ANSWER_SECONDS)

    def make_anew(self, name: str, partitions: int) -> None:
        """Deletes a topic and creates another of its name."""
        self.create_once_gone(name, partitions, self.delete(name))

    def delete(self, name: str) -> str:
        """Deletes a topic, which may still exist for a moment; returns its id."""
        gone = self._id(name)
        self._admin.delete_topics([name])[name].result(ANSWER_SECONDS)
        return gone

    def create_once_gone(self, name: str, partitions: int, gone: str) -> None:
        """Creates a topic once its predecessor with this id is deleted, unless its writer has created it already."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return self.create(name, partitions)
            except KafkaException as error:  # the former topic is not quite deleted yet, or there is another
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)
            with contextlib.suppress(KafkaException):
                if self._id(name) != gone:
                    return None

    def _id(self, name: str) -> str:
        result = self._admin.describe_topics(TopicCollection([name]))[name].result(ANSWER_SECONDS)
        return str(result.topic_id)

    def add_partitions(self, name: str, to: int) -> None:
        """Gives a topic more partitions, up to this number."""
        self._admin.create_partitions([NewPartitions(name, to)])[name].result(ANSWER_SECONDS)

    def set(self, topics: Iterable[str], key: str, value: str) -> None:
        """Changes a property of each of these topics."""
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        config_resources = [ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry]) for name in topics]
        for done in self._admin.incremental_alter_configs(config_resources).values():
            done.result(ANSWER_SECONDS)

    def ends(self, partition: Partition) -> tuple[int, int]:
        """The last position that committed readers can see, and the end of the log."""
        return self.all_ends([partition])[partition]

    def all_ends(self, partitions: Sequence[Partition]) -> dict[Partition, tuple[int, int]]:
        """The same for many partitions; repeated while leaders move."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return self._all_ends(partitions)
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
                # After a leader's epoch has changed, the client keeps using the old one; a new client does not.
                self._admin = AdminClient(self._base)

    def _all_ends(self, partitions: Sequence[Partition]) -> dict[Partition, tuple[int, int]]:
        topic_partitions = [TopicPartition(*p) for p in partitions]
        results: list[dict[Partition, int]] = []
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
            answers = self._admin.list_offsets(
                {p: OffsetSpec.latest() for p in topic_partitions}, isolation_level=level
            )
            results.append({(p.topic, p.partition): a.result(ANSWER_SECONDS).offset for p, a in answers.items()})
        return {p: (stable, results[1][p]) for p, stable in results[0].items()}

    def partitions(self, topic: str) -> list[Partition]:
        """All partitions of a topic; empty if it does not exist."""
        present_topic = self._admin.list_topics(topic, ANSWER_SECONDS).topics[topic]
        return [] if present_topic.error is not None else [(topic, p) for p in present_topic.partitions]

    def read(self, partition: Partition, *, aborted: bool = False) -> list[tuple[int, bytes | None]]:
        """Offset and value of every record that committed readers see, with `aborted` also of aborted records.

        Raises AssertionError when it takes too long.
        """
        return [(m.offset(), m.value()) for m in self._messages(partition, aborted=aborted)]

    def by_key(self, partition: Partition) -> dict[bytes | None, list[bytes | None]]:
        """The values of each key that committed readers see, in their order."""
        answer: dict[bytes | None, list[bytes | None]] = {}
        for message in self._messages(partition):
            answer.setdefault(message.key(), []).append(message.value())
        return answer

    def table(self, partition: Partition) -> list[tuple[bytes, bytes]]:
        """The latest committed value of every key."""
        values = {m.key(): m.value() for m in self._messages(partition)}
        return [(key, value) for key, value in values.items() if value is not None]

    def _messages(self, partition: Partition, *, aborted: bool = False) -> list[Message]:
        stable, _ = self.ends(partition)
        consumer = self.consumer([partition], aborted=aborted)
        at = TopicPartition(*partition)
        messages: list[Message] = []
        deadline = time.monotonic() + ANSWER_SECONDS
        position = 0
        while position < stable:
            assert time.monotonic() < deadline, f"{partition} was not read to {stable}, only to {position}"
            messages += [m for m in consumer.consume(10_000, 0.2) if m.error() is None]
            position = max(0, consumer.position([at])[0].offset)
        consumer.close()
        return messages

    def consumer(self, partitions: Iterable[Partition], *, aborted: bool = False) -> Consumer:
        """Reads these from their beginning, committed records only or all."""
        level = "read_uncommitted" if aborted else "read_committed"
        settings = {"group.id": f"look-{uuid.uuid4()}", "isolation.level": level, "enable.auto.commit": False}
        consumer = Consumer({**self._base, **settings})
        consumer.assign([TopicPartition(t, p, 0) for t, p in partitions])
        return consumer

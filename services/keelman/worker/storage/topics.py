"""Gives a worker its three topics' tables and the writer that all of them share: the edge between a store and Kafka."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

from keelman.kafka.clients import admin_client
from keelman.kafka.tables.table import Row, TopicTable
from keelman.kafka.topics import topics_there
from keelman.kafka.writer import TopicWriter
from keelman.workers.properties.typed import WorkerProperties

READ_SECONDS = 60.0
"""For a read to the end of a topic at a start, or before a decision."""


class Topics(Protocol):
    """The topics that a store is built on: Kafka's, or memory for a standalone worker."""

    @property
    def writer(self) -> TopicWriter:
        """Writes outside of any transaction; open for as long as the store is used."""

    def table(self, topic: str, apply: Callable[[Row], None]) -> TopicTable:
        """A table that hands every record of the topic to `apply`. Called once for each topic."""


class KafkaTopics:
    """The topics of a worker in a group. Open it with `open`."""

    def __init__(self, writer: TopicWriter, partitions: Mapping[str, int]) -> None:
        """`partitions` is the number of partitions of each topic."""
        self.writer = writer
        self._partitions = partitions

    @staticmethod
    @contextlib.asynccontextmanager
    async def open(properties: WorkerProperties, *, client_id: str) -> AsyncIterator[KafkaTopics]:
        """Creates missing topics and opens the writer for the block.

        Raises FailedPrecondition for a topic that cannot be used, Unavailable.
        """
        specs = (properties.config_topic, properties.offset_topic, properties.status_topic)
        async with admin_client(properties.raw, client_id=client_id) as admin:
            found = await topics_there(admin, specs)
        async with TopicWriter.open(properties.raw, client_id=client_id) as writer:
            yield KafkaTopics(writer, {spec.name: count for spec, count in zip(specs, found, strict=True)})

    def table(self, topic: str, apply: Callable[[Row], None]) -> TopicTable:
        """A table that still has to be opened and followed."""
        return TopicTable(topic, self._partitions[topic], apply)

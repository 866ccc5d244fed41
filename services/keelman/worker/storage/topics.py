"""Gives a worker its three topics' tables and the writer that all of them share: the edge between a store and Kafka."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

from keelman.kafka.clients import ClientError, admin_client
from keelman.kafka.tables.table import Row, TopicTable
from keelman.kafka.topics import CompactedTopic, topic_problem, topics_there
from keelman.kafka.writer import TopicWriter
from keelman.model.errors import KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.workers.properties.typed import WorkerProperties

log = get_logger()
WATCH_SECONDS = 300.0
READ_SECONDS = 60.0
"""For a read to the end of a topic at a start, or before a decision."""


class Topics(Protocol):
    """The topics that a store is built on: Kafka's, or memory for a standalone worker."""

    @property
    def writer(self) -> TopicWriter:
        """Writes outside of any transaction; open for as long as the store is used."""

    def table(self, topic: str, apply: Callable[[Row], None]) -> TopicTable:
        """Returns a table that hands every record of the topic to `apply`. Called once for each topic."""


class KafkaTopics:
    """The topics of a worker in a group. Open it with `open`."""

    def __init__(
        self, writer: TopicWriter, partitions: Mapping[str, int], properties: WorkerProperties, *, client_id: str
    ) -> None:
        """`partitions` is the number of partitions of each topic."""
        self.writer = writer
        self._partitions = partitions
        self._properties, self._client_id = properties, client_id

    @staticmethod
    @contextlib.asynccontextmanager
    async def open(properties: WorkerProperties, *, client_id: str) -> AsyncIterator[KafkaTopics]:
        """Creates missing topics and opens the writer for the block.

        Raises FailedPrecondition for a topic that cannot be used, Unavailable.
        """
        specs = _topics(properties)
        async with admin_client(properties.raw, client_id=client_id) as admin:
            counts = await topics_there(admin, specs)
        async with TopicWriter.open(properties.raw, client_id=client_id) as writer:
            partitions = {spec.name: count for spec, count in zip(specs, counts, strict=True)}
            yield KafkaTopics(writer, partitions, properties, client_id=client_id)

    def table(self, topic: str, apply: Callable[[Row], None]) -> TopicTable:
        """Returns a table that still has to be opened and followed."""
        return TopicTable(topic, self._partitions[topic], apply)

    async def watch(self, seconds: float = WATCH_SECONDS) -> None:
        """Runs for ever: warns, once, of a topic that a worker would by now refuse at its start."""
        told: dict[str, str] = {}
        while True:
            await asyncio.sleep(seconds)
            with contextlib.suppress(KeelmanError, ClientError, OSError):
                async with admin_client(self._properties.raw, client_id=self._client_id) as admin:
                    for topic in _topics(self._properties):
                        problem = await topic_problem(admin, topic)
                        if problem and told.get(topic.name) != problem:
                            log.warning("storage_topic_wrong", topic=topic.name, error=problem)
                        told[topic.name] = problem


def _topics(properties: WorkerProperties) -> tuple[CompactedTopic, ...]:
    return properties.config_topic, properties.offset_topic, properties.status_topic

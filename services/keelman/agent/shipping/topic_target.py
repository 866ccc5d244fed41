"""Delivers a stream to a topic of the worker's brokers: a record a line, in transactions with the position."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace

from keelman.agent.shipping.progress import DeliveryProgress
from keelman.agent.shipping.source import Batch, Source
from keelman.kafka.positioned_writer import PositionedWriter, WriterPosition

MINE = " mine"


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """`properties` are Java's client properties, `key` is the records', `name` the writer's: of one stream of this node
    alone."""

    properties: Mapping[str, str]
    topic: str
    key: str
    name: str
    most_bytes: int = 512 * 1024

    def is_due(self, waiting: int, seconds: float) -> bool:
        """Returns True as soon as anything waits."""
        return waiting > 0

    @contextlib.asynccontextmanager
    async def opened(self, source: Source) -> AsyncIterator[LogTopicWriter]:
        """Shuts out former writers, and makes the topic where it is missing. Raises KeelmanError."""
        async with PositionedWriter.open(self.properties, self.topic, self.name) as writer:
            yield LogTopicWriter(writer, self.key.encode())


class LogTopicWriter:
    """Writes records. The brokers' position wins over the kept one, which a killed agent may not have kept."""

    def __init__(self, writer: PositionedWriter, key: bytes) -> None:
        self._writer = writer
        self._key = key

    async def resume(self, progress: DeliveryProgress) -> DeliveryProgress:
        """Continues at the end of the last transaction, when that was of this log."""
        stands = await self._writer.position()
        if stands is None or not stands.note.startswith(_note(progress)) or stands.offset <= progress.position:
            return progress
        return replace(progress, position=stands.offset, mine=stands.note.endswith(MINE))

    async def write(self, batch: Batch, progress: DeliveryProgress) -> DeliveryProgress:
        """Writes the lines. Raises KeelmanError."""
        note = _note(progress) + (MINE if batch.mine else "")
        await self._writer.write(self._key, batch.lines, WriterPosition(batch.end, note))
        return replace(progress, position=batch.end, mine=batch.mine)


def _note(progress: DeliveryProgress) -> str:
    """Returns the name of the log file that a position belongs to."""
    return f"{progress.id}/{progress.inode}"

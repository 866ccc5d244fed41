"""Reads the offset topic into an `OffsetState`, and alters sources' offsets from outside a copy run."""

from __future__ import annotations

from collections.abc import Sequence

from keelman.kafka.tables.table import Row
from keelman.kafka.writer import Record
from keelman.worker.storage.offset_state import OffsetState
from keelman.worker.storage.passed_over import PassedOver
from keelman.worker.storage.topics import Topics
from keelman.workers.properties.typed import WorkerProperties


class OffsetTopic:
    """`state` has the records read so far. Part of the `WorkerStore`, which opens, follows and closes it."""

    def __init__(self, properties: WorkerProperties, topics: Topics) -> None:
        self.state = OffsetState()
        self._odd = PassedOver(properties.offset_topic.name)
        self.table = topics.table(properties.offset_topic.name, self._apply)
        self._writer = topics.writer

    async def read(self) -> None:
        """Reads the topic to its end: every record that is there at the call is either committed or aborted.

        Raises DeadlineExceeded, Unavailable.
        """
        await self.table.read_to_end()

    async def write(self, written: Sequence[Record]) -> None:
        """Writes rows outside of any transaction. Raises Unavailable, and Exhausted for a row that is too large."""
        await self._writer.write(self.table.topic, written)

    def _apply(self, row: Row) -> None:
        self._odd.log(row, self.state.apply(row.key, row.value))

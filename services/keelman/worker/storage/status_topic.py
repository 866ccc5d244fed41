"""Reads the status topic, statuses and topics in use, into a `StatusState`; each worker writes its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keelman.kafka.tables.table import Row
from keelman.kafka.writer import Record
from keelman.worker.storage.config_topic import ConfigTopic
from keelman.worker.storage.passed_over import PassedOver, text_of
from keelman.worker.storage.status_state import StatusState
from keelman.worker.storage.status_writer import StatusWriter
from keelman.worker.storage.topics import READ_SECONDS, Topics
from keelman.workers.properties.typed import WorkerProperties


class StatusTopic:
    """`state` has the records read so far. Part of the `WorkerStore`, which opens, follows and closes it."""

    def __init__(
        self,
        properties: WorkerProperties,
        topics: Topics,
        config: ConfigTopic,
        *,
        may_write: Callable[[], bool],
        on_record: Callable[[str], None],
    ) -> None:
        """Calls `on_record` with the key of each record; `may_write` is that of `StoreCallbacks`."""
        self.state = StatusState()
        self._odd = PassedOver(properties.status_topic.name)
        self.table = topics.table(properties.status_topic.name, self._apply)
        self._topics = topics
        self._on_record = on_record
        self.writer = StatusWriter(
            config.state, self.state, write=self.write, read_config=config.read, may_write=may_write
        )

    async def read(self) -> None:
        """Reads the topic to its end. Raises DeadlineExceeded, Unavailable."""
        await self.table.read_to_end(seconds=READ_SECONDS)

    async def write(self, written: Sequence[Record]) -> None:
        """Writes rows as they are; statuses go through `writer`, which writes them again where it has to.

        Raises Unavailable.
        """
        await self._topics.writer.write(self.table.topic, written)

    async def write_topics_used(self, written: Sequence[Record]) -> None:
        """Writes which connector uses which topic; returns when `state` has it.

        Raises DeadlineExceeded, Unavailable.
        """
        await self.write(written)
        await self.read()

    def _apply(self, row: Row) -> None:
        key = text_of(row.key)
        self._odd.log(row, self.state.apply(key, row.value))
        self.writer.read(key)
        self._on_record(key)

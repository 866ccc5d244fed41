"""Replaces a standalone worker's group by itself, and its three topics by memory.

Each class takes the place of a class that talks to Kafka, at the lowest possible layer, so that all code above is the
same for both kinds of workers. Only offsets outlive the process (see keelman.worker.storage.offset_file).
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from keelman.connect.config.connector_keys import OFFSETS
from keelman.connect.offsets import CommittedOffsets
from keelman.kafka.groups import protocol as codes
from keelman.kafka.groups.protocol import DescribedGroup, GroupClient, Joined
from keelman.kafka.tables.table import Row, TopicTable
from keelman.kafka.writer import Ends, Record, TopicWriter
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import supervise
from keelman.worker.storage.offset_file import OffsetFile, held
from keelman.worker.storage.store import StoreCallbacks, WorkerStore
from keelman.workers.properties.typed import STANDALONE, WorkerProperties

log = get_logger()
MakeTable: TypeAlias = "Callable[[str, Callable[[Row], None]], MemoryTable]"


class GroupOfOne(GroupClient):
    """A group whose only member is always present, and leads."""

    def __init__(self) -> None:
        self._generation = 0

    async def join(self, member: str, protocol_type: str, protocols: Sequence[tuple[str, bytes]]) -> Joined:
        """Begins a new generation."""
        self._generation += 1
        ((_, metadata),) = protocols
        return Joined(codes.NONE, self._generation, STANDALONE, STANDALONE, ((STANDALONE, metadata),))

    async def sync(self, generation: int, member: str, assignments: Sequence[tuple[str, bytes]]) -> tuple[int, bytes]:
        """Returns the assignment that the member has given itself."""
        return codes.NONE, dict(assignments)[member]

    async def heartbeat(self, generation: int, member: str, *, seconds: float) -> int:
        """Always succeeds."""
        return codes.NONE

    async def leave(self, member: str) -> int:
        """Does nothing: no other member waits."""
        return codes.NONE

    async def describe(self) -> DescribedGroup:
        """Returns an empty group."""
        return DescribedGroup("Empty", "", "", ())

    async def problem(self, group: str = "", *, seconds: float) -> None:
        """Returns no problem: it needs no coordinator, and knows of no other group's."""


class MemoryTable(TopicTable):
    """A topic that consists of its applied records only."""

    def __init__(self, topic: str, apply: Callable[[Row], None]) -> None:
        super().__init__(topic, 1, apply)
        self._end = 0

    def append(self, record: Record) -> None:
        """Applies one more record."""
        key, value = record
        row = Row(0, self._end, key, value, int(time.time() * 1000))
        self._end += 1
        self._apply(row)

    def keep(self) -> None:
        """Called after a write; memory has nothing more to do."""

    async def read_to_end(self, *, seconds: float = 30.0) -> None:
        """Does nothing: written records are applied."""

    async def read_to(self, ends: Mapping[int, int], *, seconds: float = 30.0) -> None:
        """Does nothing: written records are applied."""

    async def end_offsets(self) -> dict[int, int]:
        """Returns the end of the only partition."""
        return {0: self._end}


class FileTable(MemoryTable):
    """The offset topic: applied records are written to a file too, a little later."""

    def __init__(self, topic: str, apply: Callable[[Row], None], file: OffsetFile) -> None:
        super().__init__(topic, apply)
        self._file = file

    def load(self) -> None:
        """Applies the file's records."""
        for record in list(self._file.entries.items()):
            super().append(record)

    def append(self, record: Record) -> None:
        """Applies one more record, and has it written."""
        super().append(record)
        self._file.set(*record)

    def keep(self) -> None:
        """Writes the file, so that offsets altered from outside are in it when the write returns."""
        self._file.write()


class MemoryWriter(TopicWriter):
    """Writes to tables in memory."""

    def __init__(self) -> None:
        self.tables: dict[str, MemoryTable] = {}

    async def write(self, topic: str, records: Sequence[Record], *, partition: int | None = None) -> Ends:
        """Applies the records at once."""
        for record in records:
            self.tables[topic].append(record)
        self.tables[topic].keep()
        return await self.tables[topic].end_offsets()


class MemoryTopics:
    """The topics of a worker without Kafka's."""

    def __init__(self, offsets: str, file: OffsetFile, memory_table: MakeTable) -> None:
        """`offsets` names the topic whose records the file keeps."""
        self.writer = MemoryWriter()
        self._offsets, self._file, self._memory_table = offsets, file, memory_table

    def table(self, topic: str, apply: Callable[[Row], None]) -> MemoryTable:
        """Returns an empty table, which the writer knows."""
        is_offsets = topic == self._offsets
        file_table = FileTable(topic, apply, self._file) if is_offsets else self._memory_table(topic, apply)
        self.writer.tables[topic] = file_table
        return file_table


class StandaloneStore(WorkerStore):
    """Configurations and statuses in memory, offsets in a file."""

    def __init__(
        self,
        properties: WorkerProperties,
        *,
        worker_id: str,
        callbacks: StoreCallbacks,
        memory_table: MakeTable = MemoryTable,
    ) -> None:
        """Raises InvalidArgument for a file of offsets that cannot be used."""
        assert properties.offset_file is not None
        self.file = OffsetFile(properties.offset_file, flush_seconds=properties.offset_flush_ms / 1000)
        topics = MemoryTopics(properties.offset_topic.name, self.file, memory_table)
        self._warned: set[str] = set()
        super().__init__(properties, topics, worker_id=worker_id, callbacks=callbacks)
        self._offset_table.load()

    @staticmethod
    @contextlib.asynccontextmanager
    async def open(
        properties: WorkerProperties, *, worker_id: str, callbacks: StoreCallbacks
    ) -> AsyncIterator[StandaloneStore]:
        """Reads the file of offsets; writes unwritten ones on leaving. `run()` must run inside the block.

        Raises InvalidArgument for a file that cannot be used, or that another worker has.
        """
        assert properties.offset_file is not None
        with held(properties.offset_file):
            store = StandaloneStore(properties, worker_id=worker_id, callbacks=callbacks)
            try:
                yield store
            finally:
                store.file.write()

    async def run(self) -> None:
        """Writes statuses and the file of offsets, until cancelled."""
        await supervise(partial(super().run), self.file.keep)

    def committed(self, connector: str, offsets: Mapping[str, str]) -> None:
        """Keeps the offsets that a source's copy run reports as committed: partition to offset, as JSON.

        Those of a sink are numbers: its group has them.
        """
        committed = CommittedOffsets(connector, self.offsets.of(connector))
        for partition, offset in ((json.loads(name), json.loads(text)) for name, text in offsets.items()):
            if isinstance(offset, dict | None) and committed.offset(partition) != offset:
                self._offset_table.append(committed.record(partition, offset))

    def changed_about(self, connector: str) -> None:
        """Warns, once for each connector, of an offset topic of its own, which a standalone worker does not use."""
        config = self.config.connectors.get(connector)
        if config is None:
            self._warned.discard(connector)
        elif (topic := config.get(OFFSETS, "").strip()) and connector not in self._warned:
            self._warned.add(connector)
            log.warning("offset_topic_ignored", connector=connector, topic=topic, file=str(self.properties.offset_file))
        super().changed_about(connector)

    @property
    def _offset_table(self) -> FileTable:
        assert isinstance(self.offset_topic.table, FileTable)
        return self.offset_topic.table

"""Replaces a standalone worker's group by itself, and its three topics by memory.

Each class stands in for the one that speaks with Kafka, at the lowest place there is, so that all above is the same
code for both kinds of workers. Offsets alone outlive the process (see keelman.worker.storage.offset_file).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial

from keelman.connect.config.connector_keys import OFFSETS
from keelman.connect.offsets import CommittedOffsets
from keelman.kafka.groups import protocol as codes
from keelman.kafka.groups.protocol import Described, GroupClient, Joined
from keelman.kafka.table import Row, TopicTable
from keelman.kafka.writer import Ends, Record, TopicWriter
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import supervise
from keelman.worker.config.typed import STANDALONE, WorkerProperties
from keelman.worker.storage.offset_file import OffsetFile, held
from keelman.worker.storage.store import OnLevel, Store

log = get_logger()


class GroupOfOne(GroupClient):
    """A group whose only member is always there, and leads."""

    def __init__(self) -> None:
        self._generation = 0

    async def join(self, member: str, protocol_type: str, protocol: str, metadata: bytes) -> Joined:
        """A new generation."""
        self._generation += 1
        return Joined(codes.NONE, self._generation, STANDALONE, STANDALONE, ((STANDALONE, metadata),))

    async def sync(self, generation: int, member: str, assignments: Sequence[tuple[str, bytes]]) -> tuple[int, bytes]:
        """What the member has given itself."""
        return codes.NONE, dict(assignments)[member]

    async def heartbeat(self, generation: int, member: str, *, seconds: float) -> int:
        """It lives."""
        return codes.NONE

    async def leave(self, member: str) -> int:
        """There is nobody who waits."""
        return codes.NONE

    async def describe(self) -> Described:
        """Nobody was here before."""
        return Described("Empty", "", "", ())


class MemoryTable(TopicTable):
    """A topic that is nothing but what was applied."""

    def __init__(self, topic: str, apply: Callable[[Row], None]) -> None:
        super().__init__(topic, 1, apply)
        self._end = 0

    def append(self, record: Record) -> None:
        """Applies one more record."""
        key, value = record
        row = Row(0, self._end, key, value, int(time.time() * 1000))
        self._end += 1
        self._apply(row)

    async def follow(self) -> None:
        """There is nothing to wait for; runs until cancelled."""
        await asyncio.Event().wait()

    async def read_to_end(self, *, seconds: float = 30.0) -> None:
        """What was written is applied."""

    async def read_to(self, ends: Mapping[int, int], *, seconds: float = 30.0) -> None:
        """What was written is applied."""

    async def end_offsets(self) -> dict[int, int]:
        """Of the only partition."""
        return {0: self._end}


class MemoryWriter(TopicWriter):
    """Writes to tables in memory."""

    def __init__(self, *tables: MemoryTable) -> None:
        self._tables = {table.topic: table for table in tables}

    async def write(self, topic: str, records: Sequence[Record], *, partition: int | None = None) -> Ends:
        """Applies the records at once."""
        for record in records:
            self._tables[topic].append(record)
        return await self._tables[topic].end_offsets()


class StandaloneStore(Store):
    """Configurations and statuses in memory, offsets in a file."""

    def __init__(
        self,
        properties: WorkerProperties,
        *,
        worker_id: str,
        may_write: Callable[[], bool],
        on_change: Callable[[], None],
        on_level: OnLevel,
    ) -> None:
        """Raises InvalidArgument for a file of offsets that cannot be used."""
        super().__init__(
            properties,
            partitions=(1, 1, 1),
            worker_id=worker_id,
            may_write=may_write,
            on_change=on_change,
            on_level=on_level,
        )
        assert properties.offset_file is not None
        self.file = OffsetFile(properties.offset_file, flush_seconds=properties.offset_flush_ms / 1000)
        offsets = MemoryTable(properties.offset_topic.name, self._offset_row)
        for key, value in self.file.entries.items():
            offsets.append((key, value))
        self._configs = configs = MemoryTable(properties.config_topic.name, self._config_row)
        self._statuses = statuses = MemoryTable(properties.status_topic.name, self._status_row)
        self._offsets = offsets
        self._writer = MemoryWriter(configs, offsets, statuses)

    @staticmethod
    @contextlib.asynccontextmanager
    async def opened(
        properties: WorkerProperties,
        *,
        worker_id: str,
        may_write: Callable[[], bool],
        on_change: Callable[[], None],
        on_level: OnLevel,
    ) -> AsyncIterator[StandaloneStore]:
        """Reads the file of offsets; on leaving writes what is not written yet. `run()` must run inside the block.

        Raises InvalidArgument for a file that cannot be used, or that another worker has.
        """
        assert properties.offset_file is not None
        with held(properties.offset_file):
            store = StandaloneStore(
                properties, worker_id=worker_id, may_write=may_write, on_change=on_change, on_level=on_level
            )
            try:
                yield store
            finally:
                store.file.write()

    async def run(self) -> None:
        """Writes statuses and the file of offsets, until cancelled."""
        await supervise(partial(super().run), self.file.keep)

    async def write_offsets(self, written: Sequence[Record]) -> None:
        """Offsets that somebody has altered; they are in the file when this returns."""
        await super().write_offsets(written)
        self.file.write()

    def committed(self, connector: str, offsets: Mapping[str, str]) -> None:
        """Takes what a source's copy run says that it has committed: partition to offset, as the JSON that it tells.

        Those of a sink are numbers: its group has them.
        """
        known = CommittedOffsets(connector, self.offsets.of(connector))
        for partition, offset in ((json.loads(one), json.loads(text)) for one, text in offsets.items()):
            if isinstance(offset, dict | None) and known.offset(partition) != offset:
                self._offset_table.append(known.record(partition, offset))

    def _config_row(self, row: Row) -> None:
        before = len(self.config.connectors)
        super()._config_row(row)
        if len(self.config.connectors) > before:
            name, config = next(reversed(self.config.connectors.items()))
            if topic := config.get(OFFSETS, "").strip():
                log.warning("offset_topic_ignored", connector=name, topic=topic, file=str(self.properties.offset_file))

    def _offset_row(self, row: Row) -> None:
        super()._offset_row(row)
        self.file.set(row.key, row.value)

    @property
    def _offset_table(self) -> MemoryTable:
        assert isinstance(self._offsets, MemoryTable)
        return self._offsets

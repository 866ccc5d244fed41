"""Shows and changes the offsets of a source for REST: in the connector's own topic, in the worker's, or in both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from keelman.connect.errors import DataError
from keelman.connect.offsets import CommittedOffsets
from keelman.engine.source.split import PLAN
from keelman.kafka.properties.connector_clients import merged
from keelman.kafka.writer import FencingWriter, Record, TopicWriter
from keelman.model.work import Work
from keelman.worker.connector_facts import transactional_id
from keelman.worker.errors import RestError
from keelman.worker.offsets.source_offsets import OffsetRow, merged_offsets, offset_topics, own_offsets
from keelman.worker.storage.offset_state import parsed_rows
from keelman.worker.storage.store import WorkerStore

Confirm = Callable[[], Awaitable[None]]
_KINDS: tuple[tuple[type, str], ...] = ((dict, "MAP"), (list, "ARRAY"))
_LONG = 63


class SourceOffsets:
    """One source's; made for each request."""

    def __init__(self, store: WorkerStore, name: str, config: Mapping[str, str]) -> None:
        self._store = store
        self._name = name
        self._config = config
        self._own_topic, self._workers_topic = offset_topics(store.properties, config)

    async def read(self) -> list[tuple[dict[str, Any], Any]]:
        """Returns source partitions and offsets. Raises KeelmanError."""
        workers, own = await self._rows()
        return parsed_rows(merged_offsets(self._name, workers, own))

    async def alter(
        self, changes: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]], still: Confirm
    ) -> None:
        """Writes offsets, tombstones for None, under the key bytes that each topic has already.

        `still` is awaited as the last step before it counts and raises when it must not. Raises 500, KeelmanError,
        Conflict.
        """
        workers, own = await self._rows()
        keys_of_own = own if self._workers_topic else workers
        # The plan of a split task is void: none of its parts runs.
        plans = [(key, None) for key, _ in keys_of_own if _is_plan(key)]
        in_own = [*self._records(changes, keys_of_own), *plans]
        in_workers = self._records(changes, workers) if self._workers_topic else []
        await self._write(in_own, in_workers, still)

    async def reset(self, still: Confirm) -> None:
        """Writes tombstones for all offsets. Raises as `alter`."""
        workers, own = await self._rows()
        if not self._workers_topic:
            own, workers = workers, []
        await self._write([(key, None) for key, _ in own], [(key, None) for key, _ in workers], still)

    async def _rows(self) -> tuple[list[OffsetRow], list[OffsetRow]]:
        await self._store.offset_topic.read()
        own = await own_offsets(self._store.properties, self._name, self._config)
        return self._store.offsets.of(self._name), own

    def _records(
        self, changes: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]], rows: Sequence[OffsetRow]
    ) -> list[Record]:
        committed = CommittedOffsets(self._name, rows)
        newest: dict[bytes, bytes | None] = {}
        try:
            for partition, offset in changes:
                key, value = committed.record(dict(partition), None if offset is None else dict(offset))
                newest[key] = value
        except DataError as error:
            raise RestError(500, str(error)) from None
        return list(newest.items())

    async def _write(self, own: Sequence[Record], workers: Sequence[Record], still: Confirm) -> None:
        """Writes in Connect's order: a deletion from the worker's topic comes first, so that the topic never shows
        again offsets that the connector's own topic has lost; all else goes there last, when it counts already."""
        if gone := [record for record in workers if record[1] is None]:
            await still()
            await self._store.offset_topic.write(gone)
        if own:
            await self._write_own(own, still)
        if records_left := [record for record in workers if record[1] is not None]:
            await self._store.offset_topic.write(records_left)
        await self._store.offset_topic.read()

    async def _write_own(self, records: Sequence[Record], still: Confirm) -> None:
        properties = self._store.properties
        client = merged(properties.raw, self._config, "producer")
        client_id = f"connector-offsets-{self._name}"
        if not properties.exactly_once_sources:
            await still()
            if not self._workers_topic:
                await self._store.offset_topic.write(records)
                return
            async with TopicWriter.open(client, client_id=client_id) as writer:
                await writer.write(self._own_topic, records)
            return
        # Under the id of the first task: if that is started meanwhile, it shuts this writer out, and is not overtaken.
        fencing = FencingWriter(
            client, client_id=client_id, transactional_id=transactional_id(properties.group_id, Work(self._name, 0))
        )
        try:
            await fencing.write(self._own_topic, records, confirm=still)
        finally:
            await fencing.close()


def _is_plan(key: bytes) -> bool:
    return f'"{PLAN}"'.encode() in key


def check_primitive(mapping: Mapping[str, Any]) -> None:
    """Raises 500 for a partition or an offset that cannot be kept, as Connect does before it calls its connector."""
    for field, value in mapping.items():
        if isinstance(value, int) and not -(1 << _LONG) <= value < 1 << _LONG:
            name = "class java.math.BigInteger"
        else:
            name = next((name for kind, name in _KINDS if isinstance(value, kind)), "")
        if name:
            message = f"Offsets may only contain primitive types as values, but field {field} contains {name}"
            raise RestError(500, message)

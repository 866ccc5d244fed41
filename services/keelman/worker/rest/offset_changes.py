"""Shows, alters and resets offsets of a connector, as Connect's REST API does it: in its order, with its guards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from keelman.connect.errors import ConnectError
from keelman.connect.offsets import AlteredOffsets
from keelman.connect.plugin import Connector
from keelman.connectors.registry import find_connector
from keelman.kafka.properties.connector_clients import sink_group, sink_group_client
from keelman.model.errors import DeadlineExceeded, KeelmanError
from keelman.runtime.own_thread import in_thread
from keelman.runtime.supervise import deadline
from keelman.worker.connector_facts import is_source
from keelman.worker.deadlines import TIMED_OUT, remaining
from keelman.worker.errors import Elsewhere, RestError
from keelman.worker.group.herder import Herder
from keelman.worker.offsets.entries import OffsetEntry
from keelman.worker.offsets.sink_offsets import SinkOffsets, parsed_sink_offsets
from keelman.worker.offsets.source_changes import SourceOffsets, check_primitive
from keelman.worker.storage.config_records import STOPPED

ALTERED, RESET = "altered", "reset"


class OffsetChanges:
    """`fence` returns when the producers of a connector's former tasks are fenced."""

    def __init__(self, herder: Herder, fence: Callable[[str], Awaitable[None]]) -> None:
        self._herder = herder
        self._store = herder.store
        self._fence = fence

    async def read(self, name: str) -> dict[str, Any]:
        """Returns committed offsets of a source or a sink. Raises 404, 500, KeelmanError."""
        config = await self._resolve(self._store.config.config_of(name))
        if is_source(config):
            rows = await SourceOffsets(self._store, name, config).read()
            return {"offsets": [{"partition": part, "offset": offset} for part, offset in rows]}
        offsets = sorted((await self._sink(name, config).read()).items())
        return {
            "offsets": [
                {"partition": {"kafka_topic": topic, "kafka_partition": part}, "offset": {"kafka_offset": offset}}
                for (topic, part), offset in offsets
            ]
        }

    async def alter(self, name: str, entries: Sequence[OffsetEntry]) -> dict[str, str]:
        """Sets offsets, or with None deletes them: a message. The leader's. Raises RestError, KeelmanError."""
        stored = await self._require_stopped(name)
        config = await self._resolve(stored)
        if not is_source(config):
            changes = parsed_sink_offsets(entries)
            looked = await self._look_at(config, [(entry.partition, entry.offset) for entry in entries])
            sink = self._sink(name, config, keeps=await self._keeps_offsets(config))
            async with self._store.group_offsets[name]:
                await sink.alter(changes, lambda: self._still(name, stored))
            return _message(ALTERED, looked)
        for entry in entries:
            check_primitive(entry.partition or {})
            check_primitive(entry.offset or {})
        await self._fenced(name)
        looked = await self._look_at(config, [(entry.partition, entry.offset) for entry in entries])
        source = SourceOffsets(self._store, name, config)
        await source.alter(
            [(entry.partition or {}, entry.offset) for entry in entries], lambda: self._still(name, stored)
        )
        return _message(ALTERED, looked)

    async def reset(self, name: str) -> dict[str, str]:
        """Deletes all offsets: a message. The leader's. Raises RestError, KeelmanError."""
        stored = await self._require_stopped(name)
        config = await self._resolve(stored)
        if not is_source(config):
            sink = self._sink(name, config, keeps=await self._keeps_offsets(config))
            partitions = [{"kafka_topic": topic, "kafka_partition": part} for topic, part in await sink.read()]
            looked = await self._look_at(config, [(partition, None) for partition in partitions])
            async with self._store.group_offsets[name]:
                await sink.reset(lambda: self._still(name, stored))
            return _message(RESET, looked)
        await self._fenced(name)
        source = SourceOffsets(self._store, name, config)
        looked = await self._look_at(config, [(part, None) for part, _ in await source.read()])
        await source.reset(lambda: self._still(name, stored))
        return _message(RESET, looked)

    async def _resolve(self, config: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the configuration with resolved references: clients are made of it. Raises 500."""
        try:
            async with deadline(remaining(), DeadlineExceeded(TIMED_OUT)):
                return await self._store.secrets.resolve(config)
        except ConnectError as error:
            raise RestError(500, str(error)) from None

    def _sink(self, name: str, config: Mapping[str, str], *, keeps: bool = False) -> SinkOffsets:
        worker = self._store.properties.raw
        group, client = sink_group(worker, config, name), sink_group_client(worker, config)
        return SinkOffsets(name, group, client, config if keeps else None)

    async def _keeps_offsets(self, config: Mapping[str, str]) -> bool:
        """Returns whether the sink may keep offsets with its data, by its class. Raises 500 with the class's text."""
        return await self._ask_class(config, lambda kind: kind.supports_exactly_once(config))

    async def _require_stopped(self, name: str) -> Mapping[str, str]:
        """Returns the configuration of a connector whose offsets may be changed now. Raises Elsewhere, 404, 400."""

        async def do() -> Mapping[str, str]:
            self._herder.require_leader()
            await self._store.config_topic.read()
            return self._checked(name)

        return await self._herder.call(do, seconds=remaining())

    def _checked(self, name: str) -> Mapping[str, str]:
        config, state = self._store.config.config_of(name), self._store.config
        if state.target(name) != STOPPED or state.tasks.get(name) or name in state.inconsistent:
            raise RestError(
                400,
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for "
                f"the specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint",
            )
        return config

    async def _fenced(self, name: str) -> None:
        """Makes sure that no task that ran before the stop can commit any more, also an unknown one."""
        # Without transactions only its end keeps a task of this worker from committing data that it still holds.
        async with deadline(remaining(), DeadlineExceeded(TIMED_OUT)):
            await self._herder.owned.tasks.ended(name)
        try:
            await self._fence(name)
        except KeelmanError as error:
            raise RestError(
                500,
                "Failed to perform zombie fencing for source connector prior to modifying offsets: " + error.message,
            ) from None

    async def _still(self, name: str, config: Mapping[str, str]) -> None:
        """Raises as the guards do when the connector was resumed or changed meanwhile, Elsewhere when this worker may
        no longer lead: the next leader may have changed the offsets since."""
        remaining()
        if not self._herder.leads():
            raise Elsewhere("")
        await self._store.config_topic.read(seconds=remaining())
        if self._checked(name) != config:
            raise RestError(409, f"Connector {name} was changed while its offsets were to be modified")

    async def _look_at(self, config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
        """Returns the answer of the connector's class to the offsets. Raises 500 with the class's text."""
        return await self._ask_class(config, lambda kind: kind.alter_offsets(config, offsets))

    async def _ask_class(self, config: Mapping[str, str], question: Callable[[type[Connector]], bool]) -> bool:
        kind = find_connector(config.get("connector.class", ""), config.get("connector.plugin.version"))
        _, said = in_thread(lambda: question(kind))
        try:
            async with deadline(remaining(), DeadlineExceeded(TIMED_OUT)):
                return await said
        except (ConnectError, ValueError) as error:
            raise RestError(500, getattr(error, "message", None) or str(error)) from None


def _message(done: str, looked: bool) -> dict[str, str]:
    if looked:
        return {"message": f"The offsets for this connector have been {done} successfully"}
    return {
        "message": f"The Connect framework-managed offsets for this connector have been {done} successfully. "
        f"However, if this connector manages offsets externally, they will need to be manually {done} in the system "
        "that the connector uses."
    }

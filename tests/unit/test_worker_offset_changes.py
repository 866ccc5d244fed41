"""Offsets are changed only while nobody copies, to the last moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from keelman.worker import config_state as records
from keelman.worker.bodies import OffsetEntry
from keelman.worker.herder import Herder
from keelman.worker.offset_changes import OffsetChanges
from keelman.worker.properties import checked
from keelman.worker.rest_errors import RestError
from keelman.worker.sink_offsets import SinkOffsets
from keelman.worker.standalone import StandaloneStore

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
PLAIN = {"bootstrap.servers": "h:1", "key.converter": STRINGS, "value.converter": STRINGS}
SINK = {"connector.class": "FileStreamSink", "topics": "t", "tasks.max": "1"}


class World:
    """A standalone worker's store with a stopped connector, and a herder with nothing else to do."""

    def __init__(self, folder: Path) -> None:
        properties = checked({**PLAIN, "offset.storage.file.filename": str(folder / "offsets")}, standalone=True)
        self.store = StandaloneStore(properties, worker_id="w:1")
        self.changes = OffsetChanges(cast("Herder", self), self.fence)

    async def fence(self, name: str) -> None:
        return None

    def require_leader(self) -> None:
        return None

    async def call(self, operation: Callable[[], Awaitable[Any]], *, seconds: float) -> Any:
        return await operation()

    async def put(self, config: dict[str, str], target: str, *tasks: dict[str, str]) -> None:
        written = [records.connector_record("c", config), *records.task_records("c", list(tasks))]
        await self.store.write_config([*written, records.commit_record("c", len(tasks))])
        await self.store.write_config([records.target_record("c", target)])


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("change", ["alter", "reset"])
async def test_a_sink_that_is_resumed_meanwhile_keeps_its_offsets(
    world: World, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    resumed, changed = False, []

    async def looked_at(*_: object) -> bool:
        if resumed:
            await world.put(SINK, records.STARTED)
        return True

    async def changes(*_: object) -> None:
        changed.append(change)

    async def read(_: object) -> dict[tuple[str, int], int]:
        return {("t", 0): 5}

    monkeypatch.setattr(world.changes, "_looked_at", looked_at)
    monkeypatch.setattr(SinkOffsets, "read", read)
    monkeypatch.setattr(SinkOffsets, change, changes)
    entries = [OffsetEntry({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": 1})]

    async def asked() -> None:
        await (world.changes.alter("c", entries) if change == "alter" else world.changes.reset("c"))

    await world.put(SINK, records.STOPPED)
    await asked()
    resumed = True
    with pytest.raises(RestError, match="must be in the STOPPED state"):
        await asked()
    assert changed == [change], "once, before it was resumed"

"""Offsets are changed only while no task copies, up to the last moment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1.copy_run_pb2 import CopyProgress
from keelman.api.copy.v1.run_order_pb2 import RunOrder, RunUpdate
from keelman.connect.offsets import CommittedOffsets
from keelman.kafka.groups.changes import HAS_MEMBERS, GroupChanges
from keelman.model.errors import FailedPrecondition
from keelman.model.work import Work
from keelman.runtime.supervise import Siblings
from keelman.worker.config.typed import checked
from keelman.worker.errors import Elsewhere, RestError
from keelman.worker.offsets import sink_offsets
from keelman.worker.offsets.entries import OffsetEntry
from keelman.worker.offsets.sink_offsets import SinkOffsets
from keelman.worker.rest.offset_changes import OffsetChanges
from keelman.worker.standalone import StandaloneStore
from keelman.worker.storage import config_records as records
from keelman.worker.storage.topic_tracking import TopicTracking
from keelman.worker.tasks.owned_work import OwnedWork
from support.eventually import eventually
from support.worker.store import store_callbacks
from support.worker_properties import alone

SINK = {"connector.class": "FileStreamSink", "topics": "t", "tasks.max": "1"}
SOURCE = {"connector.class": "FileStreamSource", "topic": "t", "tasks.max": "1"}
PARTITION, TASK = {"filename": "/in"}, Work("c", 0)


class World:
    """A standalone worker's store and work, the orders that it sends, and a herder without other work."""

    healthy, generation, closed, leading = True, 1, "", True

    def __init__(self, folder: Path) -> None:
        properties = checked(alone(folder / "offsets"), standalone=True)
        self.store = StandaloneStore(properties, worker_id="w:1", callbacks=store_callbacks())
        self.sent: list[RunOrder] = []
        me = cast("Any", self)
        self.owned = OwnedWork(
            self.store, me, me, on_topics=TopicTracking(self.store).used, worker_cluster="w", worker="w:1"
        )
        self.changes = OffsetChanges(me, self.fence)

    def send(self, order: RunOrder) -> None:
        self.sent.append(order)

    def tell(self, state: Any, reason: str, position: int) -> None:
        """Sends an update in which the copy run reports its committed position."""
        progress = CopyProgress(offsets={json.dumps(PARTITION): json.dumps({"position": position})})
        self.owned.tasks.update(RunUpdate(run_uid=self.sent[0].run_uid, state=state, reason=reason, progress=progress))

    @property
    def position(self) -> int:
        return int(CommittedOffsets("c", self.store.offsets.of("c")).offset(PARTITION)["position"])

    async def fence(self, name: str) -> None:
        return None

    def require_leader(self) -> None:
        return None

    def leads(self) -> bool:
        return self.leading

    async def call(self, operation: Callable[[], Awaitable[Any]], *, seconds: float) -> Any:
        return await operation()

    async def put(self, config: dict[str, str], target: str, *tasks: dict[str, str]) -> None:
        written = [records.connector_record("c", config), *records.task_records("c", list(tasks))]
        await self.store.config_topic.write([*written, records.commit_record("c", len(tasks))])
        await self.store.config_topic.write([records.target_record("c", target)])


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class Group:
    """A sink's group that its tasks leave after several attempts to change it."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
        self._world, self._change = world, change
        self.attempts, self.gone_after, self.resumed_at = 0, 1, 0
        self.changed: list[str] = []

        async def read(_: object) -> dict[tuple[str, int], int]:
            return {("t", 0): 5}

        async def looked_at(*_: object) -> bool:
            if self.resumed_at == 0 and self.changed:
                await world.put(SINK, records.STARTED)
            return True

        monkeypatch.setattr(SinkOffsets, "read", read)
        monkeypatch.setattr(world.changes, "_look_at", looked_at)
        for method, name in (("commit", "alter"), ("delete", "reset")):
            monkeypatch.setattr(GroupChanges, method, partial(self._attempt, name))

    async def _attempt(self, name: str, *_: object) -> None:
        self.attempts += 1
        if self.attempts == self.resumed_at:
            await self._world.put(SINK, records.STARTED)
        if self.attempts < self.gone_after:
            raise FailedPrecondition("it has members", reason=HAS_MEMBERS)
        self.changed.append(name)

    async def ask(self) -> None:
        """Requests the change of offsets."""
        changes = self._world.changes
        entries = [OffsetEntry({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": 1})]
        await (changes.alter("c", entries) if self._change == "alter" else changes.reset("c"))


@pytest.mark.parametrize(
    ("value", "kind"),
    [(1 << 63, "class java.math.BigInteger"), (-(10**20), "class java.math.BigInteger"), ([1], "ARRAY")],
)
async def test_offsets_that_connect_cannot_keep_are_refused_before_the_class_is_asked(
    world: World, value: Any, kind: str
) -> None:
    """The message of Apache Kafka Connect 4.3; a position of more than 64 bits would be kept as 1E20."""
    await world.put({**SOURCE, "file": "/in"}, records.STOPPED)
    for partition, offset in ((PARTITION, {"position": value}), ({"filename": value}, {"position": 1})):
        field = "position" if partition is PARTITION else "filename"
        with pytest.raises(RestError) as refused:
            await world.changes.alter("c", [OffsetEntry(partition, offset)])
        text = f"Offsets may only contain primitive types as values, but field {field} contains {kind}"
        assert (refused.value.status, refused.value.message) == (500, text)
    await world.changes.alter("c", [OffsetEntry(PARTITION, {"position": (1 << 63) - 1})])
    assert world.position == (1 << 63) - 1


@pytest.mark.parametrize("change", ["alter", "reset"])
async def test_a_sink_that_is_resumed_meanwhile_keeps_its_offsets(
    world: World, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    group = Group(world, monkeypatch, change)
    await world.put(SINK, records.STOPPED)
    await group.ask()
    with pytest.raises(RestError, match="must be in the STOPPED state"):
        await group.ask()  # it is resumed while its class is called
    assert group.changed == [change], "once, before it was resumed"


@pytest.mark.parametrize("change", ["alter", "reset"])
@pytest.mark.parametrize("config", [SOURCE, SINK])
async def test_who_leads_no_more_changes_no_offsets(
    world: World, monkeypatch: pytest.MonkeyPatch, config: dict[str, str], change: str
) -> None:
    """The worker was frozen after its last check: the next leader has got the same request since, and others."""
    group = Group(world, monkeypatch, change)
    await world.put(config, records.STOPPED)
    if config is SOURCE:
        await world.changes.alter("c", [OffsetEntry(PARTITION, {"position": 5})])

    async def looked_at(*_: object) -> bool:
        world.leading = False
        return True

    monkeypatch.setattr(world.changes, "_look_at", looked_at)
    partition = {"kafka_topic": "t", "kafka_partition": 0} if config is SINK else PARTITION
    entries = [OffsetEntry(partition, {"kafka_offset": 1, "position": 1})]
    with pytest.raises(Elsewhere) as refused:
        await (world.changes.alter("c", entries) if change == "alter" else world.changes.reset("c"))
    assert refused.value.url == "", "the waiting caller must find the new leader"
    assert group.changed == []
    assert config is SINK or world.position == 5


@pytest.mark.parametrize("change", ["alter", "reset"])
async def test_tasks_of_a_sink_that_are_about_to_leave_are_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    group = Group(world, monkeypatch, change)
    group.gone_after = 3
    await world.put(SINK, records.STOPPED)
    await group.ask()
    assert (group.attempts, group.changed) == (3, [change])
    await world.put(SINK, records.STOPPED)
    group.gone_after, group.resumed_at = 9, 5
    with pytest.raises(RestError, match="must be in the STOPPED state"):
        await group.ask()
    assert (group.attempts, group.changed) == (5, [change]), "none once it is resumed"
    await world.put(SINK, records.STOPPED)
    monkeypatch.setattr(sink_offsets, "LEAVING_SECONDS", 0.0)
    with pytest.raises(RestError, match="its tasks haven't stopped completely yet"):
        await group.ask()


async def test_what_a_stopped_task_still_commits_does_not_undo_a_change(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def looked_at(*_: object) -> bool:
        return True

    monkeypatch.setattr(world.changes, "_look_at", looked_at)
    await world.put(SOURCE, records.STARTED, {"task.class": "T"})
    async with Siblings() as siblings:
        world.owned.tasks.begin(siblings)
        await world.owned.take([TASK], [])
        world.owned.follow()
        await eventually(lambda: world.sent)
        world.tell(copy.COPY_RUN_STATE_RUNNING, "", 5)
        await world.put(SOURCE, records.STOPPED)
        world.owned.follow()
        await eventually(lambda: len(world.sent) > 1, what="it is ordered to drain")
        entries = [OffsetEntry(PARTITION, {"position": 1})]
        altering = siblings.start(world.changes.alter("c", entries))
        for _ in range(100):  # only the task is waited for
            await asyncio.sleep(0)
        world.tell(copy.COPY_RUN_STATE_ENDED, "DRAINED", 7)
        await altering
        assert world.position == 1

"""Connectors that are deleted and created again under the same name.

Late records about the former connector do not count for the new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.kafka.writer import Record
from keelman.model.work import Work
from keelman.runtime.supervise import Siblings
from keelman.worker.config.typed import checked
from keelman.worker.standalone import MemoryTable, StandaloneStore
from keelman.worker.storage import config_records as records
from keelman.worker.storage.status_state import Status, key_of, topic_key, topic_value
from keelman.worker.storage.topic_tracking import TopicTracking
from support.eventually import eventually
from support.worker.store import store_callbacks
from support.worker_properties import alone

ME, OTHER = "me:1", "other:1"
CONFIG = {"name": "c", "connector.class": "FileStreamSource"}
MADE, DELETED = [records.connector_record("c", CONFIG)], records.deletion_records("c", 0)
RUNNING, OTHERS = Status("RUNNING", ME, 3), Status("RUNNING", OTHER, 4)
C = Work("c")


class LateTable(MemoryTable):
    """A topic of which some records arrive late, when a reader reads to its end."""

    late: Sequence[Record] = ()

    async def read_to_end(self, *, seconds: float = 30.0) -> None:
        late, self.late = self.late, ()
        for record in late:
            self.append(record)


class World(StandaloneStore):
    """One worker of several; the test writes the others' records."""

    def __init__(self, folder: Path) -> None:
        self.has_place = True
        super().__init__(
            checked(alone(folder / "offsets"), standalone=True),
            worker_id=ME,
            callbacks=store_callbacks(may_write=self.in_group),
            memory_table=LateTable,
        )
        self.lag, self.status_lag = self.config_topic.table, self.status_topic.table
        self._write_topics_used = self.status_topic.write_topics_used
        self.status_topic.write_topics_used = self.write_topics_used
        self.on_the_way: Sequence[Record] = ()

    def in_group(self) -> bool:
        return self.has_place

    async def others_say(self, work: Work, status: Status | None) -> None:
        await self.status_topic.write([(key_of(work), status.value() if status else None)])

    async def write_topics_used(self, written: Sequence[Record]) -> None:
        """Writes the pending records first, as if they had been written meanwhile."""
        first, self.on_the_way = self.on_the_way, ()
        await self.config_topic.write(first)
        await self._write_topics_used(written)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    worker = World(tmp_path)
    await worker.config_topic.write(MADE)
    async with Siblings() as siblings:
        running = siblings.start(worker.status_topic.writer.run())
        yield worker
        running.cancel()


async def said(world: World, status: Status) -> None:
    world.status_topic.writer.put(C, status)
    await world.status_topic.writer.flush(seconds=10)


async def test_a_tombstone_that_comes_late_takes_no_status(world: World) -> None:
    await said(world, RUNNING)
    await world.others_say(C, None)
    await eventually(lambda: world.statuses.statuses.get(C) == RUNNING)


async def test_what_is_deleted_has_no_status_also_where_that_is_still_to_be_read(world: World) -> None:
    await said(world, RUNNING)
    world.lag.late = DELETED
    await world.others_say(C, None)
    await eventually(lambda: not world.config.connectors)
    await world.config_topic.write([records.connector_record("d", CONFIG)])
    world.status_topic.writer.put(Work("d"), RUNNING)
    await world.status_topic.writer.flush(seconds=10)
    assert set(world.statuses.statuses) == {Work("d")}


async def test_a_tombstone_that_waits_is_not_written_for_what_is_made_again(world: World) -> None:
    await world.config_topic.write(DELETED)
    world.has_place = False
    world.status_topic.writer.put(C, None)
    world.lag.append(MADE[0])
    await world.others_say(C, OTHERS)
    world.has_place = True
    await world.status_topic.writer.flush(seconds=10)
    assert world.statuses.statuses == {C: OTHERS}


async def test_who_has_it_now_is_right_whoever_says_again(world: World) -> None:
    await said(world, RUNNING)
    await world.others_say(C, OTHERS)
    await world.others_say(C, None)
    await world.others_say(C, OTHERS)
    await world.config_topic.write([records.connector_record("d", CONFIG)])
    world.status_topic.writer.put(Work("d"), RUNNING)
    await world.status_topic.writer.flush(seconds=10)
    assert world.statuses.statuses[C] == OTHERS


def use(topic: str, run: str = "r1") -> RunUpdate:
    return RunUpdate(run_uid=run, topics=[topic])


@pytest.fixture
async def tracking(world: World) -> AsyncIterator[TopicTracking]:
    topic_tracking = TopicTracking(world)
    async with Siblings() as siblings:
        running = siblings.start(topic_tracking.run())
        yield topic_tracking
        running.cancel()


async def test_a_topic_in_use_is_not_that_of_a_connector_made_again(world: World, tracking: TopicTracking) -> None:
    """The connector was deleted before the record arrived, so the deletion did not see it."""
    world.on_the_way = [*DELETED, *MADE]
    tracking.used(Work("c", 0), use("former"))
    await eventually(lambda: not world.on_the_way)
    tracking.used(Work("c", 0), use("new", "r2"))
    await eventually(lambda: world.statuses.topics == {"c": {"new"}})


async def test_a_topic_that_a_former_connector_has_used_is_not_written_late(
    world: World, tracking: TopicTracking
) -> None:
    tracking.used(Work("c", 0), use("former"))
    await world.config_topic.write([*DELETED, *MADE])
    tracking.used(Work("c", 0), use("new", "r2"))
    await eventually(lambda: world.statuses.topics == {"c": {"new"}})


async def test_what_was_written_just_before_a_deletion_is_forgotten_with_it(
    world: World, tracking: TopicTracking
) -> None:
    world.status_lag.late = [(topic_key("t", "c"), topic_value("t", Work("c", 0), 1))]
    await world.config_topic.write(DELETED)
    await tracking.clear(["c"])
    await world.config_topic.write(MADE)
    await world.status_topic.read()
    assert not world.statuses.topics


async def test_a_topic_stays_with_the_connector_that_uses_it(world: World, tracking: TopicTracking) -> None:
    tracking.used(Work("c", 0), use("t"))
    await eventually(lambda: world.statuses.topics == {"c": {"t"}})
    await asyncio.wait_for(tracking.clear([]), 10)
    assert world.statuses.topics == {"c": {"t"}}

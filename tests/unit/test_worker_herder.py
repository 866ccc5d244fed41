"""The herder's turns, with a standalone worker's group and store, both real, and no Spark service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from keelman.api.copy.v1.worker_link_service_pb2 import Bounds
from keelman.kafka.layout import Work
from keelman.model.errors import Unavailable
from keelman.runtime.supervise import Siblings
from keelman.testing.eventually import eventually
from keelman.worker import config_state as records
from keelman.worker.config_state import STARTED
from keelman.worker.herder import Herder
from keelman.worker.leader import Leader
from keelman.worker.link import SparkLink
from keelman.worker.membership import Membership
from keelman.worker.operations import Operations
from keelman.worker.owned_work import OwnedWork
from keelman.worker.properties import checked
from keelman.worker.standalone import GroupOfOne, StandaloneStore

PLAIN = {"bootstrap.servers": "h:1", "key.converter": "String", "value.converter": "String"}
SOURCE = {"name": "c", "connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "lines"}
URL = "http://w:1/"


class Store(StandaloneStore):
    """Counts claims, and notes what each write has."""

    claims = 0
    refusing = False

    async def claim(self) -> None:
        self.claims += 1
        if self.refusing:
            raise Unavailable("the login is refused")
        await super().claim()


@dataclass
class World:
    """A worker at work."""

    group: GroupOfOne
    store: Store
    membership: Membership
    herder: Herder


@asynccontextmanager
async def at_work(folder: Path, *, refusing: bool = False) -> AsyncIterator[World]:
    """A worker alone in its group, which is told of connector c."""
    properties = checked({**PLAIN, "offset.storage.file.filename": str(folder / "offsets")}, standalone=True)
    store, group, wake, stop = Store(properties, worker_id="w:1"), GroupOfOne(), asyncio.Event(), asyncio.Event()
    store.refusing = refusing
    membership = Membership(group, group_id="g", session_ms=10_000, heartbeat_ms=3_000, wake=wake.set)
    link = SparkLink("h:1", worker_cluster="g", worker="w:1", bounds=Bounds(), right=lambda: True)
    leader = Leader(store, url=URL, delay_ms=0, wake=wake.set)
    owned = OwnedWork(store, membership, link, worker_cluster="g", worker="w:1")
    herder = Herder(store, membership, leader, owned, url=URL, wake=wake)
    await store.write_config([records.connector_record("c", SOURCE)])
    async with Siblings() as siblings:
        siblings.start(store.run())
        siblings.start(membership.heartbeats())
        running = siblings.start(herder.run(stop))
        await herder.joined.wait()
        yield World(group, store, membership, herder)
        stop.set()
        wake.set()
        await running


async def test_stop_and_resume_in_one_turn_leave_its_tasks(tmp_path: Path) -> None:
    async with at_work(tmp_path) as world, Siblings() as siblings:
        config, operations = world.store.config, Operations(world.herder)
        await eventually(lambda: len(config.tasks.get("c", ())) == 1)
        before = config.unfenced["c"]
        siblings.start(operations.stop("c"))
        resumed = siblings.start(operations.set_target("c", STARTED))
        await resumed
        await eventually(lambda: config.target("c") == STARTED and len(config.tasks.get("c", ())) == 1)
        assert config.unfenced["c"] > before, "it was stopped"

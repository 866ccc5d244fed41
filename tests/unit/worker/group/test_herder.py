"""The herder's turns, with a standalone worker's group and store, both real, and no Spark service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from keelman.api.copy.v1.worker_link_service_pb2 import WorkerGreeting
from keelman.kafka.groups.connect_protocol import PROTOCOL, PROTOCOL_TYPE, Metadata, encode_metadata
from keelman.kafka.groups.protocol import DescribedGroup, DescribedMember
from keelman.model.errors import Unavailable
from keelman.model.work import CONNECTOR_TASK, MemberAssignment, Work
from keelman.runtime.supervise import Siblings
from keelman.worker import meant_member
from keelman.worker.config.typed import checked
from keelman.worker.errors import Elsewhere, RestError
from keelman.worker.group.herder import IDLE_SECONDS, SOON_SECONDS, Herder
from keelman.worker.group.leader import GroupLeader
from keelman.worker.group.membership import GroupPlace, Membership
from keelman.worker.group.requests import DecidedChange
from keelman.worker.rest.operations import Config, Operations
from keelman.worker.spark_drivers import Drivers
from keelman.worker.standalone import GroupOfOne, StandaloneStore
from keelman.worker.storage import config_records as records
from keelman.worker.storage.config_records import PAUSED, STARTED, STOPPED
from keelman.worker.storage.status_state import topic_key, topic_value
from keelman.worker.storage.topic_tracking import TopicTracking
from keelman.worker.tasks.link import SparkLink
from keelman.worker.tasks.owned_work import OwnedWork
from support.eventually import eventually
from support.worker.store import store_callbacks
from support.worker_properties import alone

SOURCE = {"name": "c", "connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "lines"}
URL = "http://w:1/"


class Store(StandaloneStore):
    """Counts claims, and refuses them when the test tells it to."""

    claims = 0
    refusing = False

    def count_claims(self) -> None:
        claim = self.config_topic.claim

        async def counted() -> None:
            self.claims += 1
            if self.refusing:
                raise Unavailable("the login is refused")
            await claim()

        self.config_topic.claim = counted


def ignore(member: str, leader: bool) -> None:
    """Ignores the worker's place."""


@dataclass
class World:
    """A worker at work."""

    group: GroupOfOne
    store: Store
    membership: Membership
    herder: Herder


@asynccontextmanager
async def at_work(folder: Path, *, refusing: bool = False, target: str = STARTED) -> AsyncIterator[World]:
    """A worker alone in its group, which learns of connector c."""
    properties = checked(alone(folder / "offsets"), standalone=True)
    group, wake, stop = GroupOfOne(), asyncio.Event(), asyncio.Event()
    store = Store(properties, worker_id="w:1", callbacks=store_callbacks(on_change=wake.set))
    store.refusing = refusing
    store.count_claims()
    membership = Membership(group, group_id="g", session_ms=10_000, heartbeat_ms=3_000, wake=wake.set, on_member=ignore)
    link = SparkLink(Drivers("h:1"), WorkerGreeting(worker_id="w:1"), may_renew=lambda: True)
    leader = GroupLeader(store, url=URL, delay_ms=0, wake=wake.set)
    owned = OwnedWork(store, membership, link, on_topics=TopicTracking(store).used, worker_cluster="g", worker="w:1")
    herder = Herder(store, membership, leader, owned, url=URL, wake=wake)
    await store.config_topic.write([records.target_record("c", target), records.connector_record("c", SOURCE)])
    async with Siblings() as siblings:
        siblings.start(store.run())
        siblings.start(membership.heartbeats(herder))
        running = siblings.start(herder.run(stop))
        async with asyncio.timeout(30):
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


async def test_who_cannot_claim_still_takes_its_work(tmp_path: Path) -> None:
    async with at_work(tmp_path, refusing=True, target=STOPPED) as world:
        assert world.herder.owned.works == {Work("c")}
        assert world.store.claims == 1


def test_who_led_before_leads_since_only_when_no_generation_lies_between() -> None:
    def place(generation: int, *, leader: bool = True) -> GroupPlace:
        return GroupPlace("m", generation, leader, MemberAssignment("m", URL, 0))

    assert place(5).leads_since(place(4))
    assert not place(6).leads_since(place(4)), "the group had lost it, and another may have led"
    assert not place(5).leads_since(place(4, leader=False))
    assert not place(5, leader=False).leads_since(place(4))
    assert not place(5).leads_since(None)


async def test_a_leader_that_missed_a_generation_claims_anew(tmp_path: Path) -> None:
    async with at_work(tmp_path) as world:
        await eventually(lambda: Work("c", 0) in world.herder.owned.works)
        assert world.store.claims == 1
        await world.group.join("another", "", [("", b"")])
        world.membership.request_rejoin()
        await eventually(lambda: world.store.claims == 2)


async def test_what_was_asked_of_a_leader_that_has_lost_its_place_is_not_done_late(tmp_path: Path) -> None:
    def decide() -> DecidedChange[str]:
        return DecidedChange((), lambda: "done")

    async with at_work(tmp_path) as world:
        herder, membership = world.herder, world.membership
        headers = {meant_member.HEADER: membership.member}
        meant_member.begin(headers)
        assert await herder.change("c", decide, seconds=30) == "done"
        membership._lose("it was frozen", world.herder)  # the herder has not seen it yet
        with pytest.raises(Elsewhere) as refused:
            await herder.change("c", decide, seconds=30)
        assert refused.value.url == "", "the waiting caller must find the new leader"
        meant_member.begin({meant_member.HEADER: "another member"})
        with pytest.raises(Elsewhere):
            await herder.change("c", decide, seconds=30)
        meant_member.begin({})
        assert await herder.change("c", decide, seconds=30) == "done"


async def test_an_overdue_connector_spins_no_herder(tmp_path: Path) -> None:
    async with at_work(tmp_path) as world:
        inquiry = world.herder.leader._query
        await eventually(lambda: len(world.store.config.tasks.get("c", ())) == 1)
        inquiry.again("c")  # overdue at once; the herder has not been woken
        assert inquiry.due_seconds() == 0.0
        assert world.herder._pause(leads=True) == SOON_SECONDS
        assert world.herder._pause(leads=False) == IDLE_SECONDS


async def test_a_connector_that_is_made_again_is_not_paused_with_the_one_before(tmp_path: Path) -> None:
    async with at_work(tmp_path) as world:
        operations, state = Operations(world.herder), world.store.config
        await operations.delete("c")
        await world.store.config_topic.write_target("c", PAUSED)  # by a worker that read the topic before the deletion
        await operations.put_config("c", SOURCE, create=True)
        assert state.target("c") == STARTED
        await operations.set_target("c", PAUSED)
        await operations.put_config("c", {**SOURCE, "batch.size": "7"}, create=False)
        assert state.target("c") == PAUSED, "it was changed, not made again"
        await operations.delete("c")
        await operations.put_config("c", SOURCE, create=True, initial_state="PAUSED")
        assert state.target("c") == PAUSED, "as requested"


async def test_a_put_that_created_is_done_once_by_its_id(tmp_path: Path) -> None:
    async with at_work(tmp_path) as world:
        operations, state = Operations(world.herder), world.store.config
        await operations.delete("c")
        assert (await operations.put_config("c", SOURCE, create=False, request_id="r"))[0]
        await operations.put_config("c", {**SOURCE, "batch.size": "7"}, create=False, request_id="another")
        created, info = await operations.put_config("c", SOURCE, create=False, request_id="r")
        assert created, "as it was answered the first time"
        assert info["config"] == state.connectors["c"] == {**SOURCE, "batch.size": "7"}


@pytest.mark.parametrize("create", [True, False])
async def test_what_was_done_is_not_judged_again(tmp_path: Path, create: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(operations: Operations, config: Config) -> dict[str, str]:
        raise RestError(400, "its plugin is no longer there")

    async with at_work(tmp_path) as world:
        operations = Operations(world.herder)
        await operations.delete("c")
        await operations.put_config("c", SOURCE, create=create, request_id="r")
        monkeypatch.setattr(Operations, "check", check)
        assert (await operations.put_config("c", SOURCE, create=create, request_id="r"))[0]
        with pytest.raises(RestError):
            await operations.put_config("c", SOURCE, create=False, request_id="another")


async def test_the_id_of_a_create_is_none_of_an_update(tmp_path: Path) -> None:
    async with at_work(tmp_path) as world:
        operations, state = Operations(world.herder), world.store.config
        await operations.delete("c")
        await operations.put_config("c", SOURCE, create=True, request_id="r")
        await operations.put_config("c", {**SOURCE, "batch.size": "7"}, create=False, request_id="r")
        assert state.connectors["c"] == {**SOURCE, "batch.size": "7"}


async def test_a_repeated_delete_leaves_the_topics_of_the_next_connector(tmp_path: Path) -> None:
    async with at_work(tmp_path) as world:
        operations, topics = Operations(world.herder), world.store.statuses.topics
        await operations.delete("c", request_id="r")
        await operations.put_config("c", SOURCE, create=True)
        used = topic_key("lines", "c"), topic_value("lines", Work("c", 0), 1)
        await world.store.status_topic.write([used])
        assert topics["c"] == {"lines"}
        await operations.delete("c", request_id="r")
        assert topics["c"] == {"lines"}
        await operations.delete("c")
        assert "c" not in topics


async def test_a_connector_that_is_made_again_has_a_status_again(tmp_path: Path) -> None:
    async with at_work(tmp_path) as world:
        statuses, connector = world.store.statuses.statuses, Work("c", CONNECTOR_TASK)
        await eventually(lambda: connector in statuses)
        await Operations(world.herder).delete("c")
        await eventually(lambda: connector not in statuses)
        await world.store.config_topic.write(
            [records.target_record("c", STARTED), records.connector_record("c", SOURCE)]
        )
        await eventually(lambda: connector in statuses, what="the status of the new one")


class Dying(GroupOfOne):
    """A group whose coordinator becomes unreachable after it has listed the members."""

    async def describe(self) -> DescribedGroup:
        metadata = encode_metadata(Metadata(URL, 0))
        return DescribedGroup("Stable", PROTOCOL_TYPE, PROTOCOL, (DescribedMember("before", "c", "h", metadata),))

    async def leave(self, member: str) -> int:
        raise Unavailable("the coordinator does not answer")


class Frozen(Dying):
    """A group whose coordinator does not answer at all."""

    async def leave(self, member: str) -> int:
        await asyncio.Event().wait()
        return 0


@pytest.mark.parametrize("group", [Dying(), Frozen()])
async def test_a_predecessor_that_cannot_be_let_leave_ends_no_worker(group: GroupOfOne) -> None:
    membership = Membership(group, group_id="g", session_ms=200, heartbeat_ms=100, wake=lambda: None, on_member=ignore)
    async with asyncio.timeout(20):
        await membership.replace_predecessors(URL)

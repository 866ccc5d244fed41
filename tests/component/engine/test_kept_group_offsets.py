"""A sink's position outlives its group's offsets: brokers are made to keep them, and a parked sink remembers it.

Brokers delete the offsets of a group that has been without members for `offsets.retention.minutes`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from component.engine.test_kept_offsets import empty_group, until_shown, without_group
from component.engine.test_sinks import AT_LEAST_ONCE, file_sink, produce
from keelman.kafka.groups.changes import NONE, GroupChanges
from keelman.kafka.groups.keeping import Kept, keep_offsets
from keelman.worker.config.typed import checked
from keelman.worker.offsets import sink_groups
from keelman.worker.offsets.sink_groups import AGAIN_SECONDS, TRIES, SinkGroups
from keelman.worker.standalone import StandaloneStore
from keelman.worker.storage import config_records as records
from keelman.worker.storage.store import WorkerStore
from support.brokers.broker import BrokerProcess
from support.clock import Clock, may_set
from support.copying.harness import Run, ticket
from support.eventually import eventually
from support.kafka.topics import commit, create_topic, messages
from support.waiting import until
from support.worker.store import store_callbacks
from support.worker_properties import alone

pytestmark = pytest.mark.component

WEEK_SECONDS = 604_800.0
A_MINUTE = (
    "--properties=offsets.retention.minutes=1,offsets.retention.check.interval.ms=1000,offsets.topic.num.partitions=1"
)


def left(bootstrap: str, group: str) -> int:
    """How often the group lost its last member, by the topic in which brokers store groups.

    A key is version 2, the length of the group's name, then the name.
    """
    key = (2).to_bytes(2) + len(group).to_bytes(2) + group.encode()
    return sum(m.key() == key for m in messages(bootstrap, "__consumer_offsets", "read_uncommitted", stays_open=True))


def joined(bootstrap: str, group: str, topic: str, **more: str) -> Consumer:
    """A consumer with an assignment of the topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **more})
    consumer.subscribe([topic])
    until(lambda: consumer.poll(0.1) is None and consumer.assignment(), "a member")
    return consumer


def had_a_member(bootstrap: str, group: str, topic: str, **more: str) -> None:
    """Creates a group that has an offset, and had a member."""
    consumer = joined(bootstrap, group, topic, **more)
    consumer.commit(offsets=[TopicPartition(topic, 0, 7, metadata="noted", leader_epoch=3)], asynchronous=False)
    consumer.close()


def kept(bootstrap: str, group: str) -> "asyncio.Future[Kept]":
    return asyncio.ensure_future(keep_offsets({"bootstrap.servers": bootstrap}, group, client_id="test"))


@asynccontextmanager
async def store_with(bootstrap: str, name: str, folder: Path, target: str, **config: str) -> AsyncIterator[WorkerStore]:
    """The store of a worker that has one sink."""
    properties = checked({**alone(folder / "offsets"), "bootstrap.servers": bootstrap}, standalone=True)
    store = StandaloneStore(properties, worker_id="w:1", callbacks=store_callbacks())
    config = {"connector.class": "FileStreamSink", "topics": name, **config}
    await store.config_topic.write([records.connector_record(name, config), records.target_record(name, target)])
    yield store


async def test_a_group_that_had_members_is_kept_and_one_that_has_some_is_left_alone(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name)
    commit(bootstrap, name, name, 7)
    assert await kept(bootstrap, f"{name}-nobody") == Kept(False, WEEK_SECONDS), "there is no such group"
    assert await kept(bootstrap, name) == Kept(True, WEEK_SECONDS), "it never had a member"
    had_a_member(bootstrap, name, name)
    before = left(bootstrap, name)
    assert await kept(bootstrap, name) == Kept(True, WEEK_SECONDS)
    assert left(bootstrap, name) > before
    consumer = joined(bootstrap, name, name)
    try:
        (committed,) = consumer.committed([TopicPartition(name, 0)], timeout=300)
        assert (committed.offset, committed.metadata, committed.leader_epoch) == (7, "noted", 3)
        before = left(bootstrap, name)
        assert await kept(bootstrap, name) == Kept(False, WEEK_SECONDS)
        assert left(bootstrap, name) == before, "no member has joined or left"
    finally:
        consumer.close()


async def test_a_group_of_the_newer_protocol_and_one_with_a_note_alone_are_kept(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name)
    had_a_member(bootstrap, name, name, **{"group.protocol": "consumer"})
    assert (await kept(bootstrap, name)).renewed
    joined(bootstrap, name, name, **{"group.protocol": "consumer"}).close()
    joined(bootstrap, name, name).close()
    changes = GroupChanges({"bootstrap.servers": bootstrap}, f"{name}-noted", client_id="test")
    await changes.commit({(name, 0): NONE}, "noted\0")
    assert (await kept(bootstrap, f"{name}-noted")).renewed


@pytest.mark.parametrize("target", [records.STARTED, records.PAUSED, records.STOPPED])
async def test_the_leader_keeps_the_offsets_of_every_sink(
    bootstrap: str, name: str, tmp_path: Path, target: str
) -> None:
    create_topic(bootstrap, name)
    group, leading = f"connect-{name}", False
    had_a_member(bootstrap, group, name)
    async with store_with(bootstrap, name, tmp_path, target) as store:
        groups = SinkGroups(store, lambda: leading)
        before = left(bootstrap, group)
        await groups.keep()
        assert left(bootstrap, group) == before, "it does not lead"
        leading = True
        await groups.keep()
        assert (again := left(bootstrap, group)) > before
        await groups.keep()
        assert left(bootstrap, group) == again, "it is not yet time"
        leading = False
        await groups.keep()
        leading = True
        await groups.keep()
        assert left(bootstrap, group) > again, "it leads anew"


async def test_what_was_replayed_of_dead_letters_is_kept(bootstrap: str, name: str, tmp_path: Path) -> None:
    """Otherwise a replay later than the brokers' retention would send all of them again."""
    create_topic(bootstrap, name)
    group = f"keelman-replay-{name}"
    commit(bootstrap, group, name, 7)
    letters = {"errors.deadletterqueue.topic.name": name, "connector.class": "FileStreamSource", "topic": "t"}
    async with store_with(bootstrap, name, tmp_path, records.STARTED, **letters) as store:
        before = left(bootstrap, group)
        await SinkGroups(store, lambda: True).keep()
        assert left(bootstrap, group) > before


async def test_a_sink_of_an_unknown_class_is_looked_after_and_one_whose_brokers_are_away_is_tried_again(
    bootstrap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    create_topic(bootstrap, name)
    had_a_member(bootstrap, f"connect-{name}", name)
    async with store_with(bootstrap, name, tmp_path, records.STOPPED, **{"connector.class": "com.acme.Gone"}) as store:
        before = left(bootstrap, f"connect-{name}")
        await SinkGroups(store, lambda: True).keep()
        assert left(bootstrap, f"connect-{name}") > before
        away = {"consumer.override.bootstrap.servers": "127.0.0.1:1", "connector.class": "KafkaSink", "topics": name}
        await store.config_topic.write([records.connector_record(name, away)])
        groups, at = SinkGroups(store, lambda: True), 1000.0
        monkeypatch.setattr("keelman.worker.offsets.sink_groups.now", lambda: at)
        for _ in range(TRIES + 1):
            await groups.keep()
            at += AGAIN_SECONDS
    assert capfd.readouterr().out.count("sink_offsets_not_kept") == 1, "what lasts is logged, and once"


@pytest.mark.skipif(not may_set(), reason="no C compiler, to set the brokers' clock")
async def test_offsets_outlive_the_brokers_retention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a broker that keeps them for a minute: of two groups that had a member, one is a sink's.

    The clocks of the broker and of the worker are set ahead.
    """
    clock, ahead = Clock(tmp_path / "clock"), 0
    monkeypatch.setattr(sink_groups, "now", lambda: time.monotonic() + ahead)
    monkeypatch.setattr(sink_groups, "LOOK_SECONDS", 0.05)
    broker = BrokerProcess(tmp_path / "broker", flags=(A_MINUTE,), env=clock.env)
    await broker.start()
    try:
        create_topic(broker.bootstrap, "t")
        for group in ("connect-t", "other"):
            had_a_member(broker.bootstrap, group, "t")
        client = {"bootstrap.servers": broker.bootstrap}
        changes, others = (GroupChanges(client, group, client_id="test") for group in ("connect-t", "other"))
        async with store_with(broker.bootstrap, "t", tmp_path, records.PAUSED) as store:
            keeping = asyncio.create_task(SinkGroups(store, lambda: True).run())
            try:
                for times, ahead in enumerate(range(0, 90, 15), 1):
                    clock.set(ahead)
                    await eventually(lambda n=times: left(broker.bootstrap, "connect-t") > n, what="it is kept again")
                    if offsets := await others.offsets():
                        await others.commit(offsets)  # which is of no use

                async def forgotten() -> bool:
                    return not await others.offsets()

                await eventually(forgotten, what="the other group's offset is forgotten")
                assert await changes.offsets() == {("t", 0): 7}
            finally:
                keeping.cancel()
    finally:
        await broker.end()


@pytest.mark.parametrize("reset", ["earliest", "latest"])
async def test_a_parked_sink_goes_on_where_it_was_though_its_group_is_forgotten(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run], reset: str
) -> None:
    produce(bootstrap, name, range(10))
    taken = tmp_path / "taken"
    first = file_sink(name, taken, **{"keelman.park.after.ms": "200"})
    run = runs(ticket(bootstrap, first, delivery=AT_LEAST_ONCE))
    watch = run.until(lambda u: u.HasField("watch")).watch.topics
    run.drain()
    group = f"connect-{name}-out"
    await empty_group(bootstrap, name, group)
    await without_group(bootstrap, group)
    produce(bootstrap, name, range(10, 13))
    config = {**first, "consumer.override.auto.offset.reset": reset}
    run = runs(ticket(bootstrap, config, delivery=AT_LEAST_ONCE, parked=watch))
    changes = GroupChanges({"bootstrap.servers": bootstrap}, group, client_id="test")
    await until_shown(changes, {(name, 0): 15}, "the end, behind the marks of two transactions")
    run.copied(3)
    assert [int(line) for line in taken.read_text().split()] == list(range(13))

    # The group's offset has priority, and a topic that was created anew is another one.
    await empty_group(bootstrap, name, group)
    await changes.commit({(name, 0): 12})
    runs(ticket(bootstrap, {**first, "file": f"{taken}2"}, delivery=AT_LEAST_ONCE, parked=watch)).copied(2)
    assert [int(line) for line in Path(f"{taken}2").read_text().split()] == [11, 12]
    await empty_group(bootstrap, name, group)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([name])[name].result(300)
    until(lambda: name not in admin.list_topics(timeout=300).topics, "the topic is gone")
    produce(bootstrap, name, range(20))
    await without_group(bootstrap, group)
    runs(ticket(bootstrap, {**first, "file": f"{taken}3"}, delivery=AT_LEAST_ONCE, parked=watch)).copied(20)
    assert [int(line) for line in Path(f"{taken}3").read_text().split()] == list(range(20))

"""A reader of the events ends up with the tables and has seen each revision once, in order.

This holds for any writes, refusals, cut-off calls and failing brokers. The topics' content after compaction equals the
tables.
"""

import asyncio
import contextlib
import tempfile
from pathlib import Path
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlmodel import select

from keelman.api.event.v1 import event_pb2
from keelman.kafka.feed import event_topic
from keelman.model.cluster import ExternalBrokers, WorkerClusterSpec
from keelman.model.errors import KeelmanError, Unavailable
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.database.tables import RelayRow
from keelman.state.events import relay as relaying
from keelman.state.events.relay import Relay, relay_lease
from keelman.state.events.watch import Tail
from keelman.state.executor import Executor
from keelman.state.nouns.broker_cluster import broker_cluster_message
from keelman.state.nouns.registry import NOUNS
from keelman.state.nouns.worker_cluster import worker_cluster_message
from keelman.state.planning.draft import Limits
from keelman.state.resources.hub import Hub
from keelman.state.resources.store import ResourceStore, load, subjects_of
from support.eventually import eventually
from support.state.stores import open_store

LIMITS = Limits(range(8083, 8090), range(9092, 9099), range(7430, 7439))
name = st.sampled_from(["a", "b"])
write = st.one_of(
    st.tuples(st.sampled_from(["brokers", "workers", "start", "stop", "delete", "delete-brokers"]), name),
    st.tuples(st.sampled_from(["cut", "plan"]), st.just("")),
)


class Brokers:
    """Brokers that store all records, only the first ones, or none, as the list of failures tells."""

    def __init__(self, failures: list[int]) -> None:
        self.failures = failures
        self.records: list[tuple[str, str, bytes | None]] = []

    @contextlib.asynccontextmanager
    async def connect(self, _bootstrap: str, _topics, _properties):
        yield self

    async def publish(self, facts) -> None:
        failure = self.failures.pop() if self.failures else len(facts)
        self.records += [(f.topic, f.key, f.value) for f in facts[:failure]]
        if failure < len(facts):
            raise Unavailable("the brokers went away")


def work(tx, verb: str, of: str) -> None:
    match verb:
        case "brokers":
            broker_clusters.create(tx, of, ExternalBrokers("127.0.0.1:1"))
        case "workers":
            worker_clusters.create(tx, of, WorkerClusterSpec("default", count=1))
        case "start":
            worker_clusters.start(tx, of, "")
        case "stop":
            worker_clusters.stop(tx, of, "")
        case "delete":
            worker_clusters.delete(tx, of, "")
        case "delete-brokers":
            broker_clusters.delete(tx, of, "")
        case "cut":
            broker_clusters.create(tx, "never", ExternalBrokers("127.0.0.1:1"))
            raise asyncio.CancelledError


async def history(path: Path, writes: list[tuple[str, str]], failures: list[int]) -> None:
    brokers, hub = Brokers(failures), Hub()
    async with open_store(str(path)) as store:
        store.listen(lambda changes: hub.wake(subjects_of(changes)))
        planner = Executor(store, LIMITS, lambda node: node)
        store.listen(planner.changed)
        async with store.write() as tx:
            broker_clusters.create(tx, "default", ExternalBrokers("127.0.0.1:1"))
        tail = Tail(store)
        store.follow(tail.add)
        relay = Relay(store, hub, "default", tail, relay_lease(store.database), brokers.connect)
        running = asyncio.ensure_future(relay.run())
        try:
            for verb, of in writes:
                if verb == "plan":
                    await planner.reconcile()
                    continue
                with contextlib.suppress(KeelmanError, asyncio.CancelledError):
                    async with store.write() as tx:
                        work(tx, verb, of)
            async with store.database.read() as session:
                revision, snapshot = store.revision, await load(session, NOUNS)
            for noun in NOUNS:
                assert dict(store.snapshot.resources(noun)) == snapshot.resources(noun), (
                    "the memory has the stored content"
                )
            await eventually(lambda: brokers.records and newest(brokers) == revision)
            await eventually(lambda: published(store, revision))
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    seen, tables = [], {}
    last: dict[str, int] = {}
    before: tuple[str, str, bytes | None] = ("", "", None)
    for topic, key, value in brokers.records:
        before, (of_topic, of_key, deleted) = (topic, key, value), before
        if value is None:
            assert (of_topic, of_key) == (topic, key)
            assert event_pb2.Event.FromString(deleted or b"").type == event_pb2.EVENT_TYPE_DELETED
            continue
        event = event_pb2.Event.FromString(value)
        assert key == event.name
        if event.revision <= last.get(topic, 0):
            continue  # seen before
        last[topic] = event.revision
        seen.append(event.revision)
        if event.type == event_pb2.EVENT_TYPE_DELETED:
            del tables[topic, key]
        else:
            tables[topic, key] = getattr(event, event.WhichOneof("resource"))
    assert seen == list(range(1, revision + 1))
    broker_cluster_messages = {
        (event_topic("broker_cluster"), n): broker_cluster_message(c) for n, c in snapshot.broker_clusters.items()
    }
    broker_cluster_messages |= {
        (event_topic("worker_cluster"), n): worker_cluster_message(c) for n, c in snapshot.worker_clusters.items()
    }
    assert tables == broker_cluster_messages
    compacted = {(topic, key): value for topic, key, value in brokers.records}
    assert {(topic, key) for (topic, key), value in compacted.items() if value is not None} == set(
        broker_cluster_messages
    )


def newest(brokers: Brokers) -> int:
    return max(event_pb2.Event.FromString(value).revision for _, _, value in brokers.records if value is not None)


async def published(store: ResourceStore, revision: int) -> bool:
    async with store.database.read() as session:
        return (await session.exec(select(RelayRow.published))).one() == revision


@settings(max_examples=15, deadline=None)
@given(st.lists(write, max_size=15), st.lists(st.integers(0, 3), max_size=2))
def test_the_events_retell_the_tables(writes: list[tuple[str, str]], failures: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder, patch.object(relaying, "NOTE_SECONDS", 0.01):
        asyncio.run(history(Path(folder) / "state.db", writes, list(failures)))

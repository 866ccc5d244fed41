"""Whatever is written, refused or cut off, and however often the brokers fail: a reader of the events ends up with the
tables, having seen every revision once and in order."""

import asyncio
import contextlib
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.api.event.v1 import event_pb2
from keelman.kafka.feed import event_topic
from keelman.model.cluster import ExternalBrokers, WorkerClusterSpec
from keelman.model.errors import KeelmanError, Unavailable
from keelman.state import requests, store
from keelman.state.database import open_database
from keelman.state.encoding import broker_cluster_message, worker_cluster_message
from keelman.state.executor import Executor
from keelman.state.hub import Hub
from keelman.state.planning.draft import Limits
from keelman.state.relay import Relay
from keelman.testing.eventually import eventually

LIMITS = Limits(range(8083, 8090), range(9092, 9099), range(7430, 7439))
name = st.sampled_from(["a", "b"])
write = st.one_of(
    st.tuples(st.sampled_from(["brokers", "workers", "start", "stop", "delete", "delete-brokers"]), name),
    st.tuples(st.sampled_from(["cut", "plan"]), st.just("")),
)


class Brokers:
    """Stores what it is given, or only the beginning of it, or nothing, as the plan of failures says."""

    def __init__(self, failures: list[int]) -> None:
        self.failures = failures
        self.records: list[tuple[str, str, bytes]] = []

    @contextlib.asynccontextmanager
    async def connect(self, _bootstrap: str, _topics):
        yield self

    async def publish(self, facts) -> None:
        kept = self.failures.pop() if self.failures else len(facts)
        self.records += [(f.topic, f.key, f.value) for f in facts[:kept]]
        if kept < len(facts):
            raise Unavailable("the brokers went away")


async def work(tx, verb: str, of: str) -> None:
    match verb:
        case "brokers":
            await requests.create_broker_cluster(tx, of, ExternalBrokers("127.0.0.1:1"))
        case "workers":
            await requests.create_worker_cluster(tx, of, WorkerClusterSpec("default", count=1))
        case "start":
            await requests.start_worker_cluster(tx, of, "")
        case "stop":
            await requests.stop_worker_cluster(tx, of, "")
        case "delete":
            await requests.delete_worker_cluster(tx, of, "")
        case "delete-brokers":
            await requests.delete_broker_cluster(tx, of, "")
        case "cut":
            await requests.create_broker_cluster(tx, "never", ExternalBrokers("127.0.0.1:1"))
            raise asyncio.CancelledError


async def history(path: Path, writes: list[tuple[str, str]], failures: list[int]) -> None:
    brokers, hub = Brokers(failures), Hub()
    async with open_database(str(path), store.settle, hub.wake) as database:
        async with database.write() as tx:
            await requests.create_broker_cluster(tx, "default", ExternalBrokers("127.0.0.1:1"))
        relay = Relay(database, hub, "default", sole=True, connect=brokers.connect)
        running = asyncio.ensure_future(relay.run())
        try:
            for verb, of in writes:
                if verb == "plan":
                    await Executor(database, LIMITS).reconcile()
                    continue
                with contextlib.suppress(KeelmanError, asyncio.CancelledError):
                    async with database.write() as tx:
                        await work(tx, verb, of)
            async with database.read() as session:
                revision, _ = await store.workloads_of(session, "")
                snapshot = await store.load(session)
            await eventually(lambda: brokers.records and newest(brokers) == revision)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    seen, tables = [], {}
    last: dict[str, int] = {}
    for topic, key, value in brokers.records:
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
    wanted = {
        (event_topic("broker_cluster"), n): broker_cluster_message(c) for n, c in snapshot.broker_clusters.items()
    }
    wanted |= {
        (event_topic("worker_cluster"), n): worker_cluster_message(c) for n, c in snapshot.worker_clusters.items()
    }
    assert tables == wanted


def newest(brokers: Brokers) -> int:
    return event_pb2.Event.FromString(brokers.records[-1][2]).revision


@settings(max_examples=15, deadline=None)
@given(st.lists(write, max_size=15), st.lists(st.integers(0, 3), max_size=2))
def test_the_events_retell_the_tables(writes: list[tuple[str, str]], failures: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(history(Path(folder) / "state.db", writes, list(failures)))

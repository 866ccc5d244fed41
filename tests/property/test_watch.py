"""A watch ends up with the tables, however often it is cut off, however slow it is, and whatever is trimmed meanwhile.

The changes that it reports are in order, without repetition, and lead to the tables.
"""

import asyncio
import contextlib
import tempfile
from pathlib import Path
from unittest.mock import patch

import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlmodel import col

from keelman.api.event.v1.event_pb2 import EVENT_TYPE_DELETED, Event
from keelman.api.event.v1.watch_service_pb2 import WatchRequest
from keelman.model.cluster import ExternalBrokers, WorkerClusterSpec
from keelman.model.errors import KeelmanError
from keelman.rpc.watching import KnownResources, key_of, resource_of
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.database.tables import OutboxRow
from keelman.state.events import watch as watching
from keelman.state.events.watch import Tail, WatchApi
from keelman.state.executor import Executor
from keelman.state.nouns.registry import NOUNS
from keelman.state.planning.draft import Limits
from keelman.state.resources.hub import Hub
from keelman.state.resources.noun import CREATED
from keelman.state.resources.store import ResourceStore, subjects_of
from support.state.stores import open_store

LIMITS = Limits(range(8083, 8090), range(9092, 9099), range(7430, 7439))
name = st.sampled_from(["a", "b", "c"])
step = st.one_of(
    st.tuples(st.sampled_from(["create", "start", "stop", "delete"]), name),
    st.sampled_from([("cut", ""), ("plan", ""), ("trim", "")]),
    st.sampled_from([("read", "1"), ("read", "2"), ("read", "9")]),
)


class Watcher:
    """A client that reads so many answers, or is cut off, as the test tells it."""

    def __init__(self, store: ResourceStore, hub: Hub, nouns: list[str]) -> None:
        self.store, self.hub, self.nouns = store, hub, nouns
        self.known, self.told = KnownResources(), {}
        self.last = 0
        self.answers = None

    async def read(self, count: int) -> None:
        """Reads so many answers, if so many are there now."""
        if self.answers is None:
            request = WatchRequest(nouns=self.nouns, from_revision=self.known.begin())
            api = WatchApi(self.store, self.hub, Tail(self.store))
            self.answers = api.Watch(request, None)
        for _ in range(count):
            try:
                async with asyncio.timeout(0.05):
                    answer = await anext(self.answers)
            except TimeoutError:  # it has all, or is slow; the time-out has ended the stream
                self.answers = None
                return
            changed = self.known.fold(answer)
            for event in changed:
                self.tell(event, ordered=not answer.snapshot)

    def tell(self, event: Event, *, ordered: bool) -> None:
        assert not ordered or event.revision > self.last
        self.last = max(self.last, event.revision)
        if event.type == EVENT_TYPE_DELETED:
            del self.told[key_of(event)]
        else:
            assert self.told.get(key_of(event)) != resource_of(event) or ordered
            self.told[key_of(event)] = resource_of(event)

    async def cut(self) -> None:
        if self.answers is not None:
            await self.answers.aclose()
            self.answers = None


async def work(store: ResourceStore, verb: str, of: str) -> None:
    async with store.write() as tx:
        match verb:
            case "create":
                worker_clusters.create(tx, of, WorkerClusterSpec("default", count=1))
            case "start":
                worker_clusters.start(tx, of, "")
            case "stop":
                worker_clusters.stop(tx, of, "")
            case "delete":
                worker_clusters.delete(tx, of, "")


async def trim(store: ResourceStore) -> None:
    async with store.database.write() as turn:
        connection = await turn.session.connection()
        await connection.execute(sa.delete(OutboxRow).where(col(OutboxRow.revision) < turn.revision))


async def history(path: Path, steps: list[tuple[str, str]], nouns: list[str]) -> None:
    hub = Hub()
    async with open_store(str(path)) as store:
        planner = Executor(store, LIMITS, lambda node: node)
        store.listen(lambda changes: hub.wake(subjects_of(changes)))
        store.listen(planner.changed)
        async with store.write() as tx:
            broker_clusters.create(tx, "default", ExternalBrokers("127.0.0.1:1"))
        for of in "ab":
            await work(store, "create", of)
        watcher = Watcher(store, hub, nouns)
        for verb, of in steps:
            match verb:
                case "cut":
                    await watcher.cut()
                case "read":
                    await watcher.read(int(of))
                case "trim":
                    await trim(store)
                case "plan":
                    await planner.reconcile()
                case _:
                    with contextlib.suppress(KeelmanError):
                        await work(store, verb, of)
        await watcher.cut()  # a new stream begins with its position
        while watcher.known.revision < store.revision:
            await watcher.read(1)
        await watcher.cut()
        events = [
            NOUNS[resource.NOUN].event(CREATED, resource, store.revision, store.database.clock())
            for noun in nouns or NOUNS
            for resource in store.snapshot.resources(noun).values()
        ]
    resources = {key_of(event): resource_of(event) for event in events}
    assert watcher.known.resources == resources
    assert watcher.told == resources


@settings(max_examples=30, deadline=None)
@given(st.lists(step, min_size=10, max_size=20), st.sampled_from([[], ["worker_cluster"], ["broker_cluster", "node"]]))
def test_a_watch_that_is_cut_off_ends_up_with_the_tables(steps: list[tuple[str, str]], nouns: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, patch.object(watching, "PART", 2), patch.object(watching, "QUIET", 3):
        asyncio.run(history(Path(folder) / "state.db", steps, nouns))

"""The state service is killed at each step of its writes, plans and sessions.

Nothing is left half done, and a repeated request takes effect once.
"""

import asyncio
import contextlib
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlmodel import select

from keelman.api.connect.v1 import plugin_service_pb2 as plugins_pb
from keelman.api.connect.v1 import worker_cluster_pb2
from keelman.api.connect.v1.broker_cluster_pb2 import ClusterState
from keelman.api.connect.v1.plugin_pb2 import Plugin
from keelman.api.event.v1 import event_pb2
from keelman.api.node.v1 import node_service_pb2
from keelman.model.errors import KeelmanError, NotFound
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated
from keelman.runtime.home import Home
from keelman.state.clusters.status import with_status
from keelman.state.database.failpoints import NAMES
from keelman.state.database.tables import OutboxRow
from keelman.state.nouns.registry import NOUNS
from keelman.state.plugins.database_storage import DatabaseStorage
from support.eventually import eventually
from support.state.service import Agent, Clients, StateProcess, workers_pb
from support.state.stores import open_store
from support.state.uploads import download, jar, upload

pytestmark = pytest.mark.component
AT_START = ("nodes-doubted", "relay-taken", "leads")
DELETED, CREATED = ("answer-due", 1), ("answer-due", 3)
"""Writes that would be refused if a client repeats them without an id; the upload, which is the first, would not."""
LATER = (DELETED, CREATED, ("plan-stored", 2), ("report-stored", 2), ("committed", 6), ("rows-changed", 9))
"""Steps of the same names further on: in the middle of a change that reaches the workers one by one."""
ALWAYS = (
    "leads", "write-begun", "rows-added", "committed", "snapshot-advanced", "answer-due", "plan-made", "plan-stored",
    "assignments-sent", "report-stored", "plugin-stored",
)  # fmt: skip
Case = tuple[str, int]
CASES: list[Case] = [(name, 0) for name in ALWAYS]
"""Run by `make test`: steps, each with the number of its former passages."""
OTHERS: list[Case] = [*((name, 0) for name in NAMES if name not in ALWAYS), *LATER]
"""Run by `make slow`: together they take minutes."""
PROPERTY = "offset.flush.interval.ms"


def test_each_step_has_a_case() -> None:
    assert {name for name, _ in (*CASES, *OTHERS)} == {*NAMES}


@dataclass(frozen=True)
class Story:
    """The requests to the state service around one kill, with names and ids of their own."""

    number: int

    def of(self, name: str) -> str:
        return f"{name}-{self.number}"

    async def create(self, clients: Clients, name: str, node: str = "n1", **spec) -> None:
        nodes = worker_cluster_pb2.WorkerNodes(names=[node])
        spec_of_cluster = worker_cluster_pb2.WorkerClusterSpec(broker_cluster="ext", nodes=nodes, **spec)
        request = workers_pb.CreateWorkerClusterRequest(
            name=self.of(name), spec=spec_of_cluster, request_id=self.of(f"c-{name}")
        )
        await clients.clusters.CreateWorkerCluster(request)
        await clients.clusters.StartWorkerCluster(
            workers_pb.StartWorkerClusterRequest(name=self.of(name), request_id=self.of(f"s-{name}"))
        )

    async def prepare(self, clients: Clients) -> None:
        """Creates the resources that exist when the process is killed."""
        await upload(clients.plugins, jar(100), name=self.of("early"), request_id=self.of("upload-early"))
        await self.create(clients, "demo", count=2)
        await self.create(clients, "idle", count=1)
        await eventually(lambda: self.runs(clients, "demo"))
        await eventually(lambda: self.runs(clients, "idle"))

    async def work(self, clients: Clients) -> None:
        """Sends the requests during the kill, and again after it with the same ids."""
        with translated():
            await upload(clients.plugins, jar(3 << 20), name=self.of("late"), request_id=self.of("upload-late"))
        await clients.plugins.DeletePlugin(
            plugins_pb.DeletePluginRequest(name=self.of("early"), version="1.2", request_id=self.of("delete-early"))
        )
        update = workers_pb.UpdateWorkerClusterRequest(name=self.of("demo"), request_id=self.of("update-demo"))
        update.spec.properties[PROPERTY] = "10000"
        update.update_mask.paths.append("properties")
        await clients.clusters.UpdateWorkerCluster(update)
        await self.create(clients, "late", count=1)
        node = self.of("n9")
        await clients.nodes.CreateNode(node_service_pb2.CreateNodeRequest(name=node, request_id=self.of("create-n9")))
        await self.create(clients, "waits", node)
        await clients.clusters.DeleteWorkerCluster(
            workers_pb.DeleteWorkerClusterRequest(name=self.of("idle"), request_id=self.of("delete-idle"))
        )

    async def check(self, clients: Clients) -> None:
        """The requests have taken effect, once."""
        await eventually(lambda: self.all_have_it(clients), what="the change has reached all workers")
        for name in ("demo", "late"):
            await eventually(lambda name=name: self.runs(clients, name), what=f"{name} runs")
        await eventually(lambda: self.is_gone(clients, "idle"), what="the deleted cluster is gone")
        assert (await clients.worker_cluster(self.of("demo"))).generation == 3, "created, started, updated: once each"
        assert (await clients.worker_cluster(self.of("late"))).generation == 2
        late = await plugin(clients)
        assert (late.name, late.version) == (self.of("late"), "1.2")
        assert await download(clients.plugins, self.of("late")) == (late, jar(3 << 20))
        assert self.of("n9") in (await clients.worker_cluster(self.of("waits"))).status.message

    async def clear(self, clients: Clients) -> None:
        """Deletes everything, so that no operation is left."""
        for name in ("demo", "late", "waits"):
            await clients.delete_workers(self.of(name))
        await clients.plugins.DeletePlugin(plugins_pb.DeletePluginRequest(name=self.of("late"), version="1.2"))
        for name in ("demo", "late", "waits"):
            await eventually(lambda name=name: self.is_gone(clients, name), what=f"{name} is gone")

    async def runs(self, clients: Clients, name: str) -> bool:
        return (await clients.worker_cluster(self.of(name))).status.state == ClusterState.CLUSTER_STATE_RUNNING

    async def is_gone(self, clients: Clients, name: str) -> bool:
        try:
            await clients.worker_cluster(self.of(name))
        except NotFound:
            return True
        return False

    async def all_have_it(self, clients: Clients) -> bool:
        prefix = f"worker/{self.of('demo')}/"
        workers = [w for n, w in (await clients.workloads()).items() if n.startswith(prefix)]
        return len(workers) == 2 and all(w.spec.worker.properties.get(PROPERTY) == "10000" for w in workers)


async def plugin(clients: Clients) -> Plugin:
    """The only plugin."""
    (actual_plugin,) = (await clients.plugins.ListPlugins(plugins_pb.ListPluginsRequest())).plugins
    return actual_plugin


async def checked(home: Home, *, swept: bool = False) -> None:
    """Nothing in the database is half done; after an orderly start also no file of a plugin is left."""
    async with open_store(str(home.database), key_file=home.secrets_key) as store:
        async with store.database.read() as session:
            rows = (await session.exec(select(OutboxRow).order_by(OutboxRow.revision))).all()
        snapshot = store.snapshot
        files = await DatabaseStorage(store.database).stored()
        if swept:
            assert {*files} == {plugin.uid for plugin in snapshot.plugins.values()}, (
                "no file is left that no plugin names"
            )
        assert {plugin.uid for plugin in snapshot.plugins.values()} <= {*files}, "a plugin has its file"
        assert [row.revision for row in rows] == list(range(1, store.revision + 1)), "a number has one event"
        newest = {(row.noun, row.name): event_pb2.Event.FromString(row.payload) for row in rows}
        there = {(noun, name) for noun in NOUNS for name in snapshot.resources(noun)}
        assert there == {key for key, event in newest.items() if event.type != event_pb2.EVENT_TYPE_DELETED}
        for noun, name in there:
            published, stored = getattr(newest[noun, name], noun), NOUNS[noun].message(snapshot.resources(noun)[name])
            assert published == stored, "the last event of a resource has its stored content"
        for cluster in (*snapshot.broker_clusters.values(), *snapshot.worker_clusters.values()):
            now = cluster.update_time
            assert with_status(cluster, snapshot, now) == cluster, (
                "a status is never older than the rows that it is derived from"
            )


@contextlib.asynccontextmanager
async def agents(port: int, *names: str):
    async with channel(f"127.0.0.1:{port}") as connection, contextlib.AsyncExitStack() as stack:
        clients = Clients(connection)
        for name in names:
            await stack.enter_async_context(Agent(clients, name))
        yield clients


@dataclass
class Killed:
    """A state service that ends at one step after the other."""

    state: StateProcess
    file: Path

    async def start(self, step: str) -> None:
        """Starts it with a step at which it will end once the file exists."""
        self.file.unlink(missing_ok=True)
        self.state.environment = {"KEELMAN_FAILPOINT": step, "KEELMAN_FAILPOINT_FILE": str(self.file)}
        await self.state.start()

    async def dead(self) -> None:
        async with asyncio.timeout(300):
            assert await self.state.child.wait() == -signal.SIGKILL, self.state.output[-4000:]


@pytest.mark.parametrize(
    "cases",
    [CASES, pytest.param(OTHERS, marks=[pytest.mark.slow])],
    ids=["some", "others"],
)
async def test_a_kill_leaves_nothing_half_done(tmp_path: Path, cases: list[Case]) -> None:
    """The kills happen at each step in turn: the service that starts after one kill is the target of the next."""
    killed, stories = Killed(StateProcess(tmp_path), tmp_path / "armed"), [Story(n) for n in range(len(cases))]
    await killed.start(cases[0][0])
    try:
        async with agents(killed.state.port, "n1") as clients:
            await clients.create_external("ext", "127.0.0.1:1")
            await stories[0].prepare(clients)
            await kill(killed, stories[0], clients, cases[0])
        for story in stories:
            await checked(Home.of(tmp_path))
            following = stories[story.number + 1 :][:1]
            await killed.start(cases[story.number + 1][0] if following else "none")
            nodes = [story.of("n2") for story in stories[: story.number + 1]]  # a node that stays away delays the rest
            async with agents(killed.state.port, "n1", *nodes) as clients:
                await story.work(clients)
                await story.check(clients)
                for next_story in following:
                    await story.clear(clients)
                    await next_story.prepare(clients)
                    await kill(killed, next_story, clients, cases[next_story.number])
        await killed.state.end()
        await checked(Home.of(tmp_path), swept=True)
    finally:
        await killed.state.end(signal.SIGKILL)


async def kill(killed: Killed, story: Story, clients: Clients, case: Case) -> None:
    """Makes it end at this step, of its start or of its work."""
    step, passages = case
    print(f"killed at {step}, which is passed {passages} times before")  # shown if the test fails
    if step in AT_START:
        await killed.state.end()
        killed.file.write_text("0")
        await killed.state.spawn()
    else:
        killed.file.write_text(str(passages))
        with contextlib.suppress(KeelmanError):
            await story.work(clients)
            async with agents(killed.state.port, story.of("n2")):
                await killed.dead()
    await killed.dead()

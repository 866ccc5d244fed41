"""The state service is killed at each step of its writes, plans and sessions: nothing is half done, and what was asked
comes about once when it is asked again."""

import asyncio
import contextlib
import signal

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
from keelman.state.database.tables import OutboxRow
from keelman.state.failpoints import NAMES
from keelman.state.nouns.registry import NOUNS
from keelman.state.planning.status import with_status
from keelman.state.plugins.database_storage import DatabaseStorage
from keelman.state.store import open_store
from keelman.testing.eventually import eventually
from support.state.service import Agent, Clients, StateProcess, workers_pb
from support.state.uploads import download, jar, upload

pytestmark = pytest.mark.component
AT_START = ("nodes-doubted", "relay-taken", "leads")
DELETED, CREATED = ("answer-due", 1), ("answer-due", 3)
"""Writes that a client who asks again without an id would be refused; an upload, which is the first, it would not."""
LATER = (DELETED, CREATED, ("plan-stored", 2), ("report-stored", 2), ("committed", 6), ("rows-changed", 9))
"""Steps of the same names further on: in the middle of a change that reaches the workers one by one."""
ALWAYS = (
    "leads", "write-begun", "rows-added", "committed", "snapshot-advanced", "answer-due", "plan-made", "plan-stored",
    "assignments-sent", "report-stored", "plugin-stored",
)  # fmt: skip
"""Tried by `make test`; all others take minutes together, and are tried by `make slow`."""
CASES = [pytest.param(n, 0, marks=() if n in ALWAYS else pytest.mark.slow) for n in NAMES]
CASES += [pytest.param(n, passages, marks=pytest.mark.slow) for n, passages in LATER]
PROPERTY = "offset.flush.interval.ms"


async def create(clients: Clients, name: str, **spec) -> None:
    made = worker_cluster_pb2.WorkerClusterSpec(broker_cluster="ext", **spec)
    request = workers_pb.CreateWorkerClusterRequest(name=name, spec=made, request_id=f"create-{name}")
    await clients.clusters.CreateWorkerCluster(request)
    await clients.clusters.StartWorkerCluster(
        workers_pb.StartWorkerClusterRequest(name=name, request_id=f"start-{name}")
    )


async def prepare(clients: Clients) -> None:
    """What is there when the process is killed."""
    await clients.create_external("ext", "127.0.0.1:1")
    await upload(clients.plugins, jar(100), name="early", request_id="upload-early")
    await create(clients, "demo", count=2)
    await create(clients, "idle", count=1)
    await eventually(lambda: runs(clients, "demo"))
    await eventually(lambda: runs(clients, "idle"))


async def work(clients: Clients) -> None:
    """What is asked while it is killed, and after it again with the same ids."""
    with translated():
        await upload(clients.plugins, jar(3 << 20), name="late", request_id="upload-late")
    delete_plugin = plugins_pb.DeletePluginRequest(name="early", version="1.2", request_id="delete-early")
    await clients.plugins.DeletePlugin(delete_plugin)
    update = workers_pb.UpdateWorkerClusterRequest(name="demo", request_id="update-demo")
    update.spec.properties[PROPERTY] = "10000"
    update.update_mask.paths.append("properties")
    await clients.clusters.UpdateWorkerCluster(update)
    await create(clients, "late", count=1)
    await clients.nodes.CreateNode(node_service_pb2.CreateNodeRequest(name="n9", request_id="create-n9"))
    await create(clients, "waits", nodes=worker_cluster_pb2.WorkerNodes(names=["n9"]))
    await clients.clusters.DeleteWorkerCluster(
        workers_pb.DeleteWorkerClusterRequest(name="idle", request_id="delete-idle")
    )


async def runs(clients: Clients, name: str) -> bool:
    return (await clients.worker_cluster(name)).status.state == ClusterState.CLUSTER_STATE_RUNNING


async def is_gone(clients: Clients, name: str) -> bool:
    try:
        await clients.worker_cluster(name)
    except NotFound:
        return True
    return False


async def all_have_it(clients: Clients) -> bool:
    workers = [w for n, w in (await clients.workloads()).items() if n.startswith("worker/demo/")]
    return len(workers) == 2 and all(w.spec.worker.properties.get(PROPERTY) == "10000" for w in workers)


async def plugin(clients: Clients) -> Plugin:
    answer = await clients.plugins.ListPlugins(plugins_pb.ListPluginsRequest())
    assert [(one.name, one.version) for one in answer.plugins] == [("late", "1.2")]
    return answer.plugins[0]


async def checked(home: Home, *, swept: bool = False) -> None:
    """Nothing in the database is half done; after a start that ended well also no file of a plugin is left."""
    async with open_store(str(home.database), key_file=home.secrets_key) as store:
        async with store.database.read() as session:
            rows = (await session.exec(select(OutboxRow).order_by(OutboxRow.revision))).all()
        snapshot = store.snapshot
        files = await DatabaseStorage(store.database).stored()
        if swept:
            assert {*files} == {one.uid for one in snapshot.plugins.values()}, "no file is left that no plugin names"
        assert {one.uid for one in snapshot.plugins.values()} <= {*files}, "a plugin has its file"
        assert [row.revision for row in rows] == list(range(1, store.revision + 1)), "a number has one event"
        newest = {(row.noun, row.name): event_pb2.Event.FromString(row.payload) for row in rows}
        there = {(noun, name) for noun in NOUNS for name in snapshot.resources(noun)}
        assert there == {key for key, event in newest.items() if event.type != event_pb2.EVENT_TYPE_DELETED}
        for noun, name in there:
            told, stored = getattr(newest[noun, name], noun), NOUNS[noun].message(snapshot.resources(noun)[name])
            assert told == stored, "the last event of a resource is what is stored"
        for cluster in (*snapshot.broker_clusters.values(), *snapshot.worker_clusters.values()):
            now = cluster.update_time
            assert with_status(cluster, snapshot, now) == cluster, "a status is never behind what it is derived from"


@contextlib.asynccontextmanager
async def agents(port: int, *names: str):
    async with channel(f"127.0.0.1:{port}") as made, contextlib.AsyncExitStack() as stack:
        clients = Clients(made)
        for name in names:
            await stack.enter_async_context(Agent(clients, name))
        yield clients


@pytest.mark.parametrize(("name", "passages"), CASES)
async def test_a_kill_leaves_nothing_half_done(tmp_path, name: str, passages: int) -> None:
    file, state = tmp_path / "armed", StateProcess(tmp_path)
    state.environment = {"KEELMAN_FAILPOINT": name, "KEELMAN_FAILPOINT_FILE": str(file)}
    await state.start()
    try:
        async with agents(state.port, "n1") as clients:
            await prepare(clients)
            if name in AT_START:
                await state.end()
                file.write_text("0")
                await state.spawn()
            else:
                file.write_text(str(passages))
                with contextlib.suppress(KeelmanError):
                    await work(clients)
                    async with agents(state.port, "n2"):
                        await dead(state)
            assert await dead(state) == -signal.SIGKILL, state.output
        await checked(Home.of(tmp_path))
        state.environment = {}
        await state.start()
        async with agents(state.port, "n1", "n2") as clients:
            await work(clients)
            await eventually(lambda: all_have_it(clients), what="the change has reached all workers")
            for cluster in ("demo", "late"):
                await eventually(lambda cluster=cluster: runs(clients, cluster), what=f"{cluster} runs")
            await eventually(lambda: is_gone(clients, "idle"), what="the deleted cluster is gone")
            assert (await clients.worker_cluster("demo")).generation == 3, "created, started, updated: once each"
            assert (await clients.worker_cluster("late")).generation == 2
            assert await download(clients.plugins, "late") == (await plugin(clients), jar(3 << 20))
            assert "n9" in (await clients.worker_cluster("waits")).status.message
        await state.end()
        await checked(Home.of(tmp_path), swept=True)
    finally:
        await state.end(signal.SIGKILL)


async def dead(state: StateProcess) -> int:
    async with asyncio.timeout(60):
        return await state.child.wait()

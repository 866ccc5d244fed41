"""The procedures of docs/operations.md for the database of a running installation: an upgrade, a restore of a backup.

Workers keep running through both.
"""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.connect.v1.worker_cluster_service_pb2 import UpdateWorkerClusterRequest
from keelman.api.node.v1.workload_pb2 import Workload
from keelman.rpc.channels import channel
from keelman.runtime.processes.process_trees import is_marked
from keelman.state.database.migrations.migrate import NEWEST
from support.eventually import eventually
from support.state.homes import set_back
from support.state.nodes import Nodes, running_nodes
from support.state.service import RUNNING, Clients

pytestmark = pytest.mark.component
SAME, CHANGED, SPARK = "worker/same/0", "worker/changed/0", "spark/n1"


@dataclass(frozen=True, slots=True)
class Installation:
    """A state service and an agent with the workers of two clusters; its database is a file or a URL."""

    nodes: Nodes
    clients: Clients
    database: str


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
async def installation(
    request: pytest.FixtureRequest, bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    """One installation for all procedures with a kind of database."""
    folder = tmp_path_factory.mktemp(request.param)
    database = str(folder / "state.db") if request.param == "sqlite" else request.getfixturevalue("postgresql")()
    async with running_nodes(folder, ["n1"]) as nodes:
        await nodes.state.end()
        nodes.state.flags += ("--database", database)
        await nodes.state.start()
        nodes.start_agent("n1")
        async with channel(f"127.0.0.1:{nodes.state.port}") as connection:
            clients = Clients(connection)
            await nodes.are_online(clients)
            await clients.create_external("default", bootstrap)
            for name in ("same", "changed"):
                await clients.create_workers(name, count=1)
                await clients.start_workers(name)
            yield Installation(nodes, clients, database)


async def running(clients: Clients) -> dict[str, Workload]:
    """All three workloads, when they run as planned."""
    workloads: dict[str, Workload] = {}

    async def look() -> bool:
        workloads.update(await clients.workloads())
        planned = [workloads[name] for name in (SAME, CHANGED, SPARK)]
        return all(w.status.state == RUNNING and w.status.generation == w.generation for w in planned)

    await eventually(look, what="both workers and their Spark service run")
    return workloads


async def change(clients: Clients, seconds: int) -> None:
    """Gives the worker of one of the clusters other properties, which restarts it."""
    spec = WorkerClusterSpec(properties={"offset.flush.interval.ms": f"{seconds}000"})
    mask = FieldMask(paths=["properties"])
    await clients.clusters.UpdateWorkerCluster(UpdateWorkerClusterRequest(name="changed", spec=spec, update_mask=mask))

    async def planned() -> bool:
        return (await clients.workloads())[CHANGED].spec.worker.properties[
            "offset.flush.interval.ms"
        ] == f"{seconds}000"

    await eventually(planned, what="the change is planned")


def processes(nodes: Nodes, name: str) -> list[int]:
    """The processes of a workload, without their children."""
    folder = nodes.homes["n1"].workload(name)
    results = {p for p in psutil.pids() if is_marked(p, folder)}
    return [p for p in results if psutil.Process(p).ppid() not in results]


def back_up(database: str, backup: Path) -> None:
    """Makes a backup while the state service runs."""
    words = ["pg_dump", "--format=custom", f"--file={backup}", f"--dbname={database}"]
    if "://" not in database:
        words = ["sqlite3", database, f"VACUUM INTO '{backup}'"]
    subprocess.run(words, check=True, capture_output=True, timeout=300)


def restore(database: str, backup: Path) -> None:
    """Replaces the database by the backup."""
    if "://" in database:
        words = ["pg_restore", "--clean", "--if-exists", f"--dbname={database}", str(backup)]
        subprocess.run(words, check=True, capture_output=True, timeout=300)
        return
    for old in Path(database).parent.glob(f"{Path(database).name}*"):
        old.unlink()
    Path(database).write_bytes(backup.read_bytes())


@pytest.mark.parametrize("installation", ["sqlite"], indirect=True)
async def test_an_upgrade_leaves_workers_alone(installation: Installation) -> None:
    nodes, clients, database = installation.nodes, installation.clients, installation.database
    before = {name: w.status.pid for name, w in (await running(clients)).items()}
    assert await nodes.state.end() == 0
    set_back(Path(database))
    await nodes.state.start()  # migrates
    with closing(sqlite3.connect(database)) as read:
        assert read.execute("SELECT version_num FROM alembic_version").fetchone() == (NEWEST,)
    assert {name: w.status.pid for name, w in (await running(clients)).items()} == before

    agent = nodes.agents["n1"]
    agent.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(agent.wait, 300) == 0
    nodes.start_agent("n1")
    await nodes.are_online(clients)
    await change(clients, 7)
    after = {name: w.status.pid for name, w in (await running(clients)).items()}
    assert {name for name in before if before[name] != after[name]} == {CHANGED}


async def test_after_a_restore_nothing_runs_twice_and_workers_go_on(installation: Installation, tmp_path: Path) -> None:
    nodes, clients, database = installation.nodes, installation.clients, installation.database
    first = await running(clients)
    back_up(database, tmp_path / "backup")
    for seconds in (17, 18):  # changes that are not in the backup
        await change(clients, seconds)
        changed = await running(clients)
    assert changed[CHANGED].generation > first[CHANGED].generation + 1
    await nodes.state.end(signal.SIGKILL)
    restore(database, tmp_path / "backup")
    await nodes.state.start()

    async def obeyed() -> bool:
        return (await clients.workloads())[CHANGED].generation > changed[CHANGED].generation

    await eventually(obeyed, what="the agent obeys the plan of the backup")
    restored = await running(clients)
    assert restored[CHANGED].spec == first[CHANGED].spec
    for name in (SAME, SPARK):
        assert restored[name].status.pid == changed[name].status.pid, "it went on"
    for name in (SAME, CHANGED):
        assert processes(nodes, name) == [restored[name].status.pid]
    await change(clients, 19)
    assert (await running(clients))[CHANGED].generation > restored[CHANGED].generation

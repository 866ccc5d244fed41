"""A worker cluster's whole life: three agents on one machine, real workers and Spark services, one broker."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import worker_cluster_pb2, worker_cluster_service_pb2
from keelman.api.node.v1 import node_service_pb2, plan_service_pb2, plan_service_pb2_grpc
from keelman.api.node.v1.workload_pb2 import Workload, WorkloadState
from keelman.rpc.channels import channel
from support.eventually import eventually
from support.state.nodes import NODES, SECONDS, Nodes, running_nodes
from support.state.service import Clients

pytestmark = pytest.mark.component
RUNS = WorkloadState.WORKLOAD_STATE_RUNNING
HALTED = worker_cluster_pb2.ROLLOUT_STATE_HALTED


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with running_nodes(tmp_path) as nodes:
        yield nodes


class Life:
    """The test's actions on one worker cluster, and its view of the cluster."""

    def __init__(self, clients: Clients, port: int) -> None:
        self.clients = clients
        self.port = port

    async def workers(self) -> dict[str, Workload]:
        return {n: w for n, w in (await self.clients.workloads()).items() if n.startswith("worker/")}

    async def pids(self) -> dict[str, int]:
        return {name: worker.status.pid for name, worker in (await self.workers()).items()}

    async def update(self, *fields: str, **spec: object) -> None:
        await self.clients.clusters.UpdateWorkerCluster(
            worker_cluster_service_pb2.UpdateWorkerClusterRequest(
                name="demo",
                spec=worker_cluster_pb2.WorkerClusterSpec(**spec),
                update_mask=FieldMask(paths=fields or list(spec)),
            )
        )

    async def runs(self, count: int) -> dict[str, Workload]:
        """Waits until the cluster's number of workers run, and no other is left; returns them."""

        async def ready() -> dict[str, Workload] | None:
            cluster = await self.clients.worker_cluster("demo")
            workers = await self.workers()
            settled = not cluster.status.HasField("rollout") and cluster.status.ready_workers == count
            up = [w for w in workers.values() if w.status.state == RUNS and w.status.generation == w.generation]
            return workers if settled and len(up) == len(workers) == count else None

        runs = await eventually(ready, seconds=SECONDS, what=f"{count} workers run")
        assert runs is not None
        return runs

    async def plans(self) -> list[str]:
        """Each change of each plan, the newest plan first."""
        async with channel(f"127.0.0.1:{self.port}") as connection:
            answer = await plan_service_pb2_grpc.PlanServiceStub(connection).ListPlans(
                plan_service_pb2.ListPlansRequest()
            )
        return [f"{c.workload}: {c.reason}" for plan in answer.plans for c in plan.changes]


async def test_a_worker_cluster_rolls_halts_shrinks_drains_and_grows(system: Nodes, bootstrap: str) -> None:
    for node in NODES:
        system.start_agent(node)
    async with channel(f"127.0.0.1:{system.state.port}") as connection:
        clients = Clients(connection)
        life = Life(clients, system.state.port)
        await system.are_online(clients)
        await clients.create_external("kafka", bootstrap)
        await clients.create_workers("demo", brokers="kafka", count=3)
        await clients.start_workers("demo")
        first = await life.runs(3)
        assert {w.node for w in first.values()} == set(NODES), "each on a node of its own"
        await rolls(system, life, {n: w.status.pid for n, w in first.items()})
        await halts(life)
        await shrinks_and_drains(life)
        await ends_by_force(life)


async def rolls(system: Nodes, life: Life, before: dict[str, int]) -> None:
    """Changed properties reach the workers one by one.

    The state service, an agent and a worker that does not have them yet are killed in the middle.
    """
    await life.update("properties", properties={"offset.flush.interval.ms": "5000"})

    async def one_has_it() -> bool:
        now = await life.pids()
        down = [n for n, w in (await life.workers()).items() if w.status.state != RUNS]
        assert len(down) <= 1, f"more than one worker is down: {down}"
        return any(pid and pid != before[name] for name, pid in now.items())

    await eventually(one_has_it, seconds=SECONDS)
    workers = await life.workers()
    left = sorted(name for name, worker in workers.items() if worker.status.pid == before[name])
    assert left, "the change is in its middle"
    await system.state.end(signal.SIGKILL)
    system.kill_agent(workers[left[0]].node)
    killed = left[-1]
    psutil.Process(before[killed]).kill()
    await system.state.start()
    system.start_agent(workers[left[0]].node)
    seen: set[frozenset[str]] = set()

    async def done() -> bool:
        with contextlib.suppress(Exception):  # the channel finds the new process
            workers = await life.workers()
            down = frozenset(n for n, w in workers.items() if w.status.state != RUNS)
            seen.add(down - {killed})
            rolled = not (await life.clients.worker_cluster("demo")).status.HasField("rollout")
            return rolled and not down and all(w.status.pid != before[n] for n, w in workers.items())
        return False

    await eventually(done, seconds=SECONDS)
    assert max(map(len, seen)) <= 1, f"more than one worker was down at a time: {seen}"
    workers = await life.runs(3)
    assert {w.generation for w in workers.values()} == {2}, "each was changed once"


async def halts(life: Life) -> None:
    """A worker that does not start with the change stops the rollout; the others keep running unchanged."""
    before = await life.pids()
    missing = {"listeners.https.ssl.keystore.location": "/nowhere/keystore.p12"}
    await life.update("https", "properties", https=True, properties=missing)

    async def halted() -> str:
        status = (await life.clients.worker_cluster("demo")).status
        return status.rollout.worker if status.rollout.state == HALTED else ""

    failed = await eventually(halted, seconds=SECONDS)
    status = (await life.clients.worker_cluster("demo")).status
    assert "/nowhere/keystore.p12" in status.rollout.message, status
    now = await life.pids()
    others = {name for name in before if name != f"worker/{failed}"}
    assert {n: now[n] for n in others} == {n: before[n] for n in others}, "the others were not touched"
    await life.update("https", "properties", https=False, properties={"offset.flush.interval.ms": "5000"})
    healed = await life.runs(3)
    assert {n: healed[n].status.pid for n in others} == {n: before[n] for n in others}


async def shrinks_and_drains(life: Life) -> None:
    before = await life.workers()
    await life.update("count", count=2)
    two = await life.runs(2)
    assert {n: w.status.pid for n, w in two.items()} == {n: before[n].status.pid for n in two}, (
        "who stays is not touched"
    )
    left = next(iter(two.values())).node
    await life.clients.nodes.DrainNode(node_service_pb2.DrainNodeRequest(name=left))

    async def gone() -> bool:
        return not any(w.node == left for w in (await life.clients.workloads()).values())

    await eventually(gone, seconds=SECONDS, what="the node is empty, its Spark service has ended")
    moved = await life.runs(2)
    assert set(moved) == set(two), "they keep their names"
    await life.clients.nodes.UncordonNode(node_service_pb2.UncordonNodeRequest(name=left))
    await life.update("count", count=3)
    three = await life.runs(3)
    assert {n: three[n].status.pid for n in moved} == {n: w.status.pid for n, w in moved.items()}
    assert {w.node for w in three.values()} == set(NODES)


async def ends_by_force(life: Life) -> None:
    pids = list((await life.pids()).values())
    request = worker_cluster_service_pb2.StopWorkerClusterRequest(name="demo", force=True)
    await life.clients.clusters.StopWorkerCluster(request)
    await eventually(lambda: not any(psutil.pid_exists(pid) for pid in pids), seconds=SECONDS)
    await life.clients.delete_workers("demo")

    async def nothing() -> bool:
        return not await life.clients.workloads()

    await eventually(nothing, seconds=SECONDS)
    plans = await life.plans()
    for text in (
        "its cluster was started",
        "properties changed: offset.flush.interval.ms",
        "count is 2",
        "is drained",
        "its cluster was stopped by force",
        "its cluster is deleted",
    ):
        assert any(text in change for change in plans), f"{text!r} is not told: {plans}"

"""The cost of the state service's work with many nodes and clusters in it, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa

from bench.clusters import state_reports
from bench.clusters.state_reports import reporting
from bench.measuring.figures import Figure, alone, percentile
from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters_pb
from keelman.api.connect.v1 import worker_cluster_service_pb2_grpc as clusters_grpc
from keelman.api.event.v1 import watch_service_pb2 as watch_pb
from keelman.api.event.v1 import watch_service_pb2_grpc as watch_grpc
from keelman.api.node.v1 import session_service_pb2 as sessions_pb
from keelman.api.node.v1 import session_service_pb2_grpc as sessions_grpc
from keelman.model.cluster import ExternalBrokers, WorkerClusterSpec
from keelman.model.node import Node, NodeState
from keelman.model.workload import Goal, ProcessState, WorkloadKind, WorkloadStatus
from keelman.rpc.channels import channel
from keelman.rpc.health import is_serving
from keelman.runtime.processes.ports import free_ports
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.database.tables import RelayRow
from keelman.state.executor import Executor
from keelman.state.nouns import node, workload
from keelman.state.planning.draft import Limits
from keelman.state.resources.store import ResourceStore
from support.eventually import eventually
from support.state.stores import open_store

BROKERS = "brokers"
"""The broker cluster of all, where events and reports are too."""
LIMITS = Limits(range(8083, 8183), range(9092, 9192), range(7430, 7460), events_broker_cluster=BROKERS)
WORKERS = 3
"""The workers of each cluster."""
BATCH = 500
"""Clusters that are created in one transaction."""
WRITES, PAGES, PLANS = 200, 100, 50
HEARTBEAT_SECONDS = 2.0
IDLE_SECONDS = 10.0
WRITE_GOAL, LIST_GOAL, WATCH_GOAL, PLAN_GOAL, FIRST_PLAN_GOAL = "<= 50", "<= 200", "<= 500", "<= 100", "<= 10"


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the system: nodes, twice as many worker clusters, and five connectors in each of these."""

    nodes: int

    @property
    def clusters(self) -> int:
        """Worker clusters."""
        return 2 * self.nodes


async def measured(
    name: str, url: str, size: Size, folder: Path, *, bootstrap: str, say: Callable[[str], None]
) -> list[Figure]:
    """The figures of one database.

    First planning in this process, then the requests to a state service of its own while workers report to a broker, to
    which it also publishes its events.
    """
    keys = folder / "secrets.key"
    async with open_store(url, key_file=keys) as store:
        planner = Executor(store, LIMITS, lambda node: node)
        store.listen(planner.changed)
        await _fill(store, size, bootstrap)
        say(f"{name}: {size.nodes:,} nodes and {size.clusters:,} worker clusters are stored")
        first, first_cpu = await _took(planner.reconcile)
        say(f"{name}: the first plan took {first / 1000:.2f} s and placed {len(store.snapshot.workloads):,} workloads")
        await _obey(store)
        await planner.reconcile()
        both = [await _plan_after_a_change(store, planner, number, size) for number in range(PLANS)]
        plans, plans_cpu = [took for took, _ in both], [cpu for _, cpu in both]
        workers = _workers(store)
        await _have_published(store)
    figures = [
        alone(f"{name}-first-plan", "s", [first / 1000], first / 1000, FIRST_PLAN_GOAL),
        alone(f"{name}-first-plan-cpu", "s", [first_cpu / 1000], first_cpu / 1000, ""),
        alone(f"{name}-plan", "ms", plans, percentile(plans, 0.99), PLAN_GOAL),
        alone(f"{name}-plan-cpu", "ms", plans_cpu, statistics.median(plans_cpu), ""),
    ]
    service = _Service(folder, url, keys)
    await service.start()
    try:
        async with reporting(bootstrap, workers):
            figures += await _served(name, service, size)
        figures += await _agents(name, service, size)
    finally:
        await service.end()
    for figure in figures:
        say(f"{figure.name}: {figure.ours:.3g} {figure.unit}")
    return figures


async def _fill(store: ResourceStore, size: Size, bootstrap: str) -> None:
    async with store.write() as tx:
        broker_clusters.create(tx, BROKERS, ExternalBrokers(bootstrap))
        for number in range(size.nodes):
            address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}:7420"
            new_node = Node(
                _node(number), "", tx.now, tx.now, NodeState.ONLINE, address, cpus=64, memory_bytes=256 << 30
            )  # fmt: skip
            node.register(tx, new_node)
    for begin in range(0, size.clusters, BATCH):
        async with store.write() as tx:
            for number in range(begin, min(begin + BATCH, size.clusters)):
                spec = WorkerClusterSpec(BROKERS, count=WORKERS, properties={"plugin.path": "/plugins"})
                worker_clusters.create(tx, _cluster(number), spec)
                worker_clusters.start(tx, _cluster(number), "")


def _workers(store: ResourceStore) -> dict[str, list[str]]:
    """The workers' addresses by cluster."""
    workers: dict[str, list[str]] = {}
    for single_workload in store.snapshot.workloads.values():
        if single_workload.kind is WorkloadKind.WORKER:
            workers.setdefault(single_workload.cluster, []).append(single_workload.address)
    return workers


async def _have_published(store: ResourceStore) -> None:
    """Marks the events so far as published: a service that starts now has none to catch up with."""
    async with store.database.write() as turn:
        await (await turn.session.connection()).execute(sa.update(RelayRow).values(published=store.revision))


async def _obey(store: ResourceStore) -> None:
    """Sets every workload to running, as its agent would report."""
    names = list(store.snapshot.workloads)
    for begin in range(0, len(names), BATCH):
        async with store.write() as tx:
            for name in names[begin : begin + BATCH]:
                _runs(tx, name)


def _runs(tx: Any, name: str) -> None:
    actual_workload = tx.snapshot.workloads[name]
    status = WorkloadStatus(ProcessState.RUNNING, actual_workload.generation, pid=4711, start_time=datetime.now(UTC))
    workload.save(tx, dataclasses.replace(actual_workload, status=status, has_run=True))


async def _plan_after_a_change(store: ResourceStore, planner: Executor, number: int, size: Size) -> tuple[float, float]:
    """Milliseconds of the plan for one additional worker, with its write, and of the processor for it."""
    name = _cluster(number % size.clusters)
    async with store.write() as tx:
        worker_clusters.update(tx, name, "", lambda spec: dataclasses.replace(spec, count=spec.count + 1))
    took, cpu = await _took(planner.reconcile)
    async with store.write() as tx:
        placed = [w for w in tx.snapshot.workloads.values() if w.status is None and w.goal is Goal.RUNNING]
        assert placed, "the change was planned"
        for item in placed:
            _runs(tx, item.name)
    await planner.reconcile()
    return took, cpu


async def _took(work: Callable[[], Awaitable[Any]]) -> tuple[float, float]:
    """Milliseconds, and those of this process's processor time."""
    begun, cpu = time.perf_counter(), time.process_time()
    await work()
    return (time.perf_counter() - begun) * 1000, (time.process_time() - cpu) * 1000


class _Service:
    """A state service on the filled database. Nodes count as alive though they have no agents."""

    def __init__(self, folder: Path, url: str, keys: Path) -> None:
        self.folder, self.url, self.keys, self.port = folder, url, keys, free_ports(1)[0]
        self._child: Any = None

    async def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        flags = (
            "--home", str(self.folder), "--port", str(self.port), "--database", self.url, "--key-file", str(self.keys),
            "--session-timeout-seconds", "3600", "--heartbeat-seconds", str(HEARTBEAT_SECONDS),
            "--events-broker-cluster", BROKERS,
        )  # fmt: skip
        with (self.folder / "state.log").open("ab") as log:
            self._child = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "keelman.state", "run", *flags, stdin=asyncio.subprocess.DEVNULL,
                stdout=log, stderr=log,
            )  # fmt: skip
        await eventually(
            lambda: self._child.returncode is not None or is_serving(f"127.0.0.1:{self.port}"), what="state serves"
        )
        assert self._child.returncode is None, (self.folder / "state.log").read_text()

    async def end(self) -> None:
        if self._child.returncode is None:
            self._child.terminate()
        await self._child.wait()

    @property
    def cpu_seconds(self) -> float:
        """Processor seconds of the process so far."""
        times = psutil.Process(self._child.pid).cpu_times()
        return float(times.user + times.system)


async def _served(name: str, service: _Service, size: Size) -> list[Figure]:
    """Writes and pages as a client sees them."""
    chance = random.Random(1)
    writes, pages, delays = [], [], []
    begins: dict[str, float] = {}
    async with channel(f"127.0.0.1:{service.port}") as new_channel:
        stub = clusters_grpc.WorkerClusterServiceStub(new_channel)
        ready = asyncio.Event()
        watch = asyncio.ensure_future(_watched(new_channel, begins, delays, ready))
        await ready.wait()
        cpu = service.cpu_seconds
        for number in range(WRITES):
            update = clusters_pb.UpdateWorkerClusterRequest(name=_cluster(chance.randrange(size.clusters)))
            update.spec.description = f"change {number}"
            update.update_mask.paths.append("description")
            begins[update.spec.description] = time.perf_counter()
            await stub.UpdateWorkerCluster(update)
            writes.append((time.perf_counter() - begins[update.spec.description]) * 1000)
        cpu = (service.cpu_seconds - cpu) * 1000 / WRITES
        await eventually(lambda: len(delays) == WRITES, what="the watch has seen all writes")
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
        token = ""
        for _ in range(PAGES):
            begun = time.perf_counter()
            request = clusters_pb.ListWorkerClustersRequest(page_size=100, page_token=token)
            answer = await stub.ListWorkerClusters(request)
            pages.append((time.perf_counter() - begun) * 1000)
            token = answer.next_page_token
        connectors = await state_reports.measured(name, new_channel, size.clusters, lambda: service.cpu_seconds)
    return [
        *connectors,
        alone(f"{name}-write", "ms", writes, percentile(writes, 0.99), WRITE_GOAL),
        alone(f"{name}-write-p50", "ms", writes, statistics.median(writes), ""),
        alone(f"{name}-write-cpu", "ms", [cpu], cpu, ""),
        alone(f"{name}-watch", "ms", delays, percentile(delays, 0.99), WATCH_GOAL),
        alone(f"{name}-list", "ms", pages, percentile(pages, 0.99), LIST_GOAL),
    ]


async def _watched(value: Any, begins: Mapping[str, float], delays: list[float], ready: asyncio.Event) -> None:
    """Milliseconds from the request of a write until a watch of everything has its event.

    `ready` is set with the end of the snapshot, which keeps the service busy for some time.
    """
    watch = watch_grpc.WatchServiceStub(value).Watch(watch_pb.WatchRequest())
    async for part in watch:
        now = time.perf_counter()
        if part.snapshot_end:
            ready.set()
        for event in part.events:
            description = event.worker_cluster.spec.description
            if not part.snapshot and description in begins:
                delays.append((now - begins[description]) * 1000)


async def _agents(name: str, service: _Service, size: Size) -> list[Figure]:
    """The cost of the agents' links: the complete sets, then nothing but heartbeats, then changes of single workers."""
    async with channel(f"127.0.0.1:{service.port}") as new_channel:
        stub = sessions_grpc.SessionServiceStub(new_channel)
        agents = [_Agent(stub, _node(number), number) for number in range(size.nodes)]
        before = service.cpu_seconds
        tasks = [asyncio.ensure_future(agent.run()) for agent in agents]
        try:
            await eventually(lambda: _have_all(agents, tasks), what="all agents have their workloads")
            complete, joined = sum(a.bytes for a in agents), service.cpu_seconds - before
            await asyncio.sleep(HEARTBEAT_SECONDS)  # the plans for the registrations are finished
            before, already = service.cpu_seconds, sum(a.bytes for a in agents)
            await asyncio.sleep(IDLE_SECONDS)
            idle, idle_bytes = service.cpu_seconds - before, sum(a.bytes for a in agents) - already
            changed = await _changes(service, new_channel, agents)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return [
        alone(f"{name}-agents-join-cpu", "s", [joined], joined, ""),
        alone(f"{name}-agents-join-bytes", "kB", [complete / 1000], complete / 1000, ""),
        alone(f"{name}-agents-idle-cpu", "% of a core", [100 * idle / IDLE_SECONDS], 100 * idle / IDLE_SECONDS, ""),
        alone(f"{name}-agents-idle-bytes", "bytes", [idle_bytes], idle_bytes, "<= 0"),
        *(alone(f"{name}-agents-change-{what}", unit, [value], value, "") for what, unit, value in changed),
    ]


def _have_all(agents: Sequence[_Agent], tasks: Sequence[asyncio.Future[None]]) -> bool:
    """Whether all agents have their workloads. Raises the error that ended a session: agents here do not try again."""
    for task in tasks:
        if task.done():
            task.result()
    return all(agent.complete for agent in agents)


async def _changes(service: _Service, value: Any, agents: Sequence[_Agent]) -> list[tuple[str, str, float]]:
    """Processor milliseconds and bytes of a worker's restart, from many restarts."""
    from keelman.api.connect.v1 import worker_service_pb2, worker_service_pb2_grpc  # noqa: PLC0415

    stub = worker_service_pb2_grpc.WorkerServiceStub(value)
    cpu, already = service.cpu_seconds, sum(a.bytes for a in agents)
    told = sum(a.messages for a in agents)
    for number in range(PLANS):
        await stub.RestartWorker(worker_service_pb2.RestartWorkerRequest(name=f"{_cluster(number)}/0"))
    await eventually(lambda: sum(a.messages for a in agents) >= told + PLANS, what="the agents have the changes")
    return [
        ("cpu", "ms", (service.cpu_seconds - cpu) * 1000 / PLANS),
        ("bytes", "bytes", (sum(a.bytes for a in agents) - already) / PLANS),
    ]


class _Agent:
    """Keeps a session open and counts the messages that it receives."""

    def __init__(self, stub: sessions_grpc.SessionServiceStub, name: str, number: int) -> None:
        self._stub, self._name, self._number = stub, name, number
        self.bytes = self.messages = 0
        self.complete = False

    async def run(self) -> None:
        async for message in self._stub.OpenSession(self._requests()):
            if message.WhichOneof("message") == "assignments":
                self.complete = True
                self.messages += 1
                self.bytes += message.ByteSize()

    async def _requests(self) -> Any:
        number = self._number
        address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}:7420"
        registration = sessions_pb.Registration(
            node=self._name, agent_address=address, cpus=64, memory_bytes=256 << 30, version="bench"
        )
        yield sessions_pb.OpenSessionRequest(registration=registration)
        await asyncio.sleep(random.Random(number).random() * HEARTBEAT_SECONDS)
        while True:
            yield sessions_pb.OpenSessionRequest(heartbeat=sessions_pb.Heartbeat())
            await asyncio.sleep(HEARTBEAT_SECONDS)


def _node(number: int) -> str:
    return f"node-{number:05d}"


def _cluster(number: int) -> str:
    return f"cluster-{number:05d}"

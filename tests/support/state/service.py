"""The common base of the state service's tests: the service in this loop or a process, clients, a simulated agent."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

from keelman.api.connect.v1 import (
    broker_cluster_pb2,
    broker_cluster_service_pb2,
    worker_cluster_pb2,
    worker_cluster_service_pb2,
)
from keelman.api.node.v1 import session_service_pb2, workload_pb2, workload_service_pb2
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated
from keelman.rpc.generated import stub_of
from keelman.rpc.health import is_serving
from keelman.rpc.times import to_timestamp
from keelman.runtime.processes.ports import free_ports, free_row
from keelman.state.service import run
from keelman.state.settings import Settings
from support.eventually import eventually

brokers_pb, workers_pb, session_pb = broker_cluster_service_pb2, worker_cluster_service_pb2, session_service_pb2
RUNNING = workload_pb2.WORKLOAD_STATE_RUNNING
STATES = {
    workload_pb2.WORKLOAD_GOAL_RUNNING: workload_pb2.WORKLOAD_STATE_RUNNING,
    workload_pb2.WORKLOAD_GOAL_STOPPED: workload_pb2.WORKLOAD_STATE_STOPPED,
    workload_pb2.WORKLOAD_GOAL_REMOVED: workload_pb2.WORKLOAD_STATE_REMOVED,
}


def free_range(count: int) -> str:
    """So many free ports in a row, as the state service's settings name them."""
    row = free_row(count)
    return f"{row[0]}-{row[-1]}"


class Clients:
    """A stub for each service of one address."""

    def __init__(self, value: Any) -> None:
        self.channel = value
        self.nodes = stub_of(value, "node", "node")
        self.workloads_ = stub_of(value, "node", "workload")
        self.sessions = stub_of(value, "node", "session")
        self.brokers = stub_of(value, "connect", "broker_cluster")
        self.clusters = stub_of(value, "connect", "worker_cluster")
        self.workers = stub_of(value, "connect", "worker")
        self.plugins = stub_of(value, "connect", "plugin")
        self.imports = stub_of(value, "connect", "plugin_import")
        self.secrets = stub_of(value, "connect", "secret")
        self.documents = stub_of(value, "connect", "document")
        self.configurations = stub_of(value, "connect", "worker_configuration")
        self.sparks = stub_of(value, "connect", "spark_cluster")
        self.topics = stub_of(value, "connect", "topic")
        self.operations = stub_of(value, "connect", "operation")
        self.definitions = stub_of(value, "connect", "connector_definition")
        self.runs = stub_of(value, "copy", "copy_run")

    async def workloads(self) -> dict[str, workload_pb2.Workload]:
        answer = await self.workloads_.ListWorkloads(workload_service_pb2.ListWorkloadsRequest(page_size=1000))
        return {w.name: w for w in answer.workloads}

    async def broker_cluster(self, name: str) -> broker_cluster_pb2.BrokerCluster:
        return (await self.brokers.GetBrokerCluster(brokers_pb.GetBrokerClusterRequest(name=name))).broker_cluster

    async def worker_cluster(self, name: str) -> worker_cluster_pb2.WorkerCluster:
        return (await self.clusters.GetWorkerCluster(workers_pb.GetWorkerClusterRequest(name=name))).worker_cluster

    async def create_managed(self, name: str, *nodes: str, **more: Any) -> broker_cluster_pb2.BrokerCluster:
        spec = broker_cluster_pb2.BrokerClusterSpec(managed=broker_cluster_pb2.ManagedBrokers(nodes=nodes))
        request = brokers_pb.CreateBrokerClusterRequest(name=name, spec=spec, **more)
        return (await self.brokers.CreateBrokerCluster(request)).broker_cluster

    async def create_external(self, name: str, bootstrap: str) -> broker_cluster_pb2.BrokerCluster:
        external = broker_cluster_pb2.ExternalBrokers(bootstrap_servers=bootstrap)
        spec = broker_cluster_pb2.BrokerClusterSpec(external=external)
        request = brokers_pb.CreateBrokerClusterRequest(name=name, spec=spec)
        return (await self.brokers.CreateBrokerCluster(request)).broker_cluster

    async def create_workers(self, name: str, *, brokers: str = "default", **spec: Any) -> None:
        new_spec = worker_cluster_pb2.WorkerClusterSpec(broker_cluster=brokers, **spec)
        await self.clusters.CreateWorkerCluster(workers_pb.CreateWorkerClusterRequest(name=name, spec=new_spec))

    async def start_workers(self, name: str) -> None:
        await self.clusters.StartWorkerCluster(workers_pb.StartWorkerClusterRequest(name=name))

    async def stop_workers(self, name: str) -> None:
        await self.clusters.StopWorkerCluster(workers_pb.StopWorkerClusterRequest(name=name))

    async def delete_workers(self, name: str, etag: str = "") -> None:
        await self.clusters.DeleteWorkerCluster(workers_pb.DeleteWorkerClusterRequest(name=name, etag=etag))


@contextlib.asynccontextmanager
async def state_in_loop(home: Path, **settings: Any):
    """The whole service in this event loop; yields (clients, port)."""
    port = settings.pop("port", None) or free_ports(1)[0]
    stop = asyncio.Event()
    value = {"spark_idle_seconds": 0.0} | settings
    task = asyncio.ensure_future(run(Settings(home=home, port=port, **value), stop))
    try:
        await eventually(lambda: task.done() or _serving(port), what="state serves")
        if task.done():
            task.result()
        async with channel(f"127.0.0.1:{port}") as new_channel:
            yield Clients(new_channel), port
    finally:
        stop.set()
        await task


async def _serving(port: int) -> bool:
    return await is_serving(f"127.0.0.1:{port}")


class StateProcess:
    """The service as its own process. Unless `flags` set it otherwise, a Spark service that no worker needs ends."""

    def __init__(self, home: Path, *flags: str) -> None:
        self.home, self.flags, self.port = home, flags, free_ports(1)[0]
        self.child: Any = None
        self.environment: dict[str, str] = {}

    @property
    def output(self) -> str:
        return (self.home / "output.log").read_text()

    async def spawn(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "output.log").open("ab") as output:
            self.child = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "keelman.state", "run", "--home", str(self.home), "--port", str(self.port),
                "--spark-idle-seconds", "0", *self.flags,
                stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output,
                env={k: v for k, v in os.environ.items() if not k.startswith("KEELMAN_STATE_")} | self.environment,
            )  # fmt: skip

    async def start(self) -> None:
        await self.spawn()
        await eventually(lambda: self.child.returncode is not None or _serving(self.port), what="state serves")
        assert self.child.returncode is None, self.output

    async def end(self, number: int = signal.SIGTERM) -> int:
        if self.child.returncode is None:
            self.child.send_signal(number)
        async with asyncio.timeout(300):
            return await self.child.wait()


class Agent:
    """A simulated agent: follows the session protocol and reports each workload at its goal, or as `say` decides."""

    def __init__(
        self,
        clients: Clients,
        node: str,
        *,
        host: str = "127.0.0.1",
        heartbeats: bool = True,
        incarnation: str = "",
    ) -> None:
        self.clients, self.node, self.host, self.heartbeats = clients, node, host, heartbeats
        self.incarnation = incarnation
        self.workloads: dict[str, workload_pb2.Workload] = {}
        self.assignments: list[session_pb.Assignments] = []
        self.received: list[int] = []
        self.secrets: list[session_pb.NodeSecrets] = []
        self.welcome: session_pb.Welcome | None = None
        self.special: dict[str, workload_pb2.WorkloadStatus] = {}
        self._outbox: asyncio.Queue[session_pb.OpenSessionRequest] = asyncio.Queue()
        self.reported = 0
        self.task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Agent":
        registration = session_pb.Registration(
            node=self.node, agent_address=f"{self.host}:7420", cpus=2, memory_bytes=1 << 30, version="test",
            incarnation=self.incarnation,
        )  # fmt: skip
        self._outbox.put_nowait(session_pb.OpenSessionRequest(registration=registration))
        self.task = asyncio.ensure_future(self._run())
        await eventually(lambda: self.assignments or self.task.done(), what=f"{self.node} has assignments")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self.task

    def report(self, complete: bool = False, **more: Any) -> None:
        self.reported += 1
        statuses = {n: self.status(w) for n, w in self.workloads.items()} | more
        report = session_pb.WorkloadReport(number=self.reported, statuses=statuses, complete=complete)
        self._outbox.put_nowait(session_pb.OpenSessionRequest(report=report))

    def status(self, workload: workload_pb2.Workload) -> workload_pb2.WorkloadStatus:
        special = self.special.get(workload.name)
        if special is not None and special.generation == workload.generation:
            return special
        return workload_pb2.WorkloadStatus(state=STATES[workload.goal], generation=workload.generation, pid=4711)

    async def _run(self) -> None:
        beating = None
        try:
            call = self.clients.sessions.OpenSession(self._requests())
            with translated():
                async for message in call:
                    match message.WhichOneof("message"):
                        case "welcome":
                            self.welcome = message.welcome
                            if self.heartbeats:
                                beating = asyncio.ensure_future(self._beat())
                        case "assignments":
                            self._obey(message.assignments)
                        case "secrets":
                            self.secrets.append(message.secrets)
                        case "report_received":
                            self.received.append(message.report_received.number)
        finally:
            if beating is not None:
                beating.cancel()

    def _obey(self, told: session_pb.Assignments) -> None:
        last = self.assignments[-1].to_version if self.assignments else 0
        assert told.from_version == (0 if told.complete else last), "a gap in the versions"
        if told.complete:
            self.workloads.clear()
        for name in told.removed:
            del self.workloads[name]
        for workload in told.workloads:
            old = self.workloads.get(workload.name)
            assert old is None or old.generation < workload.generation, f"{workload.name}: generation went back"
            self.workloads[workload.name] = workload
        self.assignments.append(told)
        self.report(complete=told.complete)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.welcome.heartbeat_interval.ToMilliseconds() / 1000)
            self._outbox.put_nowait(session_pb.OpenSessionRequest(heartbeat=session_pb.Heartbeat()))

    async def _requests(self):
        while True:
            yield await self._outbox.get()


__all__ = ["Agent", "Clients", "StateProcess", "free_range", "state_in_loop", "to_timestamp"]

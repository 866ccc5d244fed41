"""The base of the gateway's tests: real processes of state and gateway, and a node that speaks as agents do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keelman.api.node.v1 import agent_service_pb2 as agent
from keelman.api.node.v1 import workload_pb2 as work
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceServicer, add_AgentServiceServicer_to_server
from keelman.api.node.v1.session_service_pb2 import Heartbeat, OpenSessionRequest, Registration, WorkloadReport
from keelman.api.node.v1.session_service_pb2_grpc import SessionServiceStub
from keelman.model.errors import NotFound
from keelman.rpc.channels import channel
from keelman.rpc.health import is_serving
from keelman.rpc.server import RpcService, serve
from keelman.runtime.http.server import serve_http
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.supervise import Siblings
from support.eventually import eventually
from support.gateway.rest_workers import Connectors, Worker
from support.state.service import StateProcess, free_range

LIST_SECONDS = 5
"""A list waits this long for a worker: with less, a busy worker would count as unreachable too."""


class Node(AgentServiceServicer):
    """A node as the state service sees it: registers, sends heartbeats, reports each workload at its goal.

    Its workers answer REST.
    """

    def __init__(self, name: str, address: str, clusters: dict[str, Connectors]) -> None:
        self.name, self.address = name, address
        self.workers: dict[str, Worker] = {}
        self.logs: dict[str, list[bytes]] = {}
        self.failing: dict[str, str] = {}
        self.more_logs = asyncio.Event()
        self.readers = 0
        self._clusters = clusters
        self._open: dict[str, AsyncExitStack] = {}
        self._told: dict[str, work.WorkloadStatus] = {}
        self._number = 0

    async def run(self, state_address: str) -> None:
        """Runs one session after another until cancelled."""
        host, port = self.address.split(":")
        service = RpcService("agent", add_AgentServiceServicer_to_server, self)
        async with serve(service, host=host, port=int(port)):
            try:
                while True:
                    with contextlib.suppress(Exception):
                        async with channel(state_address) as way:
                            await self._session(SessionServiceStub(way).OpenSession())
                    await asyncio.sleep(0.1)
            finally:
                for stack in self._open.values():
                    await stack.aclose()

    async def _session(self, call: Any) -> None:
        registration = Registration(
            node=self.name, agent_address=self.address, cpus=2, memory_bytes=1 << 30, version="test", incarnation="1"
        )
        await call.write(OpenSessionRequest(registration=registration))
        async with Siblings() as tasks:
            async for message in call:
                match message.WhichOneof("message"):
                    case "welcome":
                        tasks.start(self._beat(call))
                    case "assignments":
                        complete = message.assignments.complete
                        for workload in message.assignments.workloads:
                            self._told[workload.name] = await self._bring_about(workload)
                        self._number += 1
                        report = WorkloadReport(number=self._number, statuses=self._told, complete=complete)
                        await call.write(OpenSessionRequest(report=report))

    async def _beat(self, call: Any) -> None:
        while True:
            await asyncio.sleep(0.5)
            await call.write(OpenSessionRequest(heartbeat=Heartbeat()))

    async def _bring_about(self, workload: work.Workload) -> work.WorkloadStatus:
        if workload.goal == work.WORKLOAD_GOAL_RUNNING and workload.name in self.failing:
            failed, failing = work.WORKLOAD_STATE_FAILED, self.failing[workload.name]
            return work.WorkloadStatus(state=failed, generation=workload.generation, reason="EXITED", message=failing)
        if workload.goal == work.WORKLOAD_GOAL_RUNNING:
            if workload.spec.WhichOneof("kind") == "worker" and workload.name not in self._open:
                await self._start(workload.name, workload.spec.worker)
            state = work.WORKLOAD_STATE_RUNNING
        else:
            await self.close(workload.name)
            removed = workload.goal == work.WORKLOAD_GOAL_REMOVED
            state = work.WORKLOAD_STATE_REMOVED if removed else work.WORKLOAD_STATE_STOPPED
        running = state == work.WORKLOAD_STATE_RUNNING
        return work.WorkloadStatus(state=state, generation=workload.generation, pid=os.getpid() if running else 0)

    async def _start(self, name: str, spec: work.WorkerWorkload) -> None:
        worker = Worker(f"http://{spec.host}:{spec.port}", self._clusters.setdefault(spec.worker_cluster, Connectors()))
        stack = self._open[name] = AsyncExitStack()
        await stack.enter_async_context(
            serve_http(worker, host=spec.host, port=spec.port, label=name, grace_seconds=0.1)
        )
        self.workers[name] = worker
        self.logs[name] = [b"line %d\n" % i for i in range(200)]

    def names_of(self, kind: str) -> list[str]:
        """The workloads of a kind that are assigned to it."""
        return [name for name in self._told if name.startswith(f"{kind}/")]

    async def close(self, name: str) -> None:
        """Ends a worker's REST API without a report to the state service."""
        stack = self._open.pop(name, None)
        if stack is not None:
            await stack.aclose()

    async def StreamLogs(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """The same answer as an agent's."""
        if request.workload not in self.logs:
            raise NotFound(f"node {self.name} has no log of {request.workload!r}")
        self.readers += 1
        try:
            lines = self.logs[request.workload][-(request.tail_lines or 100) :]
            yield agent.StreamLogsResponse(lines=b"".join(lines))
            if request.follow:
                await self.more_logs.wait()
                yield agent.StreamLogsResponse(lines=b"new line\n")
        finally:
            self.readers -= 1

    async def ListLocalWorkloads(self, request: Any, context: Any) -> Any:
        """Not called by the gateway."""
        raise AssertionError

    async def Drain(self, request: Any, context: Any) -> Any:
        """Not called by the gateway."""
        raise AssertionError


@dataclass
class Process:
    """One of our services as a process."""

    name: str
    flags: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """The address of its gRPC, host:port."""
        return f"127.0.0.1:{self.flags['port']}"

    async def start(self) -> None:
        """Starts it and waits until it serves."""
        words = [w for k, v in self.flags.items() for w in (f"--{k}", v)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"keelman.{self.name}", "run", *words], stdout=log, stderr=log
            )
        await eventually(self._serves, what=f"{self.name} serves")

    async def _serves(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise SystemError(f"{self.name} ended with {self.process.returncode}: {self.log.read_text()[-2000:]}")
        socket = self.flags.get("health-socket")  # plain text, also where the port speaks TLS
        return await is_serving(f"unix:{socket}" if socket else self.address)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ends it; returns its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@dataclass
class System:
    """The whole system."""

    state: Process
    gateway: Process
    http: str
    nodes: dict[str, Node]
    connectors: dict[str, Connectors] = field(default_factory=dict)

    def worker(self, name: str) -> Worker:
        """The worker of a name like "worker/demo/0", wherever it was placed."""
        return next(n.workers[name] for n in self.nodes.values() if name in n.workers)

    def node_of(self, name: str) -> Node:
        """The node that carries a worker."""
        return next(n for n in self.nodes.values() if name in n.workers)


@contextlib.asynccontextmanager
async def running_system(
    tmp: Path, hosts: Mapping[str, str] | None = None, of_gateway: Mapping[str, str] | None = None, **settings: str
) -> AsyncIterator[System]:
    """A state service with these settings beside the usual ones, a gateway with those `of_gateway`, and nodes.

    Two nodes, or those that `hosts` names with the address of each.
    """
    hosts = hosts if hosts is not None else {"node-1": "127.0.0.1", "node-2": "127.0.0.1"}
    state_port, grpc_port, http_port, *ports = free_ports(3 + len(hosts))
    state = Process(
        "state",
        {
            "home": str(tmp),
            "port": str(state_port),
            "worker-ports": free_range(40),
            "session-timeout-seconds": "60",  # the nodes' heartbeats run in the tests' loop, which other work may delay
            **settings,
        },
        tmp / "state.log",
    )
    gateway = Process(
        "gateway",
        {
            "port": str(grpc_port),
            "http-port": str(http_port),
            "state-address": state.address,
            "max-body-bytes": str(8 * 1024 * 1024),
            "list-seconds": str(LIST_SECONDS),
            **(of_gateway or {}),
        },
        tmp / "gateway.log",
    )
    clusters: dict[str, dict[str, dict[str, Any]]] = {}
    nodes = {n: Node(n, f"{host}:{p}", clusters) for (n, host), p in zip(hosts.items(), ports, strict=True)}
    started: list[Process] = []
    async with Siblings() as tasks:
        try:
            for service in (state, gateway):
                started.append(service)
                await service.start()
            for node in nodes.values():
                tasks.start(node.run(state.address))
            yield System(state, gateway, f"http://127.0.0.1:{http_port}", nodes, clusters)
        finally:
            codes = {s.name: s.stop() for s in reversed(started) if s.process}
    assert not re.search(rb"Traceback|rpc_failed", gateway.log.read_bytes()), gateway.log.read_text()
    assert codes["gateway"] == 0


@contextlib.asynccontextmanager
async def state_and_gateway(folder: Path, *flags: str):
    """Both as processes of their own; yields (state, gateway)."""
    state, ports = StateProcess(folder / "home", *flags), [str(port) for port in free_ports(2)]
    told = {"port": ports[0], "http-port": ports[1], "state-address": f"127.0.0.1:{state.port}"}
    gateway = Process("gateway", told, folder / "gateway.log")
    await state.start()
    try:
        await gateway.start()
        yield state, gateway
    finally:
        if gateway.process is not None:
            gateway.stop()
        await state.end()

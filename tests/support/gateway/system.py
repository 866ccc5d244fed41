"""What the gateway's tests stand on: real state and gateway processes, a node that speaks the agents' session protocol,
and workers that answer Connect's REST API as Apache Kafka Connect does."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson

from keelman.api.node.v1 import agent_service_pb2 as agent
from keelman.api.node.v1 import workload_pb2 as work
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceServicer, add_AgentServiceServicer_to_server
from keelman.api.node.v1.session_service_pb2 import Heartbeat, OpenSessionRequest, Registration, WorkloadReport
from keelman.api.node.v1.session_service_pb2_grpc import SessionServiceStub
from keelman.model.errors import NotFound
from keelman.rpc.channels import channel, is_serving
from keelman.rpc.server import Service, serve
from keelman.runtime.http.server import serve_http
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.supervise import Siblings
from keelman.testing.eventually import eventually
from support.state.service import StateProcess, free_range

LIST_SECONDS = 5
"""So long a list waits for a worker: no less, or one that is only busy is called unreachable too."""
OLD = [(b"age", b"75"), (b"warning", b'110 - "as known at 2026-01-01T00:00:00Z: the brokers do not answer"')]
"""Headers of an answer that a worker gives while no broker answers."""


class Connectors(dict[str, dict[str, Any]]):
    """The configurations of a cluster's connectors; the uid of each, and the id of the request that created it."""

    def __init__(self) -> None:
        super().__init__()
        self.uids: dict[str, str] = {}
        self.request_ids: dict[str, str] = {}


class Worker:
    """A worker's REST API: connectors in memory, shared by a cluster's workers; and what shows how it was asked."""

    def __init__(self, url: str, connectors: Connectors) -> None:
        self.url = url
        self.connectors = connectors
        self.asked: list[tuple[str, bytes]] = []
        self.refusal: tuple[int, str] | None = None
        self.frozen = False
        self.go_on = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        method, raw = scope["method"], scope["raw_path"]
        self.asked.append((method, raw + (b"?" + scope["query_string"] if scope["query_string"] else b"")))
        if self.frozen:
            await asyncio.Event().wait()
        parts = [unquote(p) for p in raw.decode().split("/")[1:]]
        if parts[0] == "echo":
            await self._echo(scope, receive, send)
        elif parts[0] == "stream":
            await self._stream(send)
        else:
            body = b""
            more = True
            while more:
                message = await receive()
                body, more = body + message.get("body", b""), message.get("more_body", False)
            request_id = dict(scope["headers"]).get(b"keelman-request-id", b"").decode()
            status, answer, headers = self._connect(method, parts, scope["query_string"].decode(), body, request_id)
            if parts[0] == "connectors" and status < 300 and answer and "config" in answer:
                headers = [*headers, (b"keelman-uid", self.connectors.uids.get(answer["name"], "").encode())]
            await _answer(send, status, b"" if answer is None else orjson.dumps(answer), headers)

    def _connect(  # noqa: PLR0911
        self, method: str, parts: list[str], query: str, body: bytes, request_id: str
    ) -> tuple[int, Any, list[Any]]:
        if self.refusal and parts[0] == "connectors":
            return *_error(*self.refusal), []
        match method, parts:
            case "GET", [""]:
                return 200, {"version": "4.3.0", "commit": "unknown", "kafka_cluster_id": "k"}, []
            case "GET", ["connectors"]:
                if "expand" not in query:
                    return 200, sorted(self.connectors), []
                both = {n: {"info": self._info(n), "status": self._status(n)} for n in self.connectors}
                return 200, both, []
            case "POST", ["connectors"]:
                given = orjson.loads(body)
                name = given["name"]
                location = [(b"location", f"{self.url}/connectors/{name}".encode())]
                if name in self.connectors and request_id and request_id == self.connectors.request_ids.get(name):
                    return 201, self._info(name), location
                if name in self.connectors:
                    return *_error(409, f"Connector {name} already exists"), []
                if "connector.class" not in given["config"]:
                    return *_error(400, "Connector config {} contains no connector type"), []
                self.connectors[name] = given["config"] | {"name": name}
                self.connectors.uids[name], self.connectors.request_ids[name] = uuid.uuid4().hex, request_id
                return 201, self._info(name), location
            case _, ["connectors", name, *_] if name not in self.connectors:
                return *_error(404, f"Connector {name} not found"), []
            case "GET", ["connectors", name]:
                return 200, self._info(name), []
            case "GET", ["connectors", name, "status"]:
                if self.connectors[name].get("young"):
                    return *_error(404, f"No status found for connector {name}"), []
                return 200, self._status(name), []
            case "PUT", ["connectors", name, "config"]:
                self.connectors[name] = orjson.loads(body) | {"name": name}
                return 200, self._info(name), []
            case "DELETE", ["connectors", name]:
                del self.connectors[name]
                return 204, None, []
            case "PUT", ["connectors", _, "pause" | "resume"]:
                return 202, None, []
            case ("PUT", ["connectors", _, "stop"]) | ("POST", ["connectors", _, "restart"]):
                return 204, None, []
        return *_error(404, "HTTP 404 Not Found"), []

    def _info(self, name: str) -> dict[str, Any]:
        tasks = [{"connector": name, "task": 0}]
        return {"name": name, "config": self.connectors[name], "tasks": tasks, "type": "source"}

    def _status(self, name: str) -> dict[str, Any]:
        worker = self.url.removeprefix("http://")
        own = {"state": "RUNNING", "worker_id": worker, "version": "1"}
        failed = own | {"state": "FAILED", "trace": "java.lang.Oops"}
        task = own if self.connectors[name].get("healthy") else failed
        return {"name": name, "connector": own, "tasks": [{"id": 0} | task], "type": "source"}

    async def _echo(self, scope: Any, receive: Any, send: Any) -> None:
        size, digest, more = 0, hashlib.sha256(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size += len(message.get("body", b""))
            digest.update(message.get("body", b""))
            more = message.get("more_body", False)
        told = {
            "method": scope["method"],
            "target": (scope["raw_path"] + b"?" + scope["query_string"]).decode(),
            "headers": [[k.decode(), v.decode()] for k, v in scope["headers"]],
            "size": size,
            "sha256": digest.hexdigest(),
        }
        headers = [(b"x-answer", b"1"), (b"x-answer", b"2"), (b"connection", b"x-hop"), (b"x-hop", b"1"), *OLD]
        await _answer(send, 299, orjson.dumps(told), headers)

    async def _stream(self, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"first\n", "more_body": True})
        await self.go_on.wait()
        await send({"type": "http.response.body", "body": b"last\n"})


def _error(status: int, message: str) -> tuple[int, Any]:
    return status, {"error_code": status, "message": message}


async def _answer(send: Any, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    if body:
        headers = [*headers, (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Node(AgentServiceServicer):
    """A node to the state service: registers, beats, reports each workload as it is wanted. Its workers answer REST."""

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
        """One session after another until cancelled."""
        host, port = self.address.split(":")
        service = Service("agent", add_AgentServiceServicer_to_server, self)
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

    async def _bring_about(self, wanted: work.Workload) -> work.WorkloadStatus:
        if wanted.goal == work.WORKLOAD_GOAL_RUNNING and wanted.name in self.failing:
            failed, why = work.WORKLOAD_STATE_FAILED, self.failing[wanted.name]
            return work.WorkloadStatus(state=failed, generation=wanted.generation, reason="EXITED", message=why)
        if wanted.goal == work.WORKLOAD_GOAL_RUNNING:
            if wanted.spec.WhichOneof("kind") == "worker" and wanted.name not in self._open:
                await self._start(wanted.name, wanted.spec.worker)
            state = work.WORKLOAD_STATE_RUNNING
        else:
            await self.close(wanted.name)
            removed = wanted.goal == work.WORKLOAD_GOAL_REMOVED
            state = work.WORKLOAD_STATE_REMOVED if removed else work.WORKLOAD_STATE_STOPPED
        running = state == work.WORKLOAD_STATE_RUNNING
        return work.WorkloadStatus(state=state, generation=wanted.generation, pid=os.getpid() if running else 0)

    async def _start(self, name: str, spec: work.WorkerWorkload) -> None:
        worker = Worker(f"http://{spec.host}:{spec.port}", self._clusters.setdefault(spec.worker_cluster, Connectors()))
        stack = self._open[name] = AsyncExitStack()
        await stack.enter_async_context(
            serve_http(worker, host=spec.host, port=spec.port, label=name, grace_seconds=0.1)
        )
        self.workers[name] = worker
        self.logs[name] = [b"line %d\n" % i for i in range(200)]

    def names_of(self, kind: str) -> list[str]:
        """The workloads of a kind that it was told to run."""
        return [name for name in self._told if name.startswith(f"{kind}/")]

    async def close(self, name: str) -> None:
        """Ends a worker's REST API; the state service is not told."""
        stack = self._open.pop(name, None)
        if stack is not None:
            await stack.aclose()

    async def StreamLogs(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """As an agent answers."""
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
        """Not asked by the gateway."""
        raise AssertionError

    async def Drain(self, request: Any, context: Any) -> Any:
        """Not asked by the gateway."""
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
        """host:port of its gRPC."""
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
        socket = self.flags.get("health-socket")  # it is asked in plain text, also where the port speaks TLS
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
    """All of it."""

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
    """A state service with these settings beside the usual ones, a gateway with those `of_gateway`, and nodes: two, or
    those that `hosts` names with the address of each."""
    hosts = hosts if hosts is not None else {"node-1": "127.0.0.1", "node-2": "127.0.0.1"}
    state_port, grpc_port, http_port, *ports = free_ports(3 + len(hosts))
    state = Process(
        "state",
        {
            "home": str(tmp),
            "port": str(state_port),
            "worker-ports": free_range(40),
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

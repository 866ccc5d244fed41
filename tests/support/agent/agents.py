"""The base of the agent's tests: agents of one home, one after another, and a small session service."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from keelman.api.node.v1.node_pb2 import NodeFigures
from keelman.api.node.v1.session_service_pb2 import (
    Assignments,
    BucketKeys,
    HeartbeatReply,
    NodeSecrets,
    OpenSessionResponse,
    ReportReceived,
    Welcome,
)
from keelman.api.node.v1.session_service_pb2_grpc import SessionServiceServicer, add_SessionServiceServicer_to_server
from keelman.api.node.v1.workload_pb2 import (
    LogTargets,
    ResourceLimits,
    WorkerWorkload,
    Workload,
    WorkloadGoal,
    WorkloadSpec,
    WorkloadState,
    WorkloadStatus,
)
from keelman.rpc.server import RpcService, serve
from keelman.rpc.times import to_duration
from keelman.runtime.home import Home
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.processes.process_trees import start_of

RUNNING, STOPPED, REMOVED = (
    WorkloadGoal.WORKLOAD_GOAL_RUNNING,
    WorkloadGoal.WORKLOAD_GOAL_STOPPED,
    WorkloadGoal.WORKLOAD_GOAL_REMOVED,
)

PROGRAM = """
import sys
from keelman.agent import service
from keelman.agent.workloads import commands
from keelman.agent.settings import Settings
from keelman.runtime.logs.logging import configure
from keelman.runtime.settings import load
from keelman.runtime.supervise import run_process

def script(workload, home):
    spec = workload.spec.worker
    if workload.spec.WhichOneof("kind") != "worker" or "script" not in spec.properties:
        return COMMANDS[str(workload.spec.WhichOneof("kind"))](workload, home)
    python = (sys.executable, *spec.properties.get("python", "-S -u").split(), "-c", spec.properties["script"])
    made = commands.PreparedProcess(python, {}, ((spec.host, spec.port),) if spec.port else ())
    return commands.routed(made, spec.routes, home.workload(workload.name))

settings = load(Settings, "agent", flags=dict(a.split("=", 1) for a in sys.argv[1:])).settings
configure("agent")
COMMANDS = commands.command_table(tenant_users=settings.tenant_users)
table = {**COMMANDS, "worker": script}
sys.exit(run_process("keelman agent", lambda stop: service.run(settings, stop, commands=table)))
"""

SLEEP = "import time; print('up'); time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); time.sleep(600)"
WITH_CHILD = (
    "import subprocess, sys; print('up'); subprocess.run([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])"
)


class State(SessionServiceServicer):
    """A small session service: sends what a test sets, and remembers the agents' messages."""

    def __init__(self) -> None:
        self.workloads: dict[str, Workload] = {}
        self.statuses: dict[str, WorkloadStatus] = {}
        self.history: list[tuple[str, str, int]] = []
        self.registrations: list[Any] = []
        self.heartbeats = 0
        self.figures = NodeFigures()
        self.sessions = 0
        self.version = 0
        self.first_reports: list[set[str]] = []
        self.secrets = NodeSecrets()
        self._queues: list[asyncio.Queue[OpenSessionResponse | None]] = []

    async def OpenSession(self, requests: Any, context: Any) -> AsyncIterator[OpenSessionResponse]:
        queue: asyncio.Queue[OpenSessionResponse | None] = asyncio.Queue()

        async def read() -> None:
            async for message in requests:
                kind = message.WhichOneof("message")
                if kind == "registration":
                    self.registrations.append(message.registration)
                    self.sessions += 1
                    welcome = Welcome(
                        session=self.sessions, heartbeat_interval=to_duration(0.2), session_timeout=to_duration(60)
                    )
                    queue.put_nowait(OpenSessionResponse(welcome=welcome))
                    self._queues.append(queue)
                    queue.put_nowait(OpenSessionResponse(secrets=self.secrets))
                    everything = Assignments(
                        complete=True, to_version=self.version, workloads=list(self.workloads.values())
                    )
                    queue.put_nowait(OpenSessionResponse(assignments=everything))
                elif kind == "heartbeat":
                    self.heartbeats += 1
                    self.figures = message.heartbeat.figures
                    reply = HeartbeatReply(heartbeat_interval=to_duration(0.2))
                    queue.put_nowait(OpenSessionResponse(heartbeat_reply=reply))
                else:
                    if message.report.complete:
                        self.first_reports.append(set(message.report.statuses))
                    for name, status in message.report.statuses.items():
                        self.statuses[name] = status
                        self.history.append((name, WorkloadState.Name(status.state), status.generation))
                    heard = ReportReceived(number=message.report.number)
                    queue.put_nowait(OpenSessionResponse(report_received=heard))
            queue.put_nowait(None)

        async with asyncio.TaskGroup() as group:
            reader = group.create_task(read())
            try:
                while (answer := await queue.get()) is not None:
                    yield answer
            finally:
                reader.cancel()
                with contextlib.suppress(ValueError):
                    self._queues.remove(queue)

    def drop(self) -> None:
        for queue in self._queues:
            queue.put_nowait(None)

    def assign(self, *workloads: Workload, gap: int = 0) -> None:
        before, self.version = self.version + gap, self.version + gap + 1
        for workload in workloads:
            self.workloads[workload.name] = workload
        self._say(Assignments(from_version=before, to_version=self.version, workloads=workloads))

    def remove(self, name: str) -> None:
        before, self.version = self.version, self.version + 1
        del self.workloads[name]
        self._say(Assignments(from_version=before, to_version=self.version, removed=[name]))

    def give_keys(self, buckets: str, access_key_id: str, secret_access_key: str) -> None:
        """Gives the agent keys of the buckets of a server."""
        keys = BucketKeys(buckets=buckets, access_key_id=access_key_id, secret_access_key=secret_access_key)
        self.secrets = NodeSecrets(bucket_keys=keys)
        for queue in self._queues:
            queue.put_nowait(OpenSessionResponse(secrets=self.secrets))

    def _say(self, message: Assignments) -> None:
        for queue in self._queues:
            queue.put_nowait(OpenSessionResponse(assignments=message))

    def in_state(self, name: str, state: str) -> WorkloadStatus | None:
        status = self.statuses.get(name)
        return status if status and WorkloadState.Name(status.state) == f"WORKLOAD_STATE_{state}" else None


def hungry(size: str) -> str:
    """A script whose child takes so many bytes once the file `eat` exists; started again it only waits."""
    return f"""
import pathlib, subprocess, sys, time
child = "import pathlib, time\\nwhile not pathlib.Path('eat').exists(): time.sleep(0.05)"
child += "\\nx = bytearray({size}); time.sleep(600)"
print('up')
if pathlib.Path('ate').exists():
    time.sleep(600)
pathlib.Path('ate').touch()
subprocess.run([sys.executable, '-S', '-c', child])
time.sleep(600)
"""


class Node:
    """One home, its agents one after another, and their state service."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / "home")
        self.folder = folder
        self.port, self.state_port = free_ports(2)
        self.state = State()
        self.agents: list[subprocess.Popen[bytes]] = []
        self._state_stack = contextlib.AsyncExitStack()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def state_up(self) -> None:
        service = RpcService("keelman.api.node.v1.SessionService", add_SessionServiceServicer_to_server, self.state)
        await self._state_stack.enter_async_context(serve(service, port=self.state_port, grace_seconds=0.1))

    async def state_down(self) -> None:
        self.state.drop()
        await self._state_stack.aclose()

    def agent(self, *, prefix: Sequence[str] = (), **more: str) -> subprocess.Popen[bytes]:
        flags = {
            "node": "n1",
            "home": str(self.home.root),
            "port": str(self.port),
            "state_address": f"127.0.0.1:{self.state_port}",
            "grace_seconds": "20",
            **more,
        }
        with (self.folder / f"agent-{len(self.agents)}.log").open("wb") as log:
            process = subprocess.Popen(
                [*prefix, sys.executable, "-c", PROGRAM, *(f"{k}={v}" for k, v in flags.items())],
                stdout=log,
                stderr=log,
            )
        self.agents.append(process)
        return process

    def log_of_agent(self, number: int = -1) -> str:
        return (self.folder / f"agent-{number % len(self.agents)}.log").read_text()

    async def end(self, agent: subprocess.Popen[bytes], number: int) -> int:
        agent.send_signal(number)
        return await asyncio.to_thread(agent.wait, 300)

    async def close(self) -> None:
        for agent in self.agents:
            if agent.poll() is None:
                agent.kill()
                await asyncio.to_thread(agent.wait, 300)
        await self.state_down()
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("KEELMAN_CHILD", "").startswith(str(self.home.root)):
                    process.kill()


@contextlib.asynccontextmanager
async def running_node(folder: Path) -> AsyncIterator[Node]:
    """A node with its session service; no process of it is left afterwards."""
    node = Node(folder)
    await node.state_up()
    try:
        yield node
    except BaseException:
        print(node.log_of_agent())
        raise
    finally:
        await node.close()


def workload(
    name: str = "worker/demo/0",
    script: str = SLEEP,
    *,
    generation: int = 1,
    goal: Any = RUNNING,
    port: int = 0,
    uid: str = "u1",
    force: bool = False,
    limits: ResourceLimits | None = None,
    routes: Mapping[str, str] | None = None,
    log_targets: LogTargets | None = None,
    **properties: str,
) -> Workload:
    properties["script"] = script
    spec = WorkerWorkload(
        worker_cluster="demo", host="127.0.0.1", port=port, properties=properties, routes=routes,
        log_targets=log_targets,
    )  # fmt: skip
    return Workload(
        name=name, uid=uid, node="n1", generation=generation, goal=goal, spec=WorkloadSpec(worker=spec), force=force,
        limits=limits,
    )  # fmt: skip


def healthy(node: Node, name: str = "worker/demo/0") -> str:
    """A script that answers its health check."""
    return f"""
import asyncio, pathlib
from keelman.rpc.server import serve
async def main():
    async with serve(socket=pathlib.Path({str(node.home.socket(name))!r})) as health:
        await health.ready()
        for n in range(1, 301): print('line', n)
        await asyncio.sleep(600)
asyncio.run(main())
"""


def alive(pid: int) -> bool:
    return start_of(pid) is not None

"""Several hosts on this machine: agents in network namespaces of their own, each with a cable to one bridge."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from keelman.api.connect.v1 import broker_cluster_pb2, broker_cluster_service_pb2
from keelman.api.connect.v1.connector_pb2 import ConnectorState
from keelman.api.connect.v1.connector_service_pb2 import GetConnectorRequest
from keelman.api.node.v1.agent_service_pb2 import StreamLogsRequest
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceStub
from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from keelman.api.node.v1.workload_pb2 import Workload, WorkloadState
from keelman.model.errors import KeelmanError
from keelman.rpc.channels import channel
from keelman.rpc.generated import stub_of
from keelman.rpc.health import is_serving
from keelman.runtime.home import Home
from keelman.runtime.processes.process_trees import is_marked, kill_all
from support.eventually import eventually
from support.state.service import Clients

NET = "203.0.113"  # addresses that no real network has (RFC 5737, TEST-NET-3)
STATE, GATEWAY, HTTP, AGENT = 7410, 7400, 7480, 7420
RUNNING = WorkloadState.WORKLOAD_STATE_RUNNING
START_SECONDS = 300.0
NOBODY = "02:00:00:00:00:01"  # a hardware address that no cable here has


def missing() -> str:
    """The reason why there can be no hosts here; empty when there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None or shutil.which("nsenter") is None:
        return "network namespaces need the programs ip and nsenter"
    result = subprocess.run(["ip", "netns", "add", f"kmt{os.getpid()}"], capture_output=True, text=True, check=False)
    if result.returncode:
        return f"network namespaces cannot be made: {result.stderr.strip()}"
    _ip("netns", "del", f"kmt{os.getpid()}")
    return ""


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


@dataclass(slots=True)
class Host:
    """One host: its agent, and the folder of its processes."""

    name: str
    namespace: str
    cable: str
    plug: str  # the cable's end within the namespace
    address: str
    home: Home
    agent: subprocess.Popen[bytes] | None = None

    def start(self, state: str) -> None:
        """Starts its agent."""
        self.home.root.mkdir(parents=True, exist_ok=True)
        command = ["nsenter", f"--net=/run/netns/{self.namespace}", sys.executable, "-m", "keelman.agent", "run"]
        command += ["--node", self.name, "--home", str(self.home.root), "--state-address", state, "--trust", "mesh"]
        command += ["--host", self.address, "--port", str(AGENT), "--grace-seconds", "20"]
        stored = {k: v for k, v in os.environ.items() if not k.startswith("KEELMAN_AGENT_")}
        with (self.home.root / "agent.log").open("ab") as log:
            self.agent = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=stored)

    def pull_cable(self) -> None:
        """Cuts this host off: it receives and sends nothing."""
        _ip("link", "set", self.cable, "down")

    def plug_in(self) -> None:
        """Reconnects the cable."""
        _ip("link", "set", self.cable, "up")

    def lose(self, other: Host) -> None:
        """Packets from this host to the other vanish; packets from the other arrive."""
        neighbor = ("neigh", "replace", other.address, "lladdr", NOBODY, "dev", self.plug, "nud", "permanent")
        _ip("-n", self.namespace, *neighbor)

    def find(self, other: Host) -> None:
        """Restores the packets to the other host."""
        _ip("-n", self.namespace, "neigh", "del", other.address, "dev", self.plug)

    def processes(self) -> list[int]:
        """Its workloads' processes."""
        folders = list(self.home.workloads.glob("*"))
        return [p for p in psutil.pids() if any(is_marked(p, f) for f in folders)]

    def end(self) -> None:
        """Kills all its processes."""
        if self.agent is not None:
            self.agent.kill()
            self.agent.wait(60)
        kill_all(self.processes())


@dataclass(slots=True)
class System:
    """State and gateway on this host, agents on others."""

    folder: Path
    address: str
    hosts: dict[str, Host]
    clients: Clients | None = None
    gateway: Clients | None = None
    gateway_host: str = ""
    agents: AgentServiceStub | None = None
    services: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def rest(self) -> str:
        """The gateway's URL for HTTP."""
        return f"http://{self.gateway_host}:{HTTP}"

    @property
    def of(self) -> Clients:
        """The state service's services."""
        assert self.clients is not None
        return self.clients

    def spawn(self, service: str, *flags: str, on: Host | None = None) -> None:
        """Starts a service of this host, or of one of the others."""
        inside = [] if on is None else ["nsenter", f"--net=/run/netns/{on.namespace}"]
        policy = ("--connector-policy", "open") if service == "state" else ()  # files of tests are anywhere
        command = [*inside, sys.executable, "-m", f"keelman.{service}", "run", "--trust", "mesh", *policy, *flags]
        stored = {k: v for k, v in os.environ.items() if not k.startswith(f"KEELMAN_{service.upper()}_")}
        with (self.folder / f"{service}.log").open("ab") as log:
            result = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=stored)
        self.services.append(result)

    async def start_gateway(self, state: str, on: Host | None = None) -> str:
        """Starts a gateway for the state services at these addresses; returns its own address once it serves."""
        self.gateway_host = on.address if on else self.address
        listens = ("--host", self.gateway_host, "--port", str(GATEWAY), "--http-host", self.gateway_host)
        requests = ("--http-port", str(HTTP), "--state-address", state, "--open-access", "true")
        self.spawn("gateway", *listens, *requests, on=on)
        address = f"{self.gateway_host}:{GATEWAY}"
        await eventually(lambda: is_serving(address), what=f"{address} serves")
        return address

    def end_services(self) -> None:
        """Ends all services that were started."""
        for service in self.services:
            service.send_signal(signal.SIGTERM)
        for service in self.services:
            service.wait(60)

    async def online(self, *names: str) -> None:
        """Returns when these nodes are online."""

        async def there() -> bool:
            nodes = (await self.of.nodes.ListNodes(ListNodesRequest())).nodes
            return {n.name for n in nodes if n.status.state == 1} >= set(names)

        await eventually(there, what=f"nodes {names} are online")

    async def running(self, *names: str, seconds: float = START_SECONDS) -> dict[str, Workload]:
        """The workloads, when these run at their last generation."""
        workloads: dict[str, Workload] = {}

        async def look() -> bool:
            workloads.update(await self.of.workloads())
            there = [workloads[n] for n in names if n in workloads]
            fresh = [w for w in there if w.status.state == RUNNING and w.status.generation == w.generation]
            return len(fresh) == len(names)

        await eventually(look, seconds=seconds, what=f"{names} run")
        return workloads

    async def workers(self, cluster: str) -> dict[str, str]:
        """The nodes of a cluster's workers by name, of those that run."""
        workloads = (await self.of.workloads()).values()
        return {
            w.name: w.node for w in workloads if w.name.startswith(f"worker/{cluster}/") and w.status.state == RUNNING
        }

    async def in_state(self, cluster: str, state: str, *, seconds: float = START_SECONDS) -> None:
        """Returns when the broker cluster is in this state and has no message."""

        async def look() -> bool:
            status = (await self.of.broker_cluster(cluster)).status
            name = broker_cluster_pb2.ClusterState.Name(status.state)
            assert (name, status.message) == (f"CLUSTER_STATE_{state}", ""), f"{name} {status.message}"
            return True

        await eventually(look, seconds=seconds, what=f"{cluster} is {state}")

    async def update_brokers(self, cluster: str, *masks: str, **managed: Any) -> None:
        """Changes fields of a managed broker cluster."""
        spec = broker_cluster_pb2.BrokerClusterSpec(managed=broker_cluster_pb2.ManagedBrokers(**managed))
        request = broker_cluster_service_pb2.UpdateBrokerClusterRequest(name=cluster, spec=spec)
        request.update_mask.paths.extend(masks)
        await self.of.brokers.UpdateBrokerCluster(request)

    async def create_workers(self, name: str, **spec: Any) -> None:
        """Creates a worker cluster and starts it."""
        await self.of.create_workers(name, **spec)
        await self.of.start_workers(name)

    async def brokers_and_workers(self, *names: str) -> str:
        """A managed cluster `default` with a broker on each of these hosts, and a worker cluster `demo`, all running.

        The worker cluster has as many workers. Returns the brokers' addresses.
        """
        await self.of.create_managed("default", *names)
        await self.in_state("default", "RUNNING")
        brokers: str = (await self.of.broker_cluster("default")).status.bootstrap_servers
        await self.create_workers("demo", count=len(names))
        await self.running(*(f"worker/demo/{n}" for n in range(len(names))), *(f"spark/{n}" for n in names))
        return brokers

    async def configure(self, cluster: str, connector: str, config: dict[str, str]) -> None:
        """Creates a connector with this configuration, or changes it."""
        async with httpx.AsyncClient(timeout=300, trust_env=False, verify=False) as client:
            url = f"{self.rest}/clusters/{cluster}/connectors/{connector}/config"

            async def put() -> bool:
                answer = await client.put(url, json=config)
                assert answer.status_code in (200, 201), answer.text
                return True

            await eventually(put, what=f"{connector} is taken")

    async def owners(self, cluster: str, connectors: Sequence[str]) -> dict[str, str]:
        """The worker (host:port) of the task of each of these connectors that runs."""
        assert self.gateway is not None
        stub, owners = stub_of(self.gateway.channel, "connect", "connector"), {}
        for name in connectors:
            request = GetConnectorRequest(worker_cluster=cluster, name=name)
            with contextlib.suppress(KeelmanError):  # no worker of the cluster answers
                for task in (await stub.GetConnector(request, timeout=300)).connector.tasks:
                    if task.state == ConnectorState.CONNECTOR_STATE_RUNNING:
                        owners[name] = task.worker_id
        return owners

    async def log_of(self, workload: str) -> str:
        """The log of a workload, through the gateway."""
        assert self.agents is not None
        call: Any = self.agents.StreamLogs(StreamLogsRequest(workload=workload, tail_lines=50))
        return b"".join([piece.lines async for piece in call]).decode()

    def logs(self, lines: int = 12) -> str:
        """The ends of all logs, for a failing test's message."""
        files = [*self.folder.glob("*.log"), *self.folder.glob("*/agent.log"), *self.folder.glob("*/workloads/*/log")]
        told = []
        for file in sorted(files):
            tail = "\n".join(file.read_text(errors="replace").splitlines()[-lines:])
            told.append(f"--- {file.relative_to(self.folder)}\n{tail}")
        return "\n".join(told)


@contextlib.contextmanager
def cabled(folder: Path, names: Sequence[str]) -> Iterator[System]:
    """Network namespaces with a cable each to one bridge; no process runs there yet."""
    taken = _ip("-4", "-o", "addr")
    net = next(n for n in range(0, 256, 16) if f"{NET}.{n + 1}/" not in taken)
    bridge = f"kmb{os.getpid()}"
    hosts: dict[str, Host] = {}
    _ip("link", "add", bridge, "type", "bridge")
    try:
        _ip("addr", "add", f"{NET}.{net + 1}/28", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for n, name in enumerate(names):
            space, here, there = f"kmh{os.getpid()}n{n}", f"km{os.getpid()}a{n}", f"km{os.getpid()}b{n}"
            address = f"{NET}.{net + 2 + n}"
            _ip("netns", "add", space)
            hosts[name] = Host(name, space, here, there, address, Home(folder / name))
            _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", space)
            _ip("link", "set", here, "master", bridge)
            _ip("link", "set", here, "up")
            _ip("-n", space, "addr", "add", f"{address}/28", "dev", there)
            _ip("-n", space, "link", "set", there, "up")
            _ip("-n", space, "link", "set", "lo", "up")
        yield System(folder, f"{NET}.{net + 1}", hosts)
    finally:
        for host in hosts.values():
            host.end()
            with contextlib.suppress(subprocess.CalledProcessError):  # closing connections keep a namespace for a while
                _ip("link", "del", host.cable)
            _ip("netns", "del", host.namespace)
        _ip("link", "del", bridge)


@contextlib.asynccontextmanager
async def running_hosts(
    folder: Path, names: Sequence[str], *flags: str, apart: Sequence[str] = ()
) -> AsyncIterator[System]:
    """State, gateway and these hosts' agents; `flags` are the state service's.

    `apart`: two further hosts, on which the state service and the gateway run.
    """
    with cabled(folder, [*names, *apart]) as system, ended(system):
        of_state, of_gateway = (system.hosts[name] for name in apart) if apart else (None, None)
        state_host = of_state.address if of_state else system.address
        state, home = f"{state_host}:{STATE}", ("--home", str(folder / "s"))
        system.spawn("state", "--host", state_host, "--port", str(STATE), *home, *flags, on=of_state)
        gateway_address = await system.start_gateway(state, of_gateway)
        await eventually(lambda: is_serving(state), what=f"{state} serves")
        for name in names:
            system.hosts[name].start(state)
        async with channel(state) as new_channel, channel(gateway_address) as gateway:
            system.clients, system.gateway = Clients(new_channel), Clients(gateway)
            system.agents = AgentServiceStub(gateway)
            await system.online(*names)
            yield system


@contextlib.contextmanager
def ended(system: System) -> Iterator[None]:
    """Ends the services that were started meanwhile."""
    try:
        yield
    finally:
        system.end_services()

"""A whole system for the Ohara API on one machine.

State, a gateway, and real agents at addresses of their own, which run their assigned workloads.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from keelman.api.connect.v1 import broker_cluster_pb2 as brokers
from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers_pb
from keelman.api.connect.v1.broker_cluster_service_pb2_grpc import BrokerClusterServiceStub
from keelman.rpc.channels import channel
from keelman.runtime.home import Home
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.processes.process_trees import is_marked, kill_all
from support.eventually import eventually
from support.gateway.ohara.clients import JsClient, client_of
from support.gateway.system import Process
from support.state.service import free_range

MACHINES = {"node00": "127.0.0.11", "node01": "127.0.0.12", "node02": "127.0.0.13"}


class Machines:
    """The processes, and a client of them. `bk` is a broker cluster that exists from the start."""

    def __init__(self, folder: Path, addresses: Mapping[str, str]) -> None:
        state_port, grpc_port, http_port = free_ports(3)
        self.addresses = addresses
        self.homes = {node: Home(folder / node) for node in addresses}
        self.state = Process(
            "state",
            {
                "home": str(folder),
                "port": str(state_port),
                "worker-ports": free_range(8),
                "spark-ports": free_range(4),
                "session-timeout-seconds": "60",
            },
            folder / "state.log",
        )
        self.gateway = Process(
            "gateway",
            {"port": str(grpc_port), "http-port": str(http_port), "state-address": self.state.address},
            folder / "gateway.log",
        )
        self.http = f"http://127.0.0.1:{http_port}"
        self.agents: list[subprocess.Popen[bytes]] = []
        self.js: JsClient

    def start_agent(self, node: str) -> None:
        """Starts the agent of a node."""
        home, (port,) = self.homes[node], free_ports(1)
        home.root.mkdir()
        command = [sys.executable, "-m", "keelman.agent", "run", "--node", node, "--home", str(home.root)]
        command += ["--node-address", self.addresses[node], "--port", str(port), "--trust", "mesh"]
        command += ["--state-address", self.state.address]
        with (home.root / "agent.log").open("ab") as log:
            self.agents.append(subprocess.Popen(command, stdout=log, stderr=log))

    async def make_brokers(self, bootstrap: str) -> None:
        """Registers an external broker cluster."""
        async with channel(self.gateway.address) as to:
            spec = brokers.BrokerClusterSpec(external=brokers.ExternalBrokers(bootstrap_servers=bootstrap))
            request = brokers_pb.CreateBrokerClusterRequest(name="bk", spec=spec)
            await BrokerClusterServiceStub(to).CreateBrokerCluster(request)

    async def are_there(self) -> bool:
        """Whether all nodes are available, and the brokers."""
        assert all(agent.poll() is None for agent in self.agents), self.logs()
        nodes = {n["hostname"]: n["state"] for n in await self.js.list("nodes")}
        there = {"AVAILABLE"} == set(nodes.values()) and nodes.keys() == self.addresses.keys()
        return there and [b.get("state") for b in await self.js.list("brokers")] == ["RUNNING"]

    def end(self) -> None:
        """Ends all processes."""
        for agent in self.agents:
            agent.kill()
            agent.wait(60)
        folders = [folder for home in self.homes.values() for folder in home.workloads.glob("*")]
        kill_all([p for p in psutil.pids() if any(is_marked(p, f) for f in folders)])
        for service in (self.gateway, self.state):
            if service.process is not None:
                service.stop()

    def logs(self) -> str:
        """The ends of all logs, for the message of a failing test."""
        files = [f for home in self.homes.values() for f in (home.root / "agent.log", *home.workloads.glob("*/log"))]
        files += [self.state.log, self.gateway.log]
        return "\n".join(f"--- {f}\n{f.read_text(errors='replace')[-2500:]}" for f in files if f.exists())


@asynccontextmanager
async def ohara_machines(
    folder: Path, bootstrap: str, addresses: Mapping[str, str] = MACHINES
) -> AsyncIterator[Machines]:
    """The system, ready."""
    machines = Machines(folder, addresses)
    try:
        for service in (machines.state, machines.gateway):
            await service.start()
        for node in addresses:
            machines.start_agent(node)
        await machines.make_brokers(bootstrap)
        async with client_of(machines.http) as client:
            machines.js = JsClient(client)
            await machines.js.documented()
            await eventually(machines.are_there, what="all nodes are available")
            yield machines
    finally:
        machines.end()

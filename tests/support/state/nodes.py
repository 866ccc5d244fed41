"""A state service and some agents on one machine, each with a home of its own: real processes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import psutil

from keelman.api.node.v1 import node_service_pb2
from keelman.runtime.home import Home
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.processes.process_trees import is_marked, kill_all
from support.eventually import eventually
from support.state.service import Clients, StateProcess, free_range

NODES = ("n1", "n2", "n3")
SECONDS = 300.0


class Nodes:
    """A state service and its agents, which are started one by one."""

    def __init__(self, folder: Path, names: Sequence[str] = NODES, *flags: str) -> None:
        usual = ["--worker-ports", free_range(8), "--spark-ports", free_range(4), "--session-timeout-seconds", "120"]
        self.state = StateProcess(folder / "state", *usual, *flags)
        self.homes = {node: Home(folder / node) for node in names}
        self.agents: dict[str, subprocess.Popen[bytes]] = {}

    def start_agent(self, node: str) -> None:
        home, (port,) = self.homes[node], free_ports(1)
        home.root.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "keelman.agent", "run", "--node", node, "--home", str(home.root)]
        command += ["--port", str(port), "--state-address", f"127.0.0.1:{self.state.port}"]
        with (home.root / "agent.log").open("ab") as log:
            self.agents[node] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill_agent(self, node: str) -> None:
        """Kills the agent; its workloads keep running until the next agent of its home adopts them."""
        self.agents[node].kill()
        self.agents[node].wait(60)

    async def are_online(self, clients: Clients) -> None:
        """Waits until the state service lists all of them."""

        async def online() -> bool:
            assert all(agent.poll() is None for agent in self.agents.values()), self.logs()
            return len((await clients.nodes.ListNodes(node_service_pb2.ListNodesRequest())).nodes) == len(self.homes)

        await eventually(online, seconds=SECONDS, what="all agents have registered")

    def end(self) -> None:
        for node in self.agents:
            self.kill_agent(node)
        folders = [folder for home in self.homes.values() for folder in home.workloads.glob("*")]
        kill_all([p for p in psutil.pids() if any(is_marked(p, f) for f in folders)])

    def logs(self) -> str:
        files = [f for home in self.homes.values() for f in (home.root / "agent.log", *home.workloads.glob("*/log"))]
        return "\n".join(f"--- {f}\n{f.read_text(errors='replace')[-2500:]}" for f in files if f.exists())


@contextlib.asynccontextmanager
async def running_nodes(folder: Path, names: Sequence[str] = NODES, *flags: str) -> AsyncIterator[Nodes]:
    """Runs the state service with these flags beside the usual ones; the caller starts its agents.

    A failure prints their logs; no process is left running.
    """
    nodes = Nodes(folder, names, *flags)
    await nodes.state.start()
    try:
        yield nodes
    except BaseException:
        print(nodes.logs())
        raise
    finally:
        nodes.end()
        await nodes.state.end()

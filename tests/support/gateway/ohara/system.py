"""A system of `keelman up` with further agents, each with an address of this machine's loopback.

Workers on these nodes may have the same port.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from keelman.runtime.processes.ports import free_ports
from support.cli.system import Keelman
from support.eventually import eventually
from support.gateway.ohara.clients import JsClient, ScalaClient, client_of

ADDRESSES: Mapping[str, str] = {"node01": "127.0.0.2", "node02": "127.0.0.3"}


@dataclass(slots=True)
class OharaSystem:
    """The system and its clients. `own` is the node of `keelman up`; it has the broker cluster `default`."""

    keelman: Keelman
    js: JsClient
    scala: ScalaClient
    own: str
    agents: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_agent(self, node: str, address: str) -> None:
        """Starts an agent; its home in the system's home identifies its processes."""
        home, (port,) = self.keelman.home / "agents" / node, free_ports(1)
        home.mkdir(parents=True)
        flags = {"node": node, "home": str(home), "host": address, "port": str(port)}
        words = [w for k, v in (flags | {"state-address": self.keelman.system["state"]}).items() for w in (f"--{k}", v)]
        environment = {k: v for k, v in self.keelman.environment.items() if not k.startswith("KEELMAN_AGENT_")}
        with (home / "agent.log").open("ab") as log:
            command = [sys.executable, "-m", "keelman.agent", "run", *words]
            self.agents.append(
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
            )

    def kill(self, service: str) -> None:
        """Sends kill -9 to one of the services of `keelman up`, which restarts it."""
        os.kill(self.keelman.pid_of(service), signal.SIGKILL)

    def end(self) -> None:
        """Ends the agents; their workloads go with the home."""
        for agent in self.agents:
            agent.kill()
            agent.wait(60)


@asynccontextmanager
async def ohara_system(
    keelman: Keelman, addresses: Mapping[str, str] = ADDRESSES, *settings: str
) -> AsyncIterator[OharaSystem]:
    """Starts the system; at the end nothing is left of it. Nodes are in `/v0/nodes` as soon as their agents run."""
    try:
        await keelman.ok("up", "--detach", "--free-ports", *settings)
        async with client_of(keelman.system["http"]) as client:
            new_ohara_system = OharaSystem(keelman, JsClient(client), ScalaClient(client), keelman.system["node"])
            try:
                for node, address in addresses.items():
                    new_ohara_system.start_agent(node, address)

                async def available() -> bool:
                    nodes = {n["hostname"]: n["state"] for n in await new_ohara_system.js.list("nodes")}
                    return all(nodes.get(n) == "AVAILABLE" for n in addresses)

                await eventually(available, what="every node is available")
                yield new_ohara_system
            finally:
                new_ohara_system.end()
    finally:
        await keelman.cleaned()

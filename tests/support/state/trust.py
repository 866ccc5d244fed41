"""The base of the tests of joining: a state service with a CA, a gateway beside it, hosts that join, and agents."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keelman.agent.service import run as run_agent
from keelman.agent.settings import Settings as AgentSettings
from keelman.api.access.v1.join_token_service_pb2 import CreateJoinTokenRequest
from keelman.api.node.v1.node_pb2 import Node, NodeState
from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from keelman.cli.machine.joined import Joining, join_host
from keelman.gateway.service import run as run_gateway
from keelman.gateway.settings import Settings as GatewaySettings
from keelman.model.access.join_token import JoinRole
from keelman.rpc.channels import Channel, channel
from keelman.rpc.generated import stub_of
from keelman.rpc.health import is_serving
from keelman.rpc.times import to_duration
from keelman.runtime.home import Home
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.settings import load
from keelman.runtime.tls.certificates import CertificateFacts, certificate_facts
from keelman.state.service import run as run_state
from keelman.state.settings import Settings as StateSettings
from support.eventually import eventually

ONLINE = NodeState.NODE_STATE_ONLINE


@dataclass(slots=True)
class Installation:
    """A state service and a gateway of one host, in this loop, and the homes of hosts that join."""

    folder: Path
    state_port: int
    gateway_port: int
    http_port: int
    to_gateway: Channel
    homes: dict[str, Home] = field(default_factory=dict)

    @property
    def gateway(self) -> str:
        return f"127.0.0.1:{self.gateway_port}"

    @property
    def state(self) -> str:
        return f"127.0.0.1:{self.state_port}"

    @property
    def state_home(self) -> Home:
        return Home(self.folder / "state")

    async def https(self) -> CertificateFacts:
        """The gateway's certificate for https, as a client sees it that trusts the CA and the address."""
        context = ssl.create_default_context(cafile=str(self.state_home.authority))
        reader, writer = await asyncio.open_connection("127.0.0.1", self.http_port, ssl=context)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return certificate_facts(ssl.DER_cert_to_PEM_cert(shown).encode())

    async def token(self, *, ttl: float = 600.0, **fields: Any) -> str:
        """A token, without the gateway's address."""
        request = CreateJoinTokenRequest(ttl=to_duration(ttl), **fields)
        return str((await stub_of(self.to_gateway, "access", "join_token").CreateJoinToken(request)).token)

    async def join(self, name: str, token: str = "", **fields: Any) -> Sequence[str]:
        """Joins a host, with the home of its name."""
        home = self.homes.setdefault(name, Home(self.folder / name))
        token_given = token or await self.token()
        joining = Joining(fields.pop("role", JoinRole.NODE), fields.pop("as_name", name), "", "", home)
        return await join_host(f"{token_given}@{self.gateway}", joining)

    @contextlib.asynccontextmanager
    async def agent(self, name: str, **flags: Any) -> AsyncIterator[asyncio.Task[None]]:
        """An agent with the settings that joining has written."""
        home, stop = self.homes[name], asyncio.Event()
        port = free_ports(1)[0]
        fields = {"home": str(home.root), "port": port, "advertised_address": f"127.0.0.1:{port}", **flags}
        settings = load(AgentSettings, "agent", file=home.settings_file("agent"), flags=fields).settings
        task = asyncio.ensure_future(run_agent(settings, stop))
        try:
            yield task
        finally:
            stop.set()
            await asyncio.gather(task, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def second_gateway(self, name: str) -> AsyncIterator[Channel]:
        """A gateway with the settings that joining has written, which calls the state service as from another host."""
        home, stop, (port, http) = self.homes[name], asyncio.Event(), free_ports(2)
        socket = self.folder / "g2.sock"
        fields = {"home": str(home.root), "port": port, "http_port": http, "health_socket": str(socket)}
        settings = load(GatewaySettings, "gateway", file=home.settings_file("gateway"), flags=fields).settings
        task = asyncio.ensure_future(run_gateway(settings, stop))
        try:
            await _serving([task], f"unix:{socket}")
            async with channel(f"unix:{socket}") as new_channel:
                yield new_channel
        finally:
            stop.set()
            await task

    async def nodes(self) -> dict[str, Node]:
        """The nodes as the state service lists them, through the gateway."""
        answer = await stub_of(self.to_gateway, "node", "node").ListNodes(ListNodesRequest())
        return {node.name: node for node in answer.nodes}

    async def online(self, name: str, *, seconds: float = 300.0) -> None:
        """Returns when a node is online."""

        async def there() -> bool:
            node = (await self.nodes()).get(name)
            return node is not None and node.status.state == ONLINE

        await eventually(there, seconds=seconds, what=f"node {name} is online")


@contextlib.asynccontextmanager
async def installation(folder: Path, *, access: Path | None = None, **state: Any) -> AsyncIterator[Installation]:
    """A state service with `trust = installation` and a gateway with its certificate, through which hosts join.

    `access` is the gateway's access file.
    """
    state_port, gateway_port, http_port = free_ports(3)
    home, stop = Home(folder / "state"), asyncio.Event()
    fields: dict[str, Any] = {"home": home.root, "port": state_port, "trust": "installation"}
    fields |= {"heartbeat_seconds": 0.3, "session_timeout_seconds": 2.0, "connector_policy": "open"} | state
    socket, of_gateway = home.socket("state"), folder / "g.sock"
    services = [asyncio.ensure_future(run_state(StateSettings(**fields), stop))]
    try:
        await _serving(services, f"unix:{socket}")
        settings = GatewaySettings(
            port=gateway_port, http_port=http_port, state_address=f"unix:{socket}", trust="installation",
            health_socket=of_gateway, grace_seconds=2.0, http_tls=True, access_file=access,
        )  # fmt: skip
        services.append(asyncio.ensure_future(run_gateway(settings, stop)))
        await _serving(services, f"unix:{of_gateway}")
        async with channel(f"unix:{of_gateway}") as new_channel:
            yield Installation(folder, state_port, gateway_port, http_port, new_channel)
    finally:
        stop.set()
        await asyncio.gather(*reversed(services))


async def _serving(services: Sequence[asyncio.Future[None]], address: str) -> None:
    def over() -> bool:
        return any(service.done() for service in services)

    await eventually(lambda: over() or is_serving(address), what=f"{address} serves")
    for service in services:
        if service.done():
            service.result()

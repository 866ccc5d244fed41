"""The gRPC services that the gateway answers itself: connectors, and logs of any node's workloads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from keelman.api.connect.v1 import connector_service_pb2 as wire
from keelman.api.connect.v1.connector_service_pb2_grpc import ConnectorServiceServicer
from keelman.api.node.v1 import agent_service_pb2 as agent
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceServicer, AgentServiceStub
from keelman.gateway.listing import Listing
from keelman.gateway.state import State
from keelman.model.errors import FailedPrecondition, InvalidArgument, PermissionDenied
from keelman.model.names import checked_name, checked_request_id
from keelman.rpc.channels import Channel, channel, checked_peer
from keelman.rpc.errors import translated_stream
from keelman.rpc.pages import key_of, page_limit
from keelman.rpc.server import Context
from keelman.workers.rest.connectors import Connectors


class ConnectorApi(ConnectorServiceServicer):
    """ConnectorService over the workers' REST API."""

    def __init__(self, connectors: Connectors, listing: Listing) -> None:
        self._connectors = connectors
        self._listing = listing

    async def GetConnector(self, request: wire.GetConnectorRequest, context: Context) -> wire.GetConnectorResponse:
        """See the proto."""
        found = await self._connectors.get(*_named(request.worker_cluster, request.name))
        return wire.GetConnectorResponse(connector=found)

    async def ListConnectors(
        self, request: wire.ListConnectorsRequest, context: Context
    ) -> wire.ListConnectorsResponse:
        """See the proto."""
        page_limit(request.page_size)
        key_of(request.page_token)
        if request.worker_cluster:
            checked_name("worker_cluster", request.worker_cluster)
        return await self._listing.page(request)

    async def CreateConnector(
        self, request: wire.CreateConnectorRequest, context: Context
    ) -> wire.CreateConnectorResponse:
        """See the proto."""
        cluster, name = _named(request.worker_cluster, request.name)
        request_id = checked_request_id("request_id", request.request_id)
        made = await self._connectors.create(cluster, name, request.config, request_id=request_id)
        return wire.CreateConnectorResponse(connector=made)

    async def UpdateConnector(
        self, request: wire.UpdateConnectorRequest, context: Context
    ) -> wire.UpdateConnectorResponse:
        """See the proto."""
        cluster, name = _named(request.worker_cluster, request.name)
        made = await self._connectors.update(cluster, name, request.config, etag=request.etag)
        return wire.UpdateConnectorResponse(connector=made)

    async def DeleteConnector(
        self, request: wire.DeleteConnectorRequest, context: Context
    ) -> wire.DeleteConnectorResponse:
        """See the proto."""
        await self._connectors.delete(*_named(request.worker_cluster, request.name), etag=request.etag)
        return wire.DeleteConnectorResponse()

    async def PauseConnector(
        self, request: wire.PauseConnectorRequest, context: Context
    ) -> wire.PauseConnectorResponse:
        """See the proto."""
        await self._connectors.pause(*_named(request.worker_cluster, request.name))
        return wire.PauseConnectorResponse()

    async def ResumeConnector(
        self, request: wire.ResumeConnectorRequest, context: Context
    ) -> wire.ResumeConnectorResponse:
        """See the proto."""
        await self._connectors.resume(*_named(request.worker_cluster, request.name))
        return wire.ResumeConnectorResponse()

    async def StopConnector(self, request: wire.StopConnectorRequest, context: Context) -> wire.StopConnectorResponse:
        """See the proto."""
        await self._connectors.stop(*_named(request.worker_cluster, request.name))
        return wire.StopConnectorResponse()

    async def RestartConnector(
        self, request: wire.RestartConnectorRequest, context: Context
    ) -> wire.RestartConnectorResponse:
        """See the proto."""
        cluster, name = _named(request.worker_cluster, request.name)
        await self._connectors.restart(
            cluster, name, include_tasks=request.include_tasks, only_failed=request.only_failed
        )
        return wire.RestartConnectorResponse()


@dataclass(frozen=True, slots=True)
class Agents:
    """How agents are asked: with TLS where there are certificates to trust them by."""

    certificates: bytes | None = None
    trust: str = "loopback"

    def channel(self, address: str) -> Channel:
        """To the agent at this address. Raises FailedPrecondition for one off loopback that nobody secures."""
        try:
            checked_peer("", address, ca="", certificates=self.certificates, trust=self.trust)
        except InvalidArgument:
            raise FailedPrecondition(
                f"the agent at {address} is not asked in plain text: set gateway.agent_ca, or gateway.trust = mesh",
                reason="NOT_TRUSTED",
                metadata={"agent": address},
            ) from None
        return channel(address, root_certificates=self.certificates)

    async def logs(
        self, address: str, request: agent.StreamLogsRequest, *, seconds: float | None = None
    ) -> AsyncIterator[agent.StreamLogsResponse]:
        """A workload's log from the agent at this address, piece by piece, for at most so long."""
        async with self.channel(address) as to_agent:
            call: Any = AgentServiceStub(to_agent).StreamLogs(request, timeout=seconds)
            async for piece in translated_stream(call, peer=f"the agent at {address}"):
                yield piece


class LogApi(AgentServiceServicer):
    """AgentService.StreamLogs for the workloads of every node; the other methods are for whoever is on the node."""

    def __init__(self, state: State, agents: Agents) -> None:
        self._state = state
        self._agents = agents

    async def StreamLogs(
        self, request: agent.StreamLogsRequest, context: Context
    ) -> AsyncIterator[agent.StreamLogsResponse]:
        """See the proto; answered by the agent of the node that carries the workload."""
        if not request.workload:
            raise InvalidArgument.of("workload", "", "a workload's name, e.g. worker/demo/0")
        if request.tail_lines < 0:
            raise InvalidArgument.of("tail_lines", request.tail_lines, "0 or more")
        address = await self._state.agent_address(request.workload)
        async for piece in self._agents.logs(address, request, seconds=context.time_remaining()):
            yield piece

    async def ListLocalWorkloads(
        self, request: agent.ListLocalWorkloadsRequest, context: Context
    ) -> agent.ListLocalWorkloadsResponse:
        """Refused: WorkloadService has those of all nodes."""
        raise _refused("ListLocalWorkloads", "use WorkloadService.ListWorkloads")

    async def Drain(self, request: agent.DrainRequest, context: Context) -> agent.DrainResponse:
        """Refused: draining is asked of the node's own agent."""
        raise _refused("Drain", "ask the node's own agent")


def _named(cluster: str, name: str) -> tuple[str, str]:
    checked_name("worker_cluster", cluster)
    if not name.strip():
        raise InvalidArgument.of("name", name, "not empty")
    return cluster, name


def _refused(method: str, instead: str) -> PermissionDenied:
    return PermissionDenied(
        f"AgentService.{method} is not offered through the gateway: {instead}", reason="NOT_OFFERED"
    )

"""The gRPC services that the gateway answers itself: connectors, and logs of any node's workloads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from google.protobuf.message import Message

from keelman.api.connect.v1 import connector_service_pb2 as wire
from keelman.api.connect.v1.connector_service_pb2_grpc import ConnectorServiceServicer
from keelman.api.node.v1 import agent_service_pb2 as agent
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceServicer
from keelman.gateway.connector_watch import ConnectorWatch
from keelman.gateway.listing import ConnectorListing
from keelman.gateway.state import State
from keelman.gateway.trust import Agents
from keelman.model.errors import InvalidArgument, PermissionDenied
from keelman.model.rules.names import checked_name, checked_request_id
from keelman.rpc.pages import key_of, page_limit
from keelman.rpc.server import Context
from keelman.workers.rest.connectors import RestConnectors

KEY = "config."


def _named(request: Any) -> tuple[str, str]:
    checked_name("worker_cluster", request.worker_cluster)
    if not request.name.strip():
        raise InvalidArgument.of("name", request.name, "not empty")
    return request.worker_cluster, request.name


def _terms(request: Any) -> dict[str, str]:
    """Returns the conditions of a change: the etag of the configuration to replace, and the request id."""
    return {"etag": request.etag, "request_id": checked_request_id("request_id", request.request_id)}


def _keys(request: wire.UpdateConnectorRequest) -> dict[str, str | None] | None:
    """Returns the keys that an update changes, with None for a key to remove; None for the whole configuration."""
    paths = request.update_mask.paths
    for path in paths:
        if path != "config" and (not path.startswith(KEY) or path == KEY):
            raise InvalidArgument.of("update_mask", path, "config, or one of its keys, e.g. config.tasks.max")
    if not paths or "config" in paths:
        return None
    keys = [path.removeprefix(KEY) for path in paths]
    if others := sorted(request.config.keys() - set(keys)):
        raise InvalidArgument.of("config", ", ".join(others), "keys that update_mask names")
    return {key: request.config.get(key) for key in keys}


def _update(api: RestConnectors, request: wire.UpdateConnectorRequest) -> Awaitable[Any]:
    keys, (cluster, name) = _keys(request), _named(request)
    if keys is None:
        return api.update(cluster, name, request.config, **_terms(request))
    return api.patch(cluster, name, keys, **_terms(request))


def _asking(answer: type[Message], ask: Callable[[RestConnectors, Any], Awaitable[Any]]) -> Any:
    """Returns an RPC that calls the workers of one connector; its answer has the connector if the workers return it."""

    async def method(self: ConnectorApi, request: Any, context: Context) -> Message:
        connector = await ask(self._connectors, request)
        return answer() if connector is None else answer(connector=connector)

    return method


class ConnectorApi(ConnectorServiceServicer):
    """ConnectorService over the workers' REST API."""

    def __init__(self, connectors: RestConnectors, listing: ConnectorListing, watch: ConnectorWatch) -> None:
        self._connectors = connectors
        self._listing = listing
        self._watch = watch

    async def ListConnectors(
        self, request: wire.ListConnectorsRequest, context: Context
    ) -> wire.ListConnectorsResponse:
        """See the proto."""
        page_limit(request.page_size)
        key_of(request.page_token)
        if request.worker_cluster:
            checked_name("worker_cluster", request.worker_cluster)
        return await self._listing.page(request)

    async def WatchConnectors(
        self, request: wire.WatchConnectorsRequest, context: Context
    ) -> AsyncIterator[wire.WatchConnectorsResponse]:
        """See the proto."""
        if request.worker_cluster:
            checked_name("worker_cluster", request.worker_cluster)
        if request.from_revision < 0:
            raise InvalidArgument.of("from_revision", request.from_revision, "0, or the revision of an answer")
        async with aclosing(self._watch.changes(request)) as stream:
            async for changes in stream:
                yield wire.WatchConnectorsResponse(changes=changes)

    async def CreateConnector(
        self, request: wire.CreateConnectorRequest, context: Context
    ) -> wire.CreateConnectorResponse:
        """See the proto."""
        cluster, name = _named(request)
        request_id = checked_request_id("request_id", request.request_id)
        connector = await self._connectors.create(cluster, name, request.config, request_id=request_id)
        return wire.CreateConnectorResponse(connector=connector)

    GetConnector = _asking(wire.GetConnectorResponse, lambda api, r: api.get(*_named(r)))
    UpdateConnector = _asking(wire.UpdateConnectorResponse, _update)
    DeleteConnector = _asking(wire.DeleteConnectorResponse, lambda api, r: api.delete(*_named(r), **_terms(r)))
    PauseConnector = _asking(wire.PauseConnectorResponse, lambda api, r: api.pause(*_named(r), **_terms(r)))
    ResumeConnector = _asking(wire.ResumeConnectorResponse, lambda api, r: api.resume(*_named(r), **_terms(r)))
    StopConnector = _asking(wire.StopConnectorResponse, lambda api, r: api.stop(*_named(r), **_terms(r)))
    RestartConnector = _asking(
        wire.RestartConnectorResponse,
        lambda api, r: api.restart(*_named(r), include_tasks=r.include_tasks, only_failed=r.only_failed, **_terms(r)),
    )


class LogApi(AgentServiceServicer):
    """AgentService.StreamLogs for the workloads of every node; the other methods are only for callers on the node."""

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
        node, address = await self._state.agent_of(request.workload)
        async for piece in self._agents.logs(node, address, request, seconds=context.time_remaining()):
            yield piece

    async def ListLocalWorkloads(
        self, request: agent.ListLocalWorkloadsRequest, context: Context
    ) -> agent.ListLocalWorkloadsResponse:
        """Refuses the call: WorkloadService has the workloads of all nodes."""
        raise _refused("ListLocalWorkloads", "use WorkloadService.ListWorkloads")

    async def Drain(self, request: agent.DrainRequest, context: Context) -> agent.DrainResponse:
        """Refuses the call: only the node's own agent takes it."""
        raise _refused("Drain", "call the node's own agent")


def _refused(method: str, instead: str) -> PermissionDenied:
    return PermissionDenied(
        f"AgentService.{method} is not offered through the gateway: {instead}", reason="NOT_OFFERED"
    )

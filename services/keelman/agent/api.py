"""AgentService: the agent's answers about its own node."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from keelman.agent.supervisor import Supervisor
from keelman.agent.workloads.logs import read_log, read_log_of
from keelman.api.node.v1 import agent_service_pb2 as messages
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceServicer
from keelman.model.errors import InvalidArgument
from keelman.rpc.server import Context
from keelman.runtime.logs.filter import ConnectorLines

DEFAULT_LINES, MAX_LINES = 100, 1_000_000


class AgentApi(AgentServiceServicer):
    """Decodes, calls, encodes."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    async def ListLocalWorkloads(
        self, request: messages.ListLocalWorkloadsRequest, context: Context
    ) -> messages.ListLocalWorkloadsResponse:
        """Returns the workloads of this node. Properties are left out: there may be passwords in them."""
        answer = messages.ListLocalWorkloadsResponse(workloads=self._supervisor.workloads())
        for workload in answer.workloads:
            kind = workload.spec.WhichOneof("kind")
            spec: Any = getattr(workload.spec, kind) if kind else workload.spec
            for name in ("properties", "reports_client_properties"):
                if name in spec.DESCRIPTOR.fields_by_name:
                    spec.ClearField(name)
        return answer

    async def StreamLogs(
        self, request: messages.StreamLogsRequest, context: Context
    ) -> AsyncIterator[messages.StreamLogsResponse]:
        """Streams a workload's log from near its end, and on as it grows."""
        if not 0 <= request.tail_lines <= MAX_LINES:
            raise InvalidArgument.of("tail_lines", request.tail_lines, f"0 to {MAX_LINES}")
        if request.worker_cluster and not request.connector:
            raise InvalidArgument.of("worker_cluster", request.worker_cluster, "empty where no connector is named")
        file = self._supervisor.log_of(request.workload)
        tail, follow = request.tail_lines or DEFAULT_LINES, request.follow
        if request.connector:
            about = ConnectorLines(request.connector, request.worker_cluster)
            pieces = read_log_of(about, file, tail_lines=tail, follow=follow)
        else:
            pieces = read_log(file, tail_lines=tail, follow=follow)
        async for lines in pieces:
            yield messages.StreamLogsResponse(lines=lines)

    async def Drain(self, request: messages.DrainRequest, context: Context) -> messages.DrainResponse:
        """Stops everything; answers when all is stopped."""
        return messages.DrainResponse(killed=await self._supervisor.drain())

"""Looks up the worker clusters of names in requests, for callers whose role covers only some clusters."""

from __future__ import annotations

from keelman.api.connect.v1.connector_definition_service_pb2 import GetConnectorDefinitionRequest
from keelman.api.connect.v1.operation_service_pb2 import GetOperationRequest
from keelman.gateway.calls import Calls
from keelman.model.errors import NotFound
from keelman.rpc.channels import Channel


class Lookups:
    """Lookups in the state service. They raise Unavailable while it cannot be reached."""

    def __init__(self, channel: Channel) -> None:
        self._calls = Calls(channel)

    async def cluster_of_definition(self, name: str) -> str:
        """Returns the worker cluster of a connector definition; "" for an unknown one."""
        try:
            answer = await self._calls.ask(GetConnectorDefinitionRequest(name=name))
        except NotFound:
            return ""
        return str(answer.connector_definition.spec.worker_cluster)

    async def cluster_of_operation(self, name: str) -> str:
        """Returns the worker cluster of an operation's target; "" for a topic, a plugin or an unknown operation."""
        try:
            target = (await self._calls.ask(GetOperationRequest(name=name))).operation.target
        except NotFound:
            return ""
        if target.noun == "connector_definition":
            return await self.cluster_of_definition(target.name)
        return str(target.name) if target.noun == "dedicated_connector" else ""

"""The common base of the tests of dedicated connectors: the verbs in short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.api.connect.v1 import dedicated_connector_pb2, operation_pb2
from keelman.api.connect.v1 import dedicated_connector_service_pb2 as pb
from keelman.api.connect.v1.dedicated_connector_service_pb2_grpc import DedicatedConnectorServiceStub
from keelman.api.connect.v1.operation_service_pb2_grpc import OperationServiceStub
from keelman.model.errors import NotFound
from support.state.topics import Operations

FILE = "org.apache.kafka.connect.file.FileStream"
SUCCEEDED, FAILED = operation_pb2.OPERATION_STATE_SUCCEEDED, operation_pb2.OPERATION_STATE_FAILED


def file_source(file: object, topic: str, **more: str) -> dict[str, str]:
    """The configuration of a source that copies a file's lines."""
    return {"connector.class": f"{FILE}SourceConnector", "file": str(file), "topic": topic, "tasks.max": "1"} | more


class Dedicated(Operations):
    """The dedicated connectors of a state service, also through a gateway."""

    def __init__(self, channel: Any) -> None:
        self.api = DedicatedConnectorServiceStub(channel)
        super().__init__(OperationServiceStub(channel))

    async def create(
        self, name: str, config: Mapping[str, str], bootstrap: str = "", *, count: int = 1, request_id: str = "",
        **spec: Any,
    ) -> Any:  # fmt: skip
        """The answer of a create."""
        new_spec = dedicated_connector_pb2.DedicatedConnectorSpec(
            config=config, capacity=spec.pop("capacity", dedicated_connector_pb2.DedicatedCapacity(count=count)), **spec
        )
        if bootstrap:
            new_spec.external.bootstrap_servers = bootstrap
        request = pb.CreateDedicatedConnectorRequest(name=name, spec=new_spec, request_id=request_id)
        return await self.api.CreateDedicatedConnector(request)

    async def update(
        self, name: str, *, etag: str = "", version: str = "", skip_health_check: bool = False, request_id: str = "",
        **spec: Any,
    ) -> Any:  # fmt: skip
        """The answer of an update of the given fields."""
        request = pb.UpdateDedicatedConnectorRequest(
            name=name, etag=etag, version=version, skip_health_check=skip_health_check, request_id=request_id,
            spec=dedicated_connector_pb2.DedicatedConnectorSpec(**spec),
        )  # fmt: skip
        request.update_mask.paths.extend(spec)
        return await self.api.UpdateDedicatedConnector(request)

    async def pause(self, name: str) -> Any:
        return await self.api.PauseDedicatedConnector(pb.PauseDedicatedConnectorRequest(name=name))

    async def resume(self, name: str) -> Any:
        return await self.api.ResumeDedicatedConnector(pb.ResumeDedicatedConnectorRequest(name=name))

    async def restart(self, name: str, *, only_failed: bool = False) -> Any:
        request = pb.RestartDedicatedConnectorRequest(name=name, only_failed=only_failed)
        return await self.api.RestartDedicatedConnector(request)

    async def delete(self, name: str, *, request_id: str = "") -> Any:
        request = pb.DeleteDedicatedConnectorRequest(name=name, request_id=request_id)
        return await self.api.DeleteDedicatedConnector(request)

    async def get(self, name: str) -> dedicated_connector_pb2.DedicatedConnector:
        request = pb.GetDedicatedConnectorRequest(name=name)
        return (await self.api.GetDedicatedConnector(request)).dedicated_connector

    async def names(self) -> list[str]:
        """The existing connectors."""
        connectors = await self.api.ListDedicatedConnectors(pb.ListDedicatedConnectorsRequest())
        return [dedicated_connector.name for dedicated_connector in connectors.dedicated_connectors]

    async def state(self, name: str) -> str:
        """Its state by name; "GONE" if it does not exist."""
        try:
            state = (await self.get(name)).status.state
        except NotFound:
            return "GONE"
        return dedicated_connector_pb2.DedicatedConnectorState.Name(state).removeprefix("DEDICATED_CONNECTOR_STATE_")

    async def ended(self, answer: Any, *, seconds: float = 300.0) -> operation_pb2.Operation:
        """The operation of an answer at its end."""
        return await super().ended(answer.operation.name, seconds=seconds)

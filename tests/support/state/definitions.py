"""The common base of the tests of connector definitions: the verbs in short, and a state service with a real worker."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from keelman.api.connect.v1 import connector_definition_pb2, operation_pb2, operation_service_pb2
from keelman.api.connect.v1 import connector_definition_service_pb2 as pb
from keelman.model.errors import Unavailable
from keelman.rpc.channels import channel
from support.eventually import eventually
from support.state.service import Agent, Clients
from support.state.topics import Operations
from support.worker.processes import WorkerProcess

RUNNING = connector_definition_pb2.DEFINITION_GOAL_RUNNING
PAUSED = connector_definition_pb2.DEFINITION_GOAL_PAUSED
STOPPED = connector_definition_pb2.DEFINITION_GOAL_STOPPED
ABSENT = connector_definition_pb2.DEFINITION_GOAL_ABSENT
Goal = connector_definition_pb2.DefinitionGoal.ValueType
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


class Definitions(Operations):
    """The connector definitions of one worker cluster, by way of a state service or a gateway."""

    def __init__(self, clients: Clients, cluster: str) -> None:
        super().__init__(clients.operations)
        self.clients, self.cluster = clients, cluster

    async def create(
        self, name: str, config: Mapping[str, str], **spec: Any
    ) -> connector_definition_pb2.ConnectorDefinition:
        new_spec = connector_definition_pb2.ConnectorDefinitionSpec(
            **{"worker_cluster": self.cluster, "config": config} | spec
        )
        request = pb.CreateConnectorDefinitionRequest(name=name, spec=new_spec)
        return (await self.clients.definitions.CreateConnectorDefinition(request)).connector_definition

    async def update(self, name: str, etag: str = "", **spec: Any) -> connector_definition_pb2.ConnectorDefinition:
        new_spec = connector_definition_pb2.ConnectorDefinitionSpec(**spec)
        request = pb.UpdateConnectorDefinitionRequest(name=name, etag=etag, spec=new_spec)
        request.update_mask.paths.extend(spec)
        return (await self.clients.definitions.UpdateConnectorDefinition(request)).connector_definition

    async def get(self, name: str) -> connector_definition_pb2.ConnectorDefinition:
        request = pb.GetConnectorDefinitionRequest(name=name)
        return (await self.clients.definitions.GetConnectorDefinition(request)).connector_definition

    async def begin(self, name: str, goal: Goal = RUNNING, **more: Any) -> str:
        """Requests an operation; returns its name."""
        request = pb.ApplyConnectorDefinitionRequest(name=name, goal=goal, **more)
        return (await self.clients.definitions.ApplyConnectorDefinition(request)).operation.name

    async def apply(self, name: str, goal: Goal = RUNNING) -> operation_pb2.Operation:
        return await self.ended(await self.begin(name, goal))

    async def delete(self, name: str, *, keep_connector: bool = False) -> None:
        request = pb.DeleteConnectorDefinitionRequest(name=name, keep_connector=keep_connector)
        await self.clients.definitions.DeleteConnectorDefinition(request)


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[Clients, Agent]]:
    """Clients of a state service, and a simulated agent that reports each workload at its goal."""
    async with channel(f"127.0.0.1:{port}") as new_channel:
        clients = Clients(new_channel)
        await eventually(lambda: _answers(clients), what="the state service answers")
        async with Agent(clients, "n1") as agent:
            yield clients, agent


async def _answers(clients: Clients) -> bool:
    """Whether the service answers: a channel that found the port closed treats it as closed a moment longer."""
    try:
        await clients.operations.ListOperations(operation_service_pb2.ListOperationsRequest())
    except Unavailable:
        return False
    return True


@contextlib.asynccontextmanager
async def worker_of(
    clients: Clients, agent: Agent, cluster: str, *, bootstrap: str, folder: Path, spark: str
) -> AsyncIterator[WorkerProcess]:
    """A worker cluster of one worker, which runs by the agent's assignment, and reports to the brokers."""
    await clients.create_external("default", bootstrap)
    await clients.create_workers(cluster, count=1)
    await clients.start_workers(cluster)
    workload = f"worker/{cluster}/0"
    await eventually(lambda: workload in agent.workloads, what="the worker is placed")
    spec = agent.workloads[workload].spec.worker
    worker = WorkerProcess(
        folder, bootstrap, cluster, spark, dict(spec.properties), spec.port,
        (f"--worker-cluster={cluster}", f"--reports-bootstrap-servers={bootstrap}"),
    )  # fmt: skip
    await worker.start()
    try:
        yield worker
    finally:
        await worker.end()

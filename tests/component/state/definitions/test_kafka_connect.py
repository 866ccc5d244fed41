"""Connector definitions, applied to a worker of Apache Kafka Connect, which has no ids of requests and no uids."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from keelman.api.connect.v1 import connector_definition_service_pb2 as pb
from keelman.model.cluster import ExternalBrokers, WorkerClusterSpec
from keelman.model.connectors.connector_definition import ConnectorDefinitionSpec
from keelman.model.operation import Operation, OperationState
from keelman.runtime.supervise import Siblings
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.nouns.connector_definition import apply, create, update
from keelman.state.operation_kinds import procedures
from keelman.state.operations.runner import Runner
from keelman.state.replicas.leader import LEADER
from keelman.state.replicas.lease import Lease
from keelman.state.resources.hub import Hub
from keelman.state.resources.store import ResourceStore, subjects_of
from keelman.workers.rest.access import WorkerAccess
from keelman.workers.rest.asking import ClusterRequests
from keelman.workers.rest.client import Rest
from keelman.workers.rest.connectors import RestConnectors
from support.eventually import eventually
from support.servers.connect_worker import ConnectProcess
from support.state.definitions import ABSENT, FILE_SOURCE, PAUSED, RUNNING, STOPPED, Goal
from support.state.stores import open_store

pytestmark = pytest.mark.component
CONFIG = {"connector.class": FILE_SOURCE, "file": "/nowhere/in", "topic": "definitions"}


class Unplanned:
    """A planner without plans."""

    def observed(self, cluster: object) -> int:
        return 0


@asynccontextmanager
async def running(store: ResourceStore, url: str) -> AsyncIterator[None]:
    """The service that runs operations, with workers at a URL."""

    async def urls(cluster: str) -> Sequence[str]:
        return [url]

    commits, access, topics, unused = Hub(), WorkerAccess(), Any, Any
    store.listen(lambda changes: commits.wake(subjects_of(changes)))
    async with Rest(urls, request_seconds=30, access=access) as rest, Siblings() as tasks:
        by_kind = procedures(
            store, notes=topics, connectors=RestConnectors(ClusterRequests(rest, access)), planned=Unplanned(),
            files=unused, buckets=unused,
        )  # fmt: skip
        tasks.start(Runner(store, commits, Lease(store.database, LEADER), by_kind, 60.0).run())
        yield


async def applied(store: ResourceStore, goal: Goal) -> Operation:
    async with store.write() as tx:
        _, operation = apply(tx, pb.ApplyConnectorDefinitionRequest(name="orders", goal=goal))
    await eventually(lambda: store.snapshot.operations[operation.name].has_ended)
    return store.snapshot.operations[operation.name]


async def test_a_connector_of_kafka_connect(bootstrap: str, tmp_path: Path) -> None:
    process = ConnectProcess(tmp_path / "connect", bootstrap, "defined-connect")
    try:
        await process.start()
        async with open_store(str(tmp_path / "state.db")) as store, running(store, process.url):
            async with store.write() as tx:
                broker_clusters.create(tx, "default", ExternalBrokers(bootstrap))
                worker_clusters.create(tx, "demo", WorkerClusterSpec("default", count=1))
                worker_clusters.start(tx, "demo", "")
                create(tx, "orders", ConnectorDefinitionSpec("demo", "orders", CONFIG))
            for goal, states in (
                (PAUSED, {"PAUSED"}),  # it may have no tasks yet
                (RUNNING, {"RUNNING"}),
                (STOPPED, {"STOPPED"}),
                (RUNNING, {"RUNNING"}),
            ):
                operation = await applied(store, goal)
                assert operation.state is OperationState.SUCCEEDED, operation

                async def so(goal: Goal = goal, states: set[str] = states) -> bool:  # tasks may move for a moment
                    status = (await process.ask("GET", "/connectors/orders/status")).json()
                    assert {status["connector"]["state"], *(task["state"] for task in status["tasks"])} == states
                    return len(status["tasks"]) == 1 or goal != RUNNING

                await eventually(so, what=f"it is {states}")
            async with store.write() as tx:
                refused = CONFIG | {"tasks.max": "0"}
                update(tx, "orders", "", lambda spec: ConnectorDefinitionSpec("demo", "orders", refused))
            operation = await applied(store, RUNNING)
            assert operation.error is not None
            assert (operation.state, operation.error.reason) == (OperationState.FAILED, "CONFIG_REFUSED")
            assert "tasks.max" in operation.error.message
            assert (await process.ask("GET", "/connectors/orders/config")).json() == CONFIG | {"name": "orders"}
            assert (await applied(store, ABSENT)).state is OperationState.SUCCEEDED
            assert (await process.ask("GET", "/connectors")).json() == []
    finally:
        await process.end()

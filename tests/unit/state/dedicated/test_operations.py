"""Steps of operations on dedicated connectors, with a database of their own and workers that the test scripts."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from keelman.api.connect.v1 import worker_configuration_service_pb2 as wf
from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_FAILED, Connector
from keelman.model.cluster import ClusterGoal
from keelman.model.connectors.dedicated_connector import Capacity, DedicatedConnectorSpec, WorkerConfigurationRef
from keelman.model.errors import NotFound, Unavailable
from keelman.model.node import Node, NodeState
from keelman.model.operation import Operation, OperationState
from keelman.model.workload import Goal, ProcessState, ResourceLimits, WorkerSpec, Workload, WorkloadStatus
from keelman.state.dedicated.life import create, update
from keelman.state.dedicated.operations import noted, procedure
from keelman.state.dedicated.steps import INITIALIZE, UPDATE_WORKERS, VALIDATE
from keelman.state.definitions.steps import FORMER
from keelman.state.nouns import worker_configuration
from keelman.state.operations.moves import Done, Waiting, begun, done, ended
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Transaction
from support.state.stores import open_store

CONFIG = {"connector.class": "x.Source"}
SPEC = DedicatedConnectorSpec("orders", CONFIG, bootstrap_servers="b:2", capacity=Capacity(1))


class Workers:
    """The REST API of one connector's workers; they answer while `run`."""

    def __init__(self, has: Connector | None) -> None:
        self.run, self.has = False, has

    async def get(self, cluster: str, name: str) -> Connector:
        self._check()
        if self.has is None:
            raise NotFound("no such connector", metadata={"http_status": "404"})
        return self.has

    async def create(self, cluster: str, name: str, config: Mapping[str, str], **more: Any) -> Connector:
        self._check()
        self.has = Connector(name=name, uid="made", config=config)
        return self.has

    async def update(self, cluster: str, name: str, config: Mapping[str, str]) -> Connector:
        self._check()
        assert self.has is not None
        self.has = Connector(name=name, uid=self.has.uid, config=config)
        return self.has

    def _check(self) -> None:
        if not self.run:
            raise Unavailable("no worker answers")


THEIRS = {"key.converter": "com.acme.Key", "value.converter": "com.acme.Value"}


def given_other_converters(tx: Transaction, state: OperationState) -> Operation:
    """The update to a worker configuration with a plugin's converters, after a creation that ended in `state`."""
    content = "\n".join(f"{key}={text}" for key, text in THEIRS.items()).encode()
    worker_configuration.create(tx, wf.CreateWorkerConfigurationRequest(name="w", content=content))
    return updated(tx, state, lambda spec: dataclasses.replace(spec, worker_configuration=WorkerConfigurationRef("w")))


def updated(
    tx: Transaction, state: OperationState, change: Callable[[DedicatedConnectorSpec], DedicatedConnectorSpec]
) -> Operation:
    """An update of a connector whose creation ended in `state`."""
    _, creating = create(tx, "one", SPEC)
    over = ended(creating, state, tx.now)
    noted(tx, over)
    tx.put(over)
    _, operation = update(tx, "one", "", change)
    assert operation is not None
    return operation


def running(tx: Transaction) -> None:
    """Marks its only worker as running."""
    tx.put(Node("n1", "u1", tx.now, tx.now, NodeState.ONLINE, "n1:7000"))
    spec = WorkerSpec("one", "n1", 1, {}, "", kafka_connect=True)
    tx.put(Workload("worker/one/0", "n1", 1, Goal.RUNNING, spec, status=WorkloadStatus(ProcessState.RUNNING, 1)))
    tx.put(tx.snapshot.worker_clusters["one"])


def steps_of(store: ResourceStore, workers: Workers) -> Any:
    planned = SimpleNamespace(observed=lambda cluster: cluster.generation)
    return procedure(store, cast(Any, workers), cast(Any, planned)).steps


@pytest.mark.parametrize("state", [OperationState.FAILED, OperationState.SUCCEEDED])
@pytest.mark.parametrize(
    "has", [None, Connector(name="orders", uid="was", config=CONFIG, state=CONNECTOR_STATE_FAILED)]
)
async def test_an_update_of_workers_that_do_not_run_asks_them_once_they_do(
    tmp_path: Path, state: OperationState, has: Connector | None
) -> None:
    """The workers are stopped because the connector's creation failed, or do not come up with their configuration."""
    workers = Workers(has)
    async with open_store(str(tmp_path / "state.db")) as store:
        async with store.write() as tx:
            operation = given_other_converters(tx, state)
        is_stopped = state is OperationState.FAILED
        assert (store.snapshot.worker_clusters["one"].goal is ClusterGoal.STOPPED) == is_stopped
        steps = steps_of(store, workers)
        request = await steps[INITIALIZE].do(operation)
        assert isinstance(request, Done)
        assert not isinstance(await steps[UPDATE_WORKERS].do(operation), Done), "they are on their way"
        workers.run = True
        async with store.write() as tx:
            running(tx)
        outcome = await steps[UPDATE_WORKERS].do(operation)
    assert isinstance(outcome, Done)
    assert not outcome.skipped
    former = outcome.facts[FORMER]
    assert former == (None if has is None else {"config": CONFIG, "state": "FAILED", "failed": True})
    assert workers.has is not None
    assert workers.has.config == CONFIG | THEIRS
    assert outcome.facts["uid"] == ("made" if has is None else "was")


async def test_what_had_failed_before_its_workers_were_stopped_is_no_failure_of_the_update(tmp_path: Path) -> None:
    """The workers show the old failure until they have started the connector."""
    workers = Workers(Connector(name="orders", uid="was", config=CONFIG, state=CONNECTOR_STATE_FAILED))
    workers.run = True
    async with open_store(str(tmp_path / "state.db")) as store:
        async with store.write() as tx:
            more = Capacity(1, ResourceLimits(memory_bytes=1 << 30))
            operation = updated(tx, OperationState.FAILED, lambda spec: dataclasses.replace(spec, capacity=more))
        steps = steps_of(store, workers)
        await steps[UPDATE_WORKERS].do(operation)
        async with store.write() as tx:
            running(tx)
        outcome = await steps[UPDATE_WORKERS].do(operation)
        assert isinstance(outcome, Done)
        now = store.database.clock()
        watched = begun(done(operation, 1, outcome, 1, now), 2, now)
        assert isinstance(await steps[VALIDATE].do(watched), Waiting)


async def test_workers_that_run_are_asked_before_they_are_changed(tmp_path: Path) -> None:
    workers = Workers(Connector(name="orders", uid="was", config=CONFIG))
    workers.run = True
    async with open_store(str(tmp_path / "state.db")) as store:
        async with store.write() as tx:
            operation = given_other_converters(tx, OperationState.SUCCEEDED)
            running(tx)
        request = await steps_of(store, workers)[INITIALIZE].do(operation)
    assert isinstance(request, Done)
    assert request.facts[FORMER]["config"] == CONFIG

"""Adds workers to a worker cluster or removes one, and gives its dedicated connector the tasks for that number."""

from __future__ import annotations

import dataclasses

from keelman.model.cluster import WorkerCluster
from keelman.model.operation import Operation
from keelman.state.autoscaling.steps import AWAIT_WORKERS, CLUSTER_UID, REASON, SET, noted, scaled
from keelman.state.clusters.goals import saved
from keelman.state.database.failpoints import hit
from keelman.state.dedicated.rules import LOOK_AGAIN_SECONDS
from keelman.state.dedicated.started_workers import START_SECONDS, StartedWorkers
from keelman.state.definitions.applying import ConnectorSteps
from keelman.state.definitions.steps import ASK, CONFIGURE, FORMER
from keelman.state.operations.kinds import OperationProcedure, StepWork
from keelman.state.operations.moves import Done, Outcome, Waiting
from keelman.state.planning.planned import Planned
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Transaction
from keelman.workers.rest.connectors import RestConnectors

NOT_SCALED = "it is not autoscaled any more, or does not run"


def procedure(store: ResourceStore, connectors: RestConnectors, planned: Planned) -> OperationProcedure:
    """Returns the steps of operations that scale."""
    steps = _Steps(store, connectors, planned)
    return OperationProcedure(
        {
            SET: StepWork(steps.set_workers, steps.put_back),
            AWAIT_WORKERS: StepWork(steps.await_workers, seconds=START_SECONDS),
            ASK: StepWork(steps.ask),
            CONFIGURE: StepWork(steps.set_tasks),
        },
        stored=_noted,
    )


def _noted(tx: Transaction, operation: Operation) -> None:
    connector = tx.snapshot.dedicated_connectors.get(operation.target.name)
    if connector is not None and (changed := noted(connector, operation)) != connector:
        tx.put(changed)


class _Steps:
    """The steps."""

    def __init__(self, store: ResourceStore, connectors: RestConnectors, planned: Planned) -> None:
        self.connector = ConnectorSteps(store, connectors)
        self._workers = StartedWorkers(store, planned)
        self._store = store

    async def set_workers(self, operation: Operation) -> Outcome:
        """Stores the new number of workers for the planner."""
        await self._write(operation, back=False)
        hit("scale-written")
        return Done(operation.facts[REASON])

    async def put_back(self, operation: Operation) -> Outcome:
        """Restores the former number of workers."""
        await self._write(operation, back=True)
        return Done()

    async def await_workers(self, operation: Operation) -> Outcome:
        """Waits until that number of workers runs. Raises FailedPrecondition once the reason is known why they do
        not."""
        cluster = self._cluster(operation)
        if cluster is None or cluster.spec.autoscale is None:
            return Done(NOT_SCALED, skipped=True)
        outcome = self._workers.outcome(operation, cluster, operation.begin_time_of(AWAIT_WORKERS))
        if isinstance(outcome, Done) and cluster.status.ready_workers != cluster.wanted_workers:
            return Waiting("its workers are being placed", LOOK_AGAIN_SECONDS)
        return outcome

    async def ask(self, operation: Operation) -> Outcome:
        """Reads the connector's present state. As the first step it also reports why the tasks change."""
        outcome = await self.connector.ask(operation)
        if isinstance(outcome, Done) and operation.steps[0].name == ASK:
            return dataclasses.replace(outcome, message=operation.facts[REASON])
        return outcome

    async def set_tasks(self, operation: Operation) -> Outcome:
        """Configures the connector with the `tasks.max` of the new number of workers."""
        if operation.facts[FORMER] is None:
            return Done("its workers do not have it", skipped=True)
        return await self.connector.configure(operation)

    def _cluster(self, operation: Operation) -> WorkerCluster | None:
        cluster = self._store.snapshot.worker_clusters.get(operation.target.name)
        return cluster if cluster is not None and cluster.uid == operation.facts[CLUSTER_UID] else None

    async def _write(self, operation: Operation, *, back: bool) -> None:
        async with self._store.write() as tx:
            present = tx.snapshot.operations.get(operation.name)
            if present is None or present.has_ended:
                return
            cluster = tx.snapshot.worker_clusters.get(operation.target.name)
            if (changed := scaled(cluster, operation.facts, tx.now, back=back)) is not None:
                saved(tx, changed)

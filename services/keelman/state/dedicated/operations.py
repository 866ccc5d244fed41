"""Brings a dedicated connector to its goal: reaches its brokers, gets its workers to run, and writes its connector by
the REST API of any worker that answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from keelman.kafka.cluster_state import kafka_cluster_id
from keelman.model.cluster import (
    BrokerCluster,
    ClusterGoal,
    ClusterState,
    ExternalBrokers,
    WorkerCluster,
    WorkerClusterSpec,
)
from keelman.model.connectors.connector_definition import DefinitionGoal
from keelman.model.errors import FailedPrecondition, KeelmanError, Unauthenticated, Unavailable
from keelman.model.operation import Operation, OperationKind, OperationState, StepState
from keelman.model.workload import WorkloadKind
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.database.failpoints import hit
from keelman.state.dedicated import steps as names
from keelman.state.dedicated.composition import is_made
from keelman.state.dedicated.policy import NO_POLICY, NamedBrokers, without_detail
from keelman.state.dedicated.rules import LOOK_AGAIN_SECONDS, coded, health, watched
from keelman.state.dedicated.started_workers import START_SECONDS, StartedWorkers
from keelman.state.definitions.applying import DELETED, ConnectorSteps, calling, place_of
from keelman.state.definitions.steps import ASK, AWAIT, CONFIGURE, FORMER, STEER, UID
from keelman.state.operations.kinds import OperationProcedure, StepWork, Work
from keelman.state.operations.moves import Done, Outcome, Waiting
from keelman.state.planning.planned import Planned
from keelman.state.resources.rows import read
from keelman.state.resources.snapshot import DEDICATED_CONNECTOR
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Transaction
from keelman.workers.rest.connectors import RestConnectors

ASK_SECONDS = 5.0
ASK_WITHIN = 60.0
"""How long no worker may answer before anything has been changed."""
REACH_WITHIN = timedelta(seconds=15)
"""How long brokers may be unreachable before the step fails for that."""
HEALTHY_FOR = {OperationKind.UPDATE_CONFIG: timedelta(seconds=3), OperationKind.UPDATE_WORKERS: timedelta(seconds=2)}
SPARE = timedelta(seconds=10)
"""A step with a limit of its own is given up this much later: it finds the cause itself, however late its last look
comes."""
DELETE_SECONDS = 7 * 86400.0
"""A node that is offline may come back with a process on it."""


def procedure(
    store: ResourceStore, connectors: RestConnectors, planned: Planned, named: NamedBrokers = NO_POLICY
) -> OperationProcedure:
    """Returns the steps of operations on dedicated connectors: all kinds of operations share them. `named` judges the
    brokers that their users name."""
    steps = _Steps(store, connectors, planned, named)
    of_connector = steps.connector
    return OperationProcedure(
        {
            names.REACH: StepWork(steps.reach, seconds=(REACH_WITHIN + SPARE).total_seconds()),
            names.START: StepWork(steps.await_workers, seconds=START_SECONDS),
            ASK: StepWork(_coded(of_connector.ask), at_most=ASK_WITHIN),
            CONFIGURE: StepWork(_coded(of_connector.configure)),
            STEER: StepWork(_coded(of_connector.steer)),
            names.INITIALIZE: StepWork(steps.initialize, at_most=ASK_WITHIN),
            names.UPDATE_WORKERS: StepWork(_coded(steps.update_workers), steps.put_workers_back),
            names.UPDATE_CONFIG: StepWork(_coded(of_connector.configure), steps.put_config_back),
            names.VALIDATE: StepWork(_coded(steps.validate)),
            names.FINALIZE: StepWork(steps.finalize),
            names.RESTART: StepWork(steps.restart),
            AWAIT: StepWork(_coded(steps.await_goal)),
            names.STOP: StepWork(steps.stop, seconds=DELETE_SECONDS),
            names.FORGET: StepWork(steps.forget, seconds=DELETE_SECONDS),
        },
        takes_back=lambda operation: operation.kind in names.UPDATES,
        stored=noted,
    )


def noted(tx: Transaction, operation: Operation) -> None:
    """Stores the progress of the operation with its dedicated connector; forgets the connector once its delete has
    succeeded, and stops the workers if it never came up."""
    connector = tx.snapshot.dedicated_connectors.get(operation.target.name)
    if connector is None or connector.operation != operation.name:
        return
    workers = tx.snapshot.worker_clusters.get(connector.name)
    if names.stops_workers(operation) and workers is not None and workers.goal is ClusterGoal.RUNNING:
        worker_clusters.stop(tx, workers.name, "")
    if operation.kind is OperationKind.DELETE_DEDICATED and operation.state is OperationState.SUCCEEDED:
        tx.drop(DEDICATED_CONNECTOR, connector.name)
        _let_go(tx, tx.snapshot.broker_clusters.get(connector.broker_cluster))
    elif (changed := names.noted(connector, operation)) != connector:
        tx.put(changed)


def _let_go(tx: Transaction, brokers: BrokerCluster | None) -> None:
    """Forgets a broker cluster that was created for dedicated connectors, with its last user."""
    if brokers is None or not is_made(brokers) or brokers.goal is not ClusterGoal.RUNNING:
        return
    if not tx.snapshot.users_of(brokers.name) and not tx.snapshot.topics_of(brokers.name):
        broker_clusters.delete(tx, brokers.name, "")


def _coded(work: Work) -> Callable[[Operation], Awaitable[Outcome]]:
    async def done(operation: Operation) -> Outcome:
        try:
            return await work(operation)
        except KeelmanError as error:
            raise coded(error) from None

    return done


class _Steps:
    """The steps."""

    def __init__(self, store: ResourceStore, connectors: RestConnectors, planned: Planned, named: NamedBrokers) -> None:
        self._named = named
        self.connector = ConnectorSteps(store, connectors)
        self._connectors = connectors
        self._workers = StartedWorkers(store, planned)
        self._store = store
        self._healthy: dict[str, tuple[str, datetime]] = {}
        """By connector: the operation that watches it, and since when it has been healthy, uninterrupted."""

    async def reach(self, operation: Operation) -> Outcome:
        """Waits until the brokers answer. Raises FailedPrecondition when they refuse keelman, may not be queried, or
        are unreachable for REACH_WITHIN."""
        cluster = self._cluster(operation)
        brokers = self._store.snapshot.broker_cluster(cluster.spec.broker_cluster)
        if refusal := self._named.refusal(brokers, self._store.snapshot):
            raise FailedPrecondition(refusal, reason="BROKERS_UNREACHABLE")
        try:
            await _ask(brokers)
        except Unauthenticated as error:
            raise FailedPrecondition(error.message, reason="BROKERS_REFUSE") from None
        except Unavailable as error:
            if self._cluster(operation).status.ready_workers:
                return Done("its workers reach them")
            if self._waited(operation, names.REACH) >= REACH_WITHIN:
                raise FailedPrecondition(without_detail(error.message), reason="BROKERS_UNREACHABLE") from None
            return Waiting(without_detail(error.message), LOOK_AGAIN_SECONDS)
        return Done()

    async def await_workers(self, operation: Operation) -> Outcome:
        """Waits until all workers run. Raises FailedPrecondition once the cause is known why they do not."""
        return self._workers.outcome(operation, self._cluster(operation), operation.begin_time_of(names.START))

    async def initialize(self, operation: Operation) -> Outcome:
        """Records the connector's present state if the update changes it; for workers that do not run, once they do."""
        if operation.kind is OperationKind.UPDATE_CONFIG:
            return await self.connector.ask(operation)
        if not operation.facts.get(names.RECONFIGURES):
            return Done()
        cluster = self._store.snapshot.worker_clusters.get(operation.target.name)
        if operation.facts.get(names.WAKES) or (cluster is not None and not cluster.status.ready_workers):
            return Done("no worker of it runs")
        return await self.connector.ask(operation)

    async def update_workers(self, operation: Operation) -> Outcome:
        """Gives the worker cluster its new spec, waits until all workers run with it, and gives them the connector's
        configuration if that changes with them."""
        await self._write_workers(operation, names.WANTED_CLUSTER)
        former, new_selector = (
            operation.facts[key]["node_selector"] for key in (names.FORMER_CLUSTER, names.WANTED_CLUSTER)
        )
        since = operation.begin_time_of(names.UPDATE_WORKERS)
        outcome = self._workers.outcome(operation, self._cluster(operation), since, placed=former != new_selector)
        if isinstance(outcome, Done) and (operation.facts.get(names.RECONFIGURES) or operation.facts.get(names.WAKES)):
            return await self._reconfigure(operation)
        return outcome

    async def _reconfigure(self, operation: Operation) -> Outcome:
        """Gives the workers the connector's configuration; first records the former one, if that is not known yet."""
        noted: Mapping[str, Any] = {}
        if FORMER not in operation.facts:
            refused = await self.connector.ask(operation)
            if not isinstance(refused, Done):
                return refused
            noted = refused.facts
            operation = dataclasses.replace(operation, facts={**operation.facts, **noted})
        outcome = await self.connector.configure(operation)
        if not isinstance(outcome, Done):
            return outcome
        return dataclasses.replace(outcome, facts={**noted, **outcome.facts}, skipped=False)

    async def put_workers_back(self, operation: Operation) -> Outcome:
        """Restores the worker cluster's former spec and waits until all workers run with it, if they ran before."""
        await self._write_workers(operation, names.FORMER_CLUSTER)
        if operation.facts.get(names.WAKES):
            return Done("its workers are stopped again")
        since = operation.back_time or operation.create_time
        outcome = self._workers.outcome(operation, self._cluster(operation), since)
        if isinstance(outcome, Done) and operation.facts.get(names.RECONFIGURES) and FORMER in operation.facts:
            return await self.connector.put_back(operation)
        return outcome

    async def put_config_back(self, operation: Operation) -> Outcome:
        """Restores the connector's former configuration and waits until it runs, if it ran before."""
        outcome = await self.connector.put_back(operation)
        former = operation.facts.get(FORMER)
        was_refused = operation.step(names.UPDATE_CONFIG).state is StepState.FAILED
        if was_refused or former is None or former["failed"] or former["state"] != DefinitionGoal.RUNNING:
            return outcome
        connector_now = await self.connector.look(operation)
        since = self._store.database.clock() - (operation.back_time or operation.create_time)
        if connector_now is None:
            return outcome
        bare = self.connector.without_tasks(operation, connector_now)
        return health(DefinitionGoal.RUNNING, connector_now, since, without_tasks=bare, had_failed=True)

    async def validate(self, operation: Operation) -> Outcome:
        """Waits until the connector has run healthily for HEALTHY_FOR; writes it first if its workers have none. Raises
        FailedPrecondition when it has failed."""
        connector_now = await self.connector.look(operation)
        if connector_now is None:
            if operation.kind is OperationKind.UPDATE_CONFIG:
                raise FailedPrecondition(DELETED, reason="CONNECTOR_GONE")
            await self.connector.write(operation)
            return Waiting("the connector was written", LOOK_AGAIN_SECONDS)
        uid = {UID: connector_now.uid}
        if operation.facts[names.SKIP_HEALTH]:
            return Done("as requested", uid, skipped=True)
        former = operation.facts.get(FORMER)
        had_failed = former is not None and former["failed"]
        waited = self._waited(operation, names.VALIDATE)
        goal = DefinitionGoal(operation.target.goal)
        bare = self.connector.without_tasks(operation, connector_now)
        outcome = health(goal, connector_now, waited, without_tasks=bare, had_failed=had_failed)
        if not isinstance(outcome, Done):
            self._healthy.pop(operation.target.name, None)
            return outcome
        if goal is DefinitionGoal.RUNNING:
            now = self._store.database.clock()
            since = self._healthy.get(operation.target.name)
            if since is None or since[0] != operation.name:
                since = self._healthy[operation.target.name] = operation.name, now
            outcome = watched(outcome, waited, now - since[1], HEALTHY_FOR[operation.kind])
        return dataclasses.replace(outcome, facts=uid) if isinstance(outcome, Done) else outcome

    async def finalize(self, operation: Operation) -> Outcome:
        """Does nothing: with the operation's end its connector has a new version."""
        return Done()

    async def restart(self, operation: Operation) -> Outcome:
        """Restarts the connector and its tasks, or only the failed ones; a connector just written starts anyway."""
        if operation.facts[FORMER] is None:
            return Done("it starts", skipped=True)
        only_failed = operation.facts[names.ONLY_FAILED]
        async with calling():
            await self._connectors.restart(*place_of(operation), include_tasks=True, only_failed=only_failed)
        return Done("failed parts were restarted" if only_failed else "restarted")

    async def await_goal(self, operation: Operation) -> Outcome:
        """Waits until the connector runs, or is paused. Raises FailedPrecondition when it has failed."""
        connector_now = await self.connector.look(operation)
        if connector_now is None:
            raise FailedPrecondition(DELETED, reason="CONNECTOR_GONE")
        is_restart = operation.kind is OperationKind.RESTART
        waited = self._waited(operation, AWAIT)
        goal = DefinitionGoal(operation.target.goal)
        bare = self.connector.without_tasks(operation, connector_now)
        return health(goal, connector_now, waited, without_tasks=bare, had_failed=is_restart)

    async def stop(self, operation: Operation) -> Outcome:
        """Stops the workers, and waits until the last process has ended."""
        name = operation.target.name
        async with self._store.write() as tx:
            cluster = tx.snapshot.worker_clusters.get(name)
            if cluster is not None and cluster.goal is ClusterGoal.RUNNING:
                worker_clusters.stop(tx, name, "")
        hit("dedicated-stopped")
        cluster = self._store.snapshot.worker_clusters.get(name)
        workers = self._store.snapshot.workloads_in(WorkloadKind.WORKER, name)
        if cluster is None or (cluster.status.state is ClusterState.STOPPED and all(w.has_ended for w in workers)):
            return Done()
        return Waiting(cluster.status.message or "its workers are ending", LOOK_AGAIN_SECONDS)

    async def forget(self, operation: Operation) -> Outcome:
        """Deletes the worker cluster, and waits until nothing is left of it but its topics."""
        name = operation.target.name
        async with self._store.write() as tx:
            if name in tx.snapshot.worker_clusters:
                worker_clusters.delete(tx, name, "")
        hit("dedicated-deleted")
        if name in self._store.snapshot.worker_clusters:
            return Waiting("its workers' files are being deleted", LOOK_AGAIN_SECONDS)
        return Done()

    async def _write_workers(self, operation: Operation, fact: str) -> None:
        """Gives the worker cluster a spec, and the goal to run, unless the operation has ended meanwhile."""
        spec, name = read(WorkerClusterSpec, operation.facts[fact]), operation.target.name
        cluster = self._store.snapshot.worker_clusters.get(name)
        if cluster is not None and cluster.goal is ClusterGoal.RUNNING and cluster.spec == spec:
            return
        async with self._store.write() as tx:
            present = tx.snapshot.operations.get(operation.name)
            if present is not None and not present.has_ended:
                worker_clusters.update(tx, name, "", lambda _: spec)
                if operation.facts.get(names.WAKES):
                    worker_clusters.start(tx, name, "")
        hit("dedicated-workers-written")

    def _cluster(self, operation: Operation) -> WorkerCluster:
        cluster = self._store.snapshot.worker_clusters.get(operation.target.name)
        if cluster is None or cluster.goal is not ClusterGoal.RUNNING:
            what = "is gone" if cluster is None else f"is {cluster.status.state}"
            raise FailedPrecondition(f"its worker cluster {what}", reason="WORKER_FAILED")
        return cluster

    def _waited(self, operation: Operation, step: str) -> timedelta:
        return self._store.database.clock() - operation.begin_time_of(step)


async def _ask(brokers: BrokerCluster) -> None:
    """Raises Unavailable while the brokers do not answer, Unauthenticated when they refuse keelman."""
    if isinstance(brokers.spec, ExternalBrokers):
        await kafka_cluster_id(brokers.asked_at(brokers.spec.bootstrap_servers), seconds=ASK_SECONDS)
    elif brokers.status.state is not ClusterState.RUNNING:
        raise Unavailable(f"broker cluster {brokers.name!r} is {brokers.status.state}: {brokers.status.message}")

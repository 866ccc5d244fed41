"""Does users' requests for dedicated connectors: each in one transaction, which begins an operation for the rest."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from typing import Any

from keelman.model.cluster import ClusterGoal, ExternalBrokers
from keelman.model.connectors.dedicated_connector import (
    DedicatedConnector,
    DedicatedConnectorSpec,
    DedicatedGoal,
    DedicatedState,
)
from keelman.model.connectors.worker_configuration import WorkerConfiguration
from keelman.model.errors import FailedPrecondition
from keelman.model.operation import Operation, OperationKind, OperationState, OperationTarget
from keelman.state.clusters import broker_clusters, worker_checks, worker_clusters
from keelman.state.clusters.kafka_names import check_own_names
from keelman.state.dedicated.checks import changes_config, changes_workers, check, check_change, check_version
from keelman.state.dedicated.composition import (
    TOPIC_PREFIX,
    brokers_of,
    configured_by,
    content_of,
    runtime_config,
    tasks_max_of,
    worker_cluster_spec,
)
from keelman.state.dedicated.states import state_of
from keelman.state.dedicated.steps import (
    FORMER_CLUSTER,
    FORMER_GOAL,
    ONLY_FAILED,
    RECONFIGURES,
    SKIP_HEALTH,
    WAKES,
    WANTED_CLUSTER,
    facts_of,
    plan_of,
    specs_of,
)
from keelman.state.operations.begin import begin, check_no_operation
from keelman.state.operations.moves import ended
from keelman.state.plugins.sets import resolved
from keelman.state.resources.checks import check_etag, check_free
from keelman.state.resources.rows import plain
from keelman.state.resources.snapshot import BROKER_CLUSTER, DEDICATED_CONNECTOR, Snapshot
from keelman.state.resources.transaction import Transaction

SUPERSEDED = "its connector is being deleted"


def new_name() -> str:
    """Returns a name for a connector that is created without one."""
    return f"mc-{uuid.uuid4().hex}"


def create(tx: Transaction, name: str, spec: DedicatedConnectorSpec) -> tuple[DedicatedConnector, Operation]:
    """Stores a new dedicated connector with its worker cluster, and starts that cluster."""
    check_free("dedicated connector", name, tx.snapshot.dedicated_connectors)
    uid = str(uuid.uuid4())
    spec = dataclasses.replace(
        spec, connector=spec.connector or name, topic_prefix=spec.topic_prefix or TOPIC_PREFIX,
        topic_suffix=spec.topic_suffix or uid,
    )  # fmt: skip
    spec = _with_revision(tx.snapshot, spec)
    check(name, spec, tx.snapshot)
    brokers = _broker_cluster(tx, spec)
    connector = DedicatedConnector(name, uid, tx.now, tx.now, 1, spec, broker_cluster=brokers)
    workers = worker_clusters.create(
        tx, name, worker_cluster_spec(connector, brokers, configured_by(spec, tx.snapshot))
    )
    connector = dataclasses.replace(connector, tasks_max=tasks_max_of(spec, workers.wanted_workers))
    worker_clusters.start(tx, name, "")
    spec = dataclasses.replace(spec, plugins=workers.spec.plugins, libraries=workers.spec.libraries)
    begun = _begun(tx, dataclasses.replace(connector, spec=spec), OperationKind.CREATE_DEDICATED)
    check_own_names(name, workers.spec, tx.snapshot)  # now its account is known
    return begun


def update(
    tx: Transaction,
    name: str,
    etag: str,
    change: Callable[[DedicatedConnectorSpec], DedicatedConnectorSpec],
    *,
    version: str = "",
    skip_health_check: bool = False,
) -> tuple[DedicatedConnector, Operation | None]:
    """Changes the spec of the dedicated connector by `change`. Returns it with the operation that brings its workers
    there; None if the change does not reach them."""
    connector = _found(tx, name, etag)
    check_version(connector, version)
    spec = _with_revision(tx.snapshot, change(connector.spec))
    if spec == connector.spec:
        return connector, None
    check_change(connector.spec, spec)
    check(name, spec, tx.snapshot)
    for_config, for_workers = changes_config(connector.spec, spec), changes_workers(connector.spec, spec)
    if not (for_config or for_workers):
        return tx.put(dataclasses.replace(connector, spec=spec)), None
    _check_state(tx, connector, *(DedicatedState.RUNNING, DedicatedState.PAUSED, DedicatedState.FAILED))
    if connector.goal is DedicatedGoal.PAUSED and not skip_health_check:
        raise FailedPrecondition(
            f"skip_health_check: dedicated connector {name!r} is paused, so that its health cannot be checked: set it",
            reason="HEALTH_CHECK_OF_PAUSED",
        )
    facts: dict[str, Any] = {SKIP_HEALTH: skip_health_check}
    if for_workers:
        workers = tx.snapshot.worker_cluster(name)
        new_connector = dataclasses.replace(connector, spec=spec)
        configured = configured_by(spec, tx.snapshot)
        new = worker_cluster_spec(new_connector, connector.broker_cluster, configured)
        new = resolved(new, tx.snapshot)
        worker_checks.check(name, new, tx.snapshot)
        spec = dataclasses.replace(spec, plugins=new.plugins, libraries=new.libraries)
        former = runtime_config(connector, configured_by(connector.spec, tx.snapshot))
        facts |= {
            FORMER_CLUSTER: plain(workers.spec), WANTED_CLUSTER: plain(new),
            RECONFIGURES: runtime_config(new_connector, configured) != former,
        }  # fmt: skip
    facts |= specs_of(connector.spec, spec) | {WAKES: _wakes(tx, connector, start=for_config)}
    changed = dataclasses.replace(connector, spec=spec, generation=connector.generation + 1)
    kind = OperationKind.UPDATE_CONFIG if for_config else OperationKind.UPDATE_WORKERS
    return _begun(tx, changed, kind, **facts)


def pause(tx: Transaction, name: str, etag: str) -> tuple[DedicatedConnector, Operation]:
    """Begins to pause the connector."""
    connector = _found(tx, name, etag)
    _check_state(tx, connector, DedicatedState.RUNNING)
    return _begun(
        tx, _aimed(connector, DedicatedGoal.PAUSED), OperationKind.PAUSE, **{FORMER_GOAL: str(connector.goal)}
    )


def resume(tx: Transaction, name: str, etag: str) -> tuple[DedicatedConnector, Operation]:
    """Begins to resume the connector."""
    connector = _found(tx, name, etag)
    _check_state(tx, connector, DedicatedState.PAUSED)
    return _begun(
        tx, _aimed(connector, DedicatedGoal.RUNNING), OperationKind.RESUME, **{FORMER_GOAL: str(connector.goal)}
    )


def restart(tx: Transaction, name: str, etag: str, *, only_failed: bool) -> tuple[DedicatedConnector, Operation]:
    """Begins to restart the connector, or only its failed parts."""
    connector = _found(tx, name, etag)
    _check_state(tx, connector, DedicatedState.RUNNING, DedicatedState.FAILED)
    wakes = _wakes(tx, connector, start=True)
    return _begun(tx, connector, OperationKind.RESTART, **{ONLY_FAILED: only_failed, WAKES: wakes})


def delete(tx: Transaction, name: str, etag: str, *, version: str = "") -> tuple[DedicatedConnector, Operation]:
    """Begins to delete the connector and cancels any other operation on it; a repeated call returns the delete under
    way."""
    connector = _found(tx, name, etag)
    check_version(connector, version)
    under_way = tx.snapshot.unfinished_operation(DEDICATED_CONNECTOR, name)
    if under_way is not None and under_way.kind is OperationKind.DELETE_DEDICATED:
        return connector, under_way
    if under_way is not None:
        stopped = dataclasses.replace(under_way, cancel_reason=under_way.cancel_reason or SUPERSEDED)
        tx.put(ended(stopped, OperationState.CANCELED, tx.now))
    return _begun(tx, _aimed(connector, DedicatedGoal.ABSENT), OperationKind.DELETE_DEDICATED)


def _aimed(connector: DedicatedConnector, goal: DedicatedGoal) -> DedicatedConnector:
    return dataclasses.replace(connector, goal=goal, generation=connector.generation + (goal is not connector.goal))


def _begun(
    tx: Transaction, connector: DedicatedConnector, kind: OperationKind, **facts: Any
) -> tuple[DedicatedConnector, Operation]:
    target = OperationTarget(DEDICATED_CONNECTOR, connector.name, connector.generation, str(connector.goal))
    origin = connector.spec.annotations.origin
    steps = plan_of(kind, wakes=facts.get(WAKES, False))
    facts_of_change = facts_of(connector, configured_by(connector.spec, tx.snapshot), **facts)
    operation = begin(tx, kind, target, steps, facts_of_change, origin=origin)
    return tx.put(dataclasses.replace(connector, operation=operation.name)), operation


def _wakes(tx: Transaction, connector: DedicatedConnector, *, start: bool) -> bool:
    """Returns whether its workers have been stopped, as by a create that failed; with `start` it starts them."""
    if tx.snapshot.worker_cluster(connector.name).goal is ClusterGoal.RUNNING:
        return False
    if start:
        worker_clusters.start(tx, connector.name, "")
    return True


def _check_state(tx: Transaction, connector: DedicatedConnector, *legal: DedicatedState) -> None:
    """Raises FailedPrecondition while an operation is under way, and for a state other than the legal ones."""
    check_no_operation(tx, DEDICATED_CONNECTOR, connector.name)
    state = state_of(connector, None)
    if state not in legal:
        raise FailedPrecondition(
            f"dedicated connector {connector.name!r} is {state}: it has to be {' or '.join(legal)}",
            reason="WRONG_STATE",
            metadata={"state": str(state), "name": connector.name},
        )


def _broker_cluster(tx: Transaction, spec: DedicatedConnectorSpec) -> str:
    """Returns the name of the broker cluster that a spec leads to; creates the cluster if there is none."""
    if spec.broker_cluster:
        return spec.broker_cluster
    brokers = brokers_of(spec)
    for name in tx.snapshot.names(BROKER_CLUSTER):
        broker_cluster = tx.snapshot.broker_clusters[name]
        is_same = isinstance(broker_cluster.spec, ExternalBrokers) and content_of(broker_cluster.spec) == content_of(
            brokers
        )
        if is_same and broker_cluster.goal is ClusterGoal.RUNNING:
            return name
    return broker_clusters.create(tx, f"brokers-{uuid.uuid4().hex[:16]}", brokers).name


def _with_revision(snapshot: Snapshot, spec: DedicatedConnectorSpec) -> DedicatedConnectorSpec:
    """Returns the spec with the newest revision of its worker configuration if it names none: later revisions take an
    update. Raises NotFound."""
    ref = spec.worker_configuration
    if ref is None or ref.revision:
        return spec
    named: WorkerConfiguration = snapshot.named(WorkerConfiguration.NOUN, ref.name)
    newest = dataclasses.replace(ref, revision=named.revision(0).revision)
    return dataclasses.replace(spec, worker_configuration=newest)


def _found(tx: Transaction, name: str, etag: str) -> DedicatedConnector:
    connector = tx.snapshot.dedicated_connector(name)
    check_etag(name, etag, connector.etag)
    return connector

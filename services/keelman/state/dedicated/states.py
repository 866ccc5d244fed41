"""Derives the state of a dedicated connector from its operations, its brokers, its workers and their reports. Pure."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_FAILED, CONNECTOR_STATE_RUNNING, Connector
from keelman.model.connectors.dedicated_connector import (
    DedicatedConnector,
    DedicatedFailure,
    DedicatedGoal,
    DedicatedState,
    code_of,
)
from keelman.model.operation import Operation, OperationKind
from keelman.model.workload import (
    BROKER_PROBLEMS,
    CONSUMER_GROUP_UNREACHABLE,
    SPARK_UNREACHABLE,
    Goal,
    ProcessState,
    Workload,
    WorkloadKind,
    WorkloadStatus,
)
from keelman.state.dedicated.policy import without_detail
from keelman.state.definitions.states import failure_of, has_failed
from keelman.state.resources.snapshot import Snapshot

UNDER_WAY = {
    OperationKind.CREATE_DEDICATED: DedicatedState.CREATING,
    OperationKind.UPDATE_WORKERS: DedicatedState.UPDATING,
    OperationKind.UPDATE_CONFIG: DedicatedState.UPDATING,
    OperationKind.PAUSE: DedicatedState.PAUSING,
    OperationKind.RESUME: DedicatedState.RESUMING,
    OperationKind.RESTART: DedicatedState.RESTARTING,
    OperationKind.DELETE_DEDICATED: DedicatedState.DELETING,
}
BROKERS_AWAY = timedelta(seconds=12)
"""How long brokers may be unreachable: a restart takes some seconds, and external ones are checked every 10 s."""
WORKERS_AWAY = timedelta(seconds=15)
"""How long no worker may be ready: a worker that is restarted or placed elsewhere takes some seconds."""
WORKER_REASONS = {
    "WRONG_TOPIC": "TOPIC_NOT_COMPACTED",
    "UNAUTHENTICATED": "BROKERS_REFUSE",
    "PERMISSION_DENIED": "TOPIC_NOT_ALLOWED",
}
"""Reasons of a worker's failure that its brokers cause."""


@dataclass(frozen=True, slots=True)
class Reported:
    """The last reports of a dedicated connector's workers. `connector`: None if they report nothing of the present
    connector; `is_fresh`: they still report; `in_group`: whether any of them has its place in the group, and so reaches
    its brokers; None if that is unknown."""

    connector: Connector | None = None
    is_fresh: bool = False
    in_group: bool | None = None


NOTHING_REPORTED = Reported()


def state_of(connector: DedicatedConnector, under_way: Operation | None) -> DedicatedState:
    """Returns the connector's state from stored facts alone; `under_way` is its operation that has not ended."""
    if connector.goal is DedicatedGoal.ABSENT:
        return DedicatedState.DELETING
    if under_way is not None and under_way.kind in UNDER_WAY:
        return UNDER_WAY[under_way.kind]
    if connector.failure is not None:
        return DedicatedState.FAILED
    return DedicatedState.PAUSED if connector.goal is DedicatedGoal.PAUSED else DedicatedState.RUNNING


def standing(
    connector: DedicatedConnector, under_way: Operation | None, snapshot: Snapshot, reported: Reported, now: datetime
) -> tuple[DedicatedState, DedicatedFailure | None]:
    """Returns the connector's state from its brokers and workers too, and the reason if it has failed."""
    state = state_of(connector, under_way)
    fresh = reported.connector if reported.is_fresh else None
    if state is DedicatedState.FAILED and (fresh is None or not _runs(fresh)):
        return state, connector.failure
    if state not in (DedicatedState.RUNNING, DedicatedState.FAILED):
        return state, None
    failure_now = (
        _failure_of_brokers(connector, snapshot, reported, now)
        or _failure_of_report(fresh)
        or _failure_of_workers(connector, snapshot, reported, now)
        or _failure_of_report(reported.connector)
    )
    return (DedicatedState.RUNNING, None) if failure_now is None else (DedicatedState.FAILED, failure_now)


def _failure_of_brokers(
    connector: DedicatedConnector, snapshot: Snapshot, reported: Reported, now: datetime
) -> DedicatedFailure | None:
    """Returns the failure if its brokers are unreachable, or unreachable from all its workers. While keelman has never
    reached them, its own findings tell nothing of the workers."""
    workers = snapshot.workloads_in(WorkloadKind.WORKER, connector.name)
    away = brokers_away(workers, snapshot)
    # A place in its group proves that a worker reaches brokers, but not the coordinator of its connector's consumers.
    if away is not None and (away.reason == CONSUMER_GROUP_UNREACHABLE or not reported.in_group):
        return DedicatedFailure(code_of(away.reason), without_detail(away.message))
    cluster = snapshot.broker_clusters.get(connector.broker_cluster)
    if cluster is None or not _lasts(cluster.status.down_since, BROKERS_AWAY, now):
        return None
    if reported.in_group or (reported.in_group is None and not cluster.kafka_cluster_id):
        return None
    message = cluster.status.message or f"no broker of broker cluster {cluster.name!r} runs"
    return DedicatedFailure(code_of("BROKERS_REFUSE" if cluster.seen.refused else "BROKERS_UNREACHABLE"), message)


def _failure_of_report(reported: Connector | None) -> DedicatedFailure | None:
    return failure(reported) if reported is not None and has_failed(reported) else None


def _failure_of_workers(
    connector: DedicatedConnector, snapshot: Snapshot, reported: Reported, now: datetime
) -> DedicatedFailure | None:
    """Returns the failure if none of its workers has a Spark service, one cannot come up without a change by a user, or
    none has been ready for long. On a node that is offline for keelman workers may still run."""
    cluster = snapshot.worker_clusters.get(connector.name)
    if cluster is None:
        return None
    workers = snapshot.workloads_in(WorkloadKind.WORKER, connector.name)
    idle = _out_of_reach(workers, snapshot, {SPARK_UNREACHABLE})
    if idle is not None:
        return DedicatedFailure(code_of(idle.reason), idle.message)
    if not cluster.status.stuck and (reported.in_group or not _lasts(cluster.status.down_since, WORKERS_AWAY, now)):
        return None
    has_no_node = not cluster.status.stuck and (cluster.note or all(snapshot.is_offline(w.node) for w in workers))
    message = cluster.status.message or f"no worker of it is ready: its worker cluster is {cluster.status.state}"
    return DedicatedFailure(code_of("NO_NODE" if has_no_node else workers_reason(workers)), without_detail(message))


def _lasts(since: datetime | None, longest: timedelta, now: datetime) -> bool:
    return since is not None and now - since >= longest


def brokers_away(workers: Sequence[Workload], snapshot: Snapshot) -> WorkloadStatus | None:
    """Returns the status of the first of these workers if they run and none reaches its brokers."""
    return _out_of_reach(workers, snapshot, BROKER_PROBLEMS)


def _out_of_reach(workers: Sequence[Workload], snapshot: Snapshot, reasons: Container[str]) -> WorkloadStatus | None:
    """Returns the first worker's status if all that run report any of these reasons. Reports from offline nodes do not
    count."""
    heard = [w for w in workers if w.goal is Goal.RUNNING and not snapshot.is_offline(w.node)]
    said = [w.current for w in heard if w.current is not None and w.current.reason in reasons]
    return said[0] if said and len(said) == len(heard) else None


def workers_reason(workers: Sequence[Workload]) -> str:
    """Returns the reason why workers do not run, as in an operation's error."""
    for worker in workers:
        if worker.status is not None and worker.is_in(ProcessState.FAILED) and worker.status.reason in WORKER_REASONS:
            return WORKER_REASONS[worker.status.reason]
    return "WORKER_FAILED"


def failure(reported: Connector) -> DedicatedFailure:
    """Returns the failure of a connector that has failed."""
    return DedicatedFailure(code_of(failure_reason(reported)), failure_of(reported))


def failure_reason(reported: Connector) -> str:
    """Returns the reason of the failure, as in an operation's error."""
    return "START_FAILED" if reported.state == CONNECTOR_STATE_FAILED else "TASK_FAILED"


def _runs(reported: Connector) -> bool:
    states = {reported.state, *(task.state for task in reported.tasks)}
    return bool(reported.tasks) and states == {CONNECTOR_STATE_RUNNING}

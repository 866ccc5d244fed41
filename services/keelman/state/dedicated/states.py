"""Where a dedicated connector stands, from its operations, its worker cluster and what its workers report. Pure."""

from __future__ import annotations

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_FAILED, CONNECTOR_STATE_RUNNING, Connector
from keelman.model.connectors.dedicated_connector import (
    DedicatedConnector,
    DedicatedFailure,
    DedicatedGoal,
    DedicatedState,
    code_of,
)
from keelman.model.operation import Operation, OperationKind
from keelman.state.definitions.states import failure_of, has_failed
from keelman.state.snapshot import Snapshot

UNDER_WAY = {
    OperationKind.CREATE_DEDICATED: DedicatedState.CREATING,
    OperationKind.UPDATE_WORKERS: DedicatedState.UPDATING,
    OperationKind.UPDATE_CONFIG: DedicatedState.UPDATING,
    OperationKind.PAUSE: DedicatedState.PAUSING,
    OperationKind.RESUME: DedicatedState.RESUMING,
    OperationKind.RESTART: DedicatedState.RESTARTING,
    OperationKind.DELETE_DEDICATED: DedicatedState.DELETING,
}


def state_of(connector: DedicatedConnector, under_way: Operation | None) -> DedicatedState:
    """Where it stands by what is stored; `under_way` is its operation that has not ended."""
    if connector.goal is DedicatedGoal.ABSENT:
        return DedicatedState.DELETING
    if under_way is not None and under_way.kind in UNDER_WAY:
        return UNDER_WAY[under_way.kind]
    if connector.failure is not None:
        return DedicatedState.FAILED
    return DedicatedState.PAUSED if connector.goal is DedicatedGoal.PAUSED else DedicatedState.RUNNING


def standing(
    connector: DedicatedConnector, under_way: Operation | None, snapshot: Snapshot, reported: Connector | None
) -> tuple[DedicatedState, DedicatedFailure | None]:
    """Where it stands by what its workers report too, and why it has failed. `reported` is None where they report
    nothing of it."""
    state = state_of(connector, under_way)
    if state is DedicatedState.FAILED and reported is not None and _runs(reported):
        return DedicatedState.RUNNING, None  # it came up by itself since
    if state is not DedicatedState.RUNNING:
        return state, connector.failure if state is DedicatedState.FAILED else None
    if reported is not None and has_failed(reported):
        return DedicatedState.FAILED, failure(reported)
    cluster = snapshot.worker_clusters.get(connector.name)
    if cluster is not None and cluster.status.stuck:
        return DedicatedState.FAILED, DedicatedFailure(code_of("WORKER_FAILED"), cluster.status.message)
    return state, None


def failure(reported: Connector) -> DedicatedFailure:
    """Why a connector that has failed has."""
    return DedicatedFailure(code_of(failure_reason(reported)), failure_of(reported))


def failure_reason(reported: Connector) -> str:
    """The reason of that, as in an operation's error."""
    return "START_FAILED" if reported.state == CONNECTOR_STATE_FAILED else "TASK_FAILED"


def _runs(reported: Connector) -> bool:
    states = {reported.state, *(task.state for task in reported.tasks)}
    return bool(reported.tasks) and states == {CONNECTOR_STATE_RUNNING}

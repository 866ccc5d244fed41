"""Translates operations on connectors to this API's form. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.api.connect.v1 import operation_pb2 as pb
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedConnectorSpec
from keelman.gateway.managed_connect.arns import Arn
from keelman.gateway.managed_connect.control import document_of, iso, present
from keelman.model.connectors.dedicated_connector import code_of

UPDATES: Mapping[int, str] = {
    pb.OPERATION_KIND_UPDATE_WORKERS: "UPDATE_WORKER_SETTING",
    pb.OPERATION_KIND_UPDATE_CONFIG: "UPDATE_CONNECTOR_CONFIGURATION",
}
VERBS: Mapping[int, str] = {
    pb.OPERATION_KIND_PAUSE: "PAUSE",
    pb.OPERATION_KIND_RESUME: "RESUME",
    pb.OPERATION_KIND_RESTART: "RESTART",
}
ENDED = (pb.OPERATION_STATE_SUCCEEDED, pb.OPERATION_STATE_FAILED, pb.OPERATION_STATE_CANCELED)
STEP_TYPES = (
    "INITIALIZE_UPDATE", "UPDATE_WORKER_SETTING", "UPDATE_CONNECTOR_CONFIGURATION", "VALIDATE_UPDATE",
    "FINALIZE_UPDATE",
)  # fmt: skip
STEP_STATES: Mapping[int, str] = {
    pb.OPERATION_STEP_STATE_PENDING: "PENDING",
    pb.OPERATION_STEP_STATE_RUNNING: "IN_PROGRESS",
    pb.OPERATION_STEP_STATE_DONE: "COMPLETED",
    pb.OPERATION_STEP_STATE_SKIPPED: "COMPLETED",
    pb.OPERATION_STEP_STATE_FAILED: "FAILED",
    pb.OPERATION_STEP_STATE_UNDONE: "CANCELLED",
}


def is_shown(operation: pb.Operation) -> bool:
    """Tells whether this API shows an operation: it does not show creates and deletes."""
    return operation.kind in UPDATES or operation.kind in VERBS


def type_of(operation: pb.Operation) -> str:
    """Returns the type of an operation."""
    return UPDATES.get(operation.kind) or f"{VERBS[operation.kind]}_CONNECTOR"


def state_of(operation: pb.Operation) -> str:
    """Returns the state of an operation."""
    verb = VERBS.get(operation.kind, "UPDATE")
    match operation.state:
        case pb.OPERATION_STATE_PENDING:
            return "PENDING"
        case pb.OPERATION_STATE_RUNNING:
            return f"{verb}_IN_PROGRESS"
        case pb.OPERATION_STATE_SUCCEEDED:
            return f"{verb}_COMPLETE"
    if verb != "UPDATE":
        is_going_back = operation.state == pb.OPERATION_STATE_ROLLING_BACK
        return f"{verb}_IN_PROGRESS" if is_going_back else f"{verb}_FAILED"
    if operation.state == pb.OPERATION_STATE_ROLLING_BACK:
        return "ROLLBACK_IN_PROGRESS"
    rolled = {pb.OPERATION_ROLLBACK_DONE: "ROLLBACK_COMPLETE", pb.OPERATION_ROLLBACK_FAILED: "ROLLBACK_FAILED"}
    return rolled.get(operation.rollback, "UPDATE_FAILED")


def summary(connector: Arn, operation: pb.Operation) -> dict[str, Any]:
    """Returns an operation as in a list."""
    return present(
        connectorOperationArn=str(connector.of_operation(operation.uid)),
        connectorOperationType=type_of(operation),
        connectorOperationState=state_of(operation),
        creationTime=iso(operation.create_time),
        endTime=iso(operation.end_time) if operation.HasField("end_time") else None,
    )


def description(connector: Arn, operation: pb.Operation) -> dict[str, Any]:
    """Returns the whole description of an operation."""
    return summary(connector, operation) | present(
        connectorArn=str(connector), operationSteps=_steps(operation), errorInfo=_error(operation), **_change(operation)
    )


def _steps(operation: pb.Operation) -> list[dict[str, str]]:
    steps = []
    for step in operation.steps:
        kind = step.name.upper().replace("-", "_")
        if kind in STEP_TYPES:
            is_over = operation.state in ENDED and step.state == pb.OPERATION_STEP_STATE_PENDING
            steps.append({"stepType": kind, "stepState": "CANCELLED" if is_over else STEP_STATES[step.state]})
    return steps


def _error(operation: pb.Operation) -> dict[str, str] | None:
    if operation.HasField("error"):
        return {"code": code_of(operation.error.reason), "message": operation.error.message or operation.error.code}
    if operation.state in (pb.OPERATION_STATE_CANCELED, pb.OPERATION_STATE_FAILED):
        reason = operation.cancel_reason or operation.message or "The last operation failed. Retry the operation"
        return {"code": code_of(""), "message": reason}
    return None


def _change(operation: pb.Operation) -> dict[str, Any]:
    """Returns the changed settings of an update, before and after it."""
    if not operation.HasField("change") or operation.kind not in UPDATES:
        return {}
    both = {"origin": operation.change.former, "target": operation.change.wanted}
    if operation.kind == pb.OPERATION_KIND_UPDATE_CONFIG:
        return {f"{side}ConnectorConfiguration": dict(spec.config) for side, spec in both.items()}
    return {f"{side}WorkerSetting": _settings(spec) for side, spec in both.items()}


def _settings(spec: DedicatedConnectorSpec) -> dict[str, Any]:
    stored = document_of(spec.extra)
    settings: dict[str, Any] = {
        name: stored[name] for name in ("capacity", "plugins", "workerConfiguration") if name in stored
    }
    return settings if "workerConfiguration" in settings else settings | {"useDefaultWorkerConfiguration": True}

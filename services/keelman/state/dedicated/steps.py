"""Names the steps of operations on dedicated connectors, makes their facts and applies their results. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from keelman.model.annotations import Annotations
from keelman.model.connectors.dedicated_connector import (
    FORMER_SPEC,
    UNKNOWN_CODE,
    WANTED_SPEC,
    DedicatedConnector,
    DedicatedConnectorSpec,
    DedicatedFailure,
    DedicatedGoal,
    code_of,
)
from keelman.model.operation import Operation, OperationKind, OperationState
from keelman.state.dedicated.composition import runtime_config
from keelman.state.definitions.steps import ASK, AWAIT, CONFIGURE, STEER, UID
from keelman.state.resources.rows import plain, read

REACH, START = "reach-brokers", "start-workers"
INITIALIZE, VALIDATE, FINALIZE = "initialize-update", "validate-update", "finalize-update"
UPDATE_WORKERS, UPDATE_CONFIG = "update-worker-setting", "update-connector-configuration"
RESTART = "restart-connector"
STOP, FORGET = "stop-workers", "delete-workers"
STEPS: Mapping[OperationKind, tuple[str, ...]] = {
    OperationKind.CREATE_DEDICATED: (REACH, START, ASK, CONFIGURE, STEER, AWAIT),
    OperationKind.UPDATE_WORKERS: (INITIALIZE, UPDATE_WORKERS, VALIDATE, FINALIZE),
    OperationKind.UPDATE_CONFIG: (INITIALIZE, UPDATE_CONFIG, VALIDATE, FINALIZE),
    OperationKind.PAUSE: (ASK, STEER, AWAIT),
    OperationKind.RESUME: (ASK, STEER, AWAIT),
    OperationKind.RESTART: (ASK, CONFIGURE, RESTART, AWAIT),
    OperationKind.DELETE_DEDICATED: (STOP, FORGET),
}
UPDATES = (OperationKind.UPDATE_WORKERS, OperationKind.UPDATE_CONFIG)
WAKING = (REACH, START)
"""Precede the other steps if the workers had been stopped."""
RECONFIGURES = "reconfigures"
"""Fact of an update of workers: their configuration changes too."""
SKIP_HEALTH, ONLY_FAILED, FORMER_GOAL, WAKES = "skip_health_check", "only_failed", "former_goal", "wakes"
"""Facts. WAKES: true if the workers had been stopped, as a failed create leaves them."""
FORMER_CLUSTER, WANTED_CLUSTER = "former_workers", "wanted_workers"
"""Facts of an update: the specs of the worker cluster before and after."""


def facts_of(connector: DedicatedConnector, configured: Mapping[str, str] | None, **more: Any) -> dict[str, Any]:
    """Returns the facts that the steps get: secrets in them are sealed by their keys. `configured`: the properties of
    the connector's worker configuration, None if it names none."""
    facts = {
        "worker_cluster": connector.name, "connector": connector.spec.connector,
        "config": runtime_config(connector, configured), "uid_of_dedicated": connector.uid,
    }  # fmt: skip
    return facts | more


def specs_of(former: DedicatedConnectorSpec, spec: DedicatedConnectorSpec) -> dict[str, Any]:
    """Returns the facts of an update."""
    return {FORMER_SPEC: plain(former), WANTED_SPEC: plain(spec)}


def plan_of(kind: OperationKind, *, wakes: bool) -> tuple[str, ...]:
    """Returns the steps of an operation. `wakes`: its workers had been stopped; an update of workers starts them by
    itself."""
    return (*WAKING, *STEPS[kind]) if wakes and kind is not OperationKind.UPDATE_WORKERS else STEPS[kind]


def stops_workers(operation: Operation) -> bool:
    """Returns whether an operation leaves the workers stopped: workers of a connector that never came up are of no
    use."""
    if not operation.has_ended or operation.state is OperationState.SUCCEEDED:
        return False
    return operation.kind is OperationKind.CREATE_DEDICATED or operation.facts.get(WAKES, False)


def noted(connector: DedicatedConnector, operation: Operation) -> DedicatedConnector:
    """Returns the dedicated connector with the result of its operation."""
    if connector.operation != operation.name or not operation.has_ended:
        return connector
    is_update = operation.kind in UPDATES
    connector = dataclasses.replace(connector, connector_uid=operation.facts.get(UID) or connector.connector_uid)
    if operation.state is OperationState.SUCCEEDED:
        return dataclasses.replace(connector, failure=None, updates=connector.updates + is_update)
    failure = _failure_of(operation)
    if operation.kind is OperationKind.DELETE_DEDICATED:
        return dataclasses.replace(connector, failure=failure)
    former = operation.facts.get(FORMER_GOAL)
    if former is not None and operation.kind in (OperationKind.PAUSE, OperationKind.RESUME):
        return dataclasses.replace(connector, goal=DedicatedGoal(former))
    if is_update:
        former_spec, wanted_spec = (
            read(DedicatedConnectorSpec, operation.facts[name]) for name in (FORMER_SPEC, WANTED_SPEC)
        )
        merged = _kept(former_spec.annotations, wanted_spec.annotations, connector.spec.annotations)
        spec = dataclasses.replace(former_spec, annotations=merged)
        noted_connector = dataclasses.replace(connector, spec=spec, generation=connector.generation + 1)
        return dataclasses.replace(noted_connector, failure=failure) if operation.back_failed else noted_connector
    return dataclasses.replace(connector, failure=failure)


def _kept(former: Annotations, new: Annotations, present: Annotations) -> Annotations:
    """Returns the annotations after an update is rolled back: changes since the update began stay, such as tags; keys
    of `extra` that the update itself changed get their former values."""
    before, requested, now = (dict(annotations.extra or {}) for annotations in (former, new, present))
    for key in before.keys() | requested.keys():
        if before.get(key) != requested.get(key):
            now.pop(key, None)
            if key in before:
                now[key] = before[key]
    return dataclasses.replace(present, extra=now or None)


def _failure_of(operation: Operation) -> DedicatedFailure:
    error = operation.error
    if error is None:
        return DedicatedFailure(UNKNOWN_CODE, operation.message or f"canceled: {operation.cancel_reason}")
    return DedicatedFailure(code_of(error.reason), error.message)

"""Names the steps of operations on connectors, makes their facts and applies their results. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from keelman.model.connectors.connector_definition import AppliedDefinition, ConnectorDefinition, DefinitionGoal
from keelman.model.operation import Operation, OperationState, StepState

ASK, CONFIGURE, STEER, AWAIT = "ask-workers", "write-config", "set-state", "await-state"
DELETE, AWAIT_GONE = "delete-connector", "await-gone"
_HELD = (ASK, STEER, CONFIGURE, AWAIT)
"""The connector is stopped or paused before it gets another configuration, so that nothing runs with that."""
STEPS: Mapping[DefinitionGoal, tuple[str, ...]] = {
    DefinitionGoal.RUNNING: (ASK, CONFIGURE, STEER, AWAIT),
    DefinitionGoal.PAUSED: _HELD,
    DefinitionGoal.STOPPED: _HELD,
    DefinitionGoal.ABSENT: (ASK, DELETE, AWAIT_GONE),
}
FORMER, UID, GONE = "former", "uid", "gone"
"""Facts: the connector as it was before, None if it did not exist; its uid; true if there is nothing to do, because its
worker cluster is gone or never had it."""
_TAKEN = (StepState.DONE, StepState.SKIPPED)


def facts_of(definition: ConnectorDefinition, *, gone: bool) -> dict[str, Any]:
    """Returns the facts that the steps get: secrets in them are sealed by their keys."""
    spec = definition.spec
    facts = {"worker_cluster": spec.worker_cluster, "connector": spec.connector, "config": dict(spec.config)}
    return facts | ({GONE: True} if gone else {})


def takes_back(operation: Operation) -> bool:
    """Returns whether the steps are rolled back: if the operation was canceled, if it changed the configuration of an
    existing connector, or if the configuration of a new one was refused. A new connector that does not come to run
    stays, so that people can look at it."""
    if operation.target.goal == DefinitionGoal.ABSENT or FORMER not in operation.facts:
        return False
    if operation.error is None:
        return True
    is_refused = operation.step(CONFIGURE).state not in _TAKEN
    return is_refused or (operation.facts[FORMER] is not None and not has_config(operation.facts))


def has_config(facts: Mapping[str, Any]) -> bool:
    """Returns whether the connector had the wanted configuration before the operation."""
    former = facts[FORMER]
    return former is not None and same_config(former["config"], facts["config"])


def ran_otherwise(facts: Mapping[str, Any]) -> bool:
    """Returns whether the connector ran, or had failed, and was changed: its reports may be from before the change."""
    former = facts[FORMER]
    return former is not None and (former["failed"] or (former["state"] == "RUNNING" and not has_config(facts)))


def same_config(config: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Returns whether two configurations are equal, but for the name that Connect puts into them."""
    return {k: v for k, v in config.items() if k != "name"} == {k: v for k, v in other.items() if k != "name"}


def noted(definition: ConnectorDefinition, operation: Operation, now: datetime) -> ConnectorDefinition:
    """Returns the definition with the result of its operation."""
    if definition.operation != operation.name or not operation.has_ended:
        return definition
    message = operation.message if operation.state is OperationState.FAILED else ""
    noted_definition = dataclasses.replace(definition, applying=False, message=message)
    return dataclasses.replace(noted_definition, applied=_applied(definition.applied, operation, now))


def _applied(before: AppliedDefinition, operation: Operation, now: datetime) -> AppliedDefinition:
    """Returns the applied definition after an operation: the requested one, unless it was refused or rolled back."""
    if operation.back_time is not None:
        return dataclasses.replace(before, time=now) if before.time is not None else before
    goal, facts = DefinitionGoal(operation.target.goal), operation.facts
    decisive = DELETE if goal is DefinitionGoal.ABSENT else CONFIGURE
    if operation.step(decisive).state not in _TAKEN:
        return before
    if goal is DefinitionGoal.ABSENT:
        return AppliedDefinition(operation.target.generation, now)
    return AppliedDefinition(operation.target.generation, now, goal, facts["config"], facts.get(UID, ""))

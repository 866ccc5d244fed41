"""Operations on connectors: when they are rolled back, and which definition is applied then."""

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest

from keelman.model.connectors.connector_definition import (
    AppliedDefinition,
    ConnectorDefinition,
    ConnectorDefinitionSpec,
    DefinitionGoal,
)
from keelman.model.operation import Failure, Operation, OperationKind, OperationState, OperationTarget, Step, StepState
from keelman.state.definitions.steps import STEPS, noted, takes_back

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD = {"config": {"a": "1", "name": "c"}, "state": "PAUSED"}
SAME = {"config": {"a": "2", "name": "c"}, "state": "PAUSED"}
FAILURE = Failure("INVALID_ARGUMENT", "CONFIG_REFUSED", "a: no")


def operation(goal: str, former: Any, done: int, error: Failure | None = None, **more: Any) -> Operation:
    """An operation with so many steps done."""
    names = STEPS[DefinitionGoal(goal)]
    steps = tuple(Step(name, StepState.DONE if n < done else StepState.PENDING) for n, name in enumerate(names))
    facts: dict[str, Any] = {"worker_cluster": "demo", "connector": "c", "config": {"a": "2"}}
    if done:
        facts |= {"former": former, "uid": "u1"}
    target = OperationTarget("connector_definition", "orders", 2, goal)
    applying = Operation("op-1", "o1", NOW, NOW, OperationKind.APPLY_CONNECTOR, target, steps, facts=facts, error=error)
    return dataclasses.replace(applying, **more)


@pytest.mark.parametrize(
    ("actual_operation", "expected"),
    [
        (operation("RUNNING", None, 0, FAILURE), False),
        (operation("RUNNING", None, 1, FAILURE), True),  # a new connector was refused
        (operation("RUNNING", None, 3, FAILURE), False),  # a new connector does not run: it remains for inspection
        (operation("RUNNING", OLD, 1, FAILURE), True),
        (operation("RUNNING", OLD, 3, FAILURE), True),  # an update does not run: the former definition returns
        (operation("RUNNING", SAME, 3, FAILURE), False),  # only its state was changed
        (operation("STOPPED", OLD, 1, FAILURE), True),
        (operation("ABSENT", OLD, 1, FAILURE), False),
        (operation("RUNNING", None, 3, cancel_reason="no"), True),
        (operation("RUNNING", None, 0, cancel_reason="no"), False),
        (operation("ABSENT", OLD, 2, cancel_reason="no"), False),
    ],
)
def test_takes_back(actual_operation: Operation, *, expected: bool) -> None:
    assert takes_back(actual_operation) is expected


BEFORE = AppliedDefinition(1, NOW, DefinitionGoal.PAUSED, {"a": "1"}, "u1")
AFTER = AppliedDefinition(2, NOW, DefinitionGoal.RUNNING, {"a": "2"}, "u1")
S = OperationState


@pytest.mark.parametrize(
    ("actual_operation", "applied"),
    [
        (operation("RUNNING", OLD, 4, state=S.SUCCEEDED), AFTER),
        (operation("RUNNING", OLD, 1, FAILURE, state=S.FAILED), BEFORE),
        (operation("RUNNING", OLD, 3, FAILURE, state=S.FAILED, back_time=NOW), BEFORE),
        (operation("RUNNING", None, 3, FAILURE, state=S.FAILED), AFTER),
        (operation("RUNNING", OLD, 2, state=S.CANCELED, back_time=NOW), BEFORE),
        (operation("ABSENT", OLD, 3, state=S.SUCCEEDED), AppliedDefinition(2, NOW)),
        (operation("ABSENT", OLD, 1, FAILURE, state=S.FAILED), BEFORE),
    ],
)
def test_what_was_applied(actual_operation: Operation, applied: AppliedDefinition) -> None:
    actual_operation = dataclasses.replace(
        actual_operation, message="a: no" if actual_operation.state is S.FAILED else "canceled: no"
    )
    spec = ConnectorDefinitionSpec("demo", "c", {"a": "2"})
    definition = ConnectorDefinition("orders", "d1", NOW, NOW, 2, spec, applied=BEFORE, operation="op-1", applying=True)
    changed = noted(definition, actual_operation, NOW)
    assert (changed.applied, changed.applying) == (applied, False)
    assert changed.message == ("a: no" if actual_operation.state is S.FAILED else "")
    of_another = dataclasses.replace(definition, operation="op-2")
    assert noted(of_another, actual_operation, NOW) is of_another
    assert noted(definition, dataclasses.replace(actual_operation, state=S.RUNNING), NOW) is definition

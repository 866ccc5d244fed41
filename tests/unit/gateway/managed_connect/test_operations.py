"""Operations in answers: each state, step and error of ours in the words of the wire."""

from typing import Any

import pytest

from keelman.api.connect.v1 import operation_pb2 as pb
from keelman.gateway.managed_connect import arns
from keelman.gateway.managed_connect.arns import Arn
from keelman.gateway.managed_connect.operations import STEP_STATES, description, is_shown, state_of, type_of

CONFIG, WORKERS = pb.OPERATION_KIND_UPDATE_CONFIG, pb.OPERATION_KIND_UPDATE_WORKERS
PAUSE, RESUME, RESTART = pb.OPERATION_KIND_PAUSE, pb.OPERATION_KIND_RESUME, pb.OPERATION_KIND_RESTART
TYPES = {
    CONFIG: "UPDATE_CONNECTOR_CONFIGURATION",
    WORKERS: "UPDATE_WORKER_SETTING",
    PAUSE: "PAUSE_CONNECTOR",
    RESUME: "RESUME_CONNECTOR",
    RESTART: "RESTART_CONNECTOR",
}
PENDING, RUNNING = pb.OPERATION_STATE_PENDING, pb.OPERATION_STATE_RUNNING
SUCCEEDED, FAILED = pb.OPERATION_STATE_SUCCEEDED, pb.OPERATION_STATE_FAILED
GOES_BACK, CANCELED = pb.OPERATION_STATE_ROLLING_BACK, pb.OPERATION_STATE_CANCELED
NOT_TAKEN_BACK, BEING_TAKEN_BACK = pb.OPERATION_ROLLBACK_UNSPECIFIED, pb.OPERATION_ROLLBACK_RUNNING
TAKEN_BACK, STUCK = pb.OPERATION_ROLLBACK_DONE, pb.OPERATION_ROLLBACK_FAILED
CONNECTOR = Arn(arns.CONNECTOR, "us-east-1", "123450006789", "c", "abc12345-abcd-4444-a8b9-123456f513ed")


def operation(kind: Any = CONFIG, state: Any = FAILED, **more: Any) -> pb.Operation:
    return pb.Operation(uid="0f1e2d3c-0000-4000-8000-000000000001", kind=kind, state=state, **more)


def steps(**states: Any) -> list[pb.OperationStep]:
    """Steps by their names, with _ for -."""
    return [pb.OperationStep(name=name.replace("_", "-"), state=state) for name, state in states.items()]


def told(actual_operation: pb.Operation) -> dict[str, Any]:
    return description(CONNECTOR, actual_operation)


@pytest.mark.parametrize("kind", [CONFIG, WORKERS])
@pytest.mark.parametrize(
    ("state", "rollback", "wire"),
    [
        (PENDING, NOT_TAKEN_BACK, "PENDING"),
        (RUNNING, NOT_TAKEN_BACK, "UPDATE_IN_PROGRESS"),
        (SUCCEEDED, NOT_TAKEN_BACK, "UPDATE_COMPLETE"),
        (GOES_BACK, BEING_TAKEN_BACK, "ROLLBACK_IN_PROGRESS"),
        (GOES_BACK, NOT_TAKEN_BACK, "ROLLBACK_IN_PROGRESS"),
        (FAILED, TAKEN_BACK, "ROLLBACK_COMPLETE"),
        (FAILED, STUCK, "ROLLBACK_FAILED"),
        (FAILED, NOT_TAKEN_BACK, "UPDATE_FAILED"),
        (CANCELED, TAKEN_BACK, "ROLLBACK_COMPLETE"),
        (CANCELED, STUCK, "ROLLBACK_FAILED"),
        (CANCELED, NOT_TAKEN_BACK, "UPDATE_FAILED"),
    ],
)
def test_states_of_updates(kind: Any, state: Any, rollback: Any, wire: str) -> None:
    assert state_of(operation(kind, state, rollback=rollback)) == wire


@pytest.mark.parametrize(("kind", "verb"), [(PAUSE, "PAUSE"), (RESUME, "RESUME"), (RESTART, "RESTART")])
@pytest.mark.parametrize(
    ("state", "wire"),
    [
        (PENDING, "PENDING"),
        (RUNNING, "{}_IN_PROGRESS"),
        (SUCCEEDED, "{}_COMPLETE"),
        (GOES_BACK, "{}_IN_PROGRESS"),
        (FAILED, "{}_FAILED"),
        (CANCELED, "{}_FAILED"),
    ],
)
def test_states_of_verbs(kind: Any, verb: str, state: Any, wire: str) -> None:
    assert state_of(operation(kind, state)) == wire.format(verb)


def test_every_state_has_a_word() -> None:
    for state in pb.OperationState.values()[1:]:
        for kind in TYPES:
            assert state_of(operation(kind, state))
    assert set(STEP_STATES) == set(pb.OperationStepState.values()[1:])


@pytest.mark.parametrize("kind", pb.OperationKind.values())
def test_which_operations_are_shown_and_what_they_do(kind: Any) -> None:
    assert is_shown(operation(kind)) == (kind in TYPES)
    if kind in TYPES:
        assert type_of(operation(kind)) == TYPES[kind]


STEP = pb.OperationStepState
BEGUN = {
    STEP.OPERATION_STEP_STATE_RUNNING: "IN_PROGRESS",
    STEP.OPERATION_STEP_STATE_DONE: "COMPLETED",
    STEP.OPERATION_STEP_STATE_SKIPPED: "COMPLETED",
    STEP.OPERATION_STEP_STATE_FAILED: "FAILED",
    STEP.OPERATION_STEP_STATE_UNDONE: "CANCELLED",
}


@pytest.mark.parametrize("state", [PENDING, RUNNING, GOES_BACK, SUCCEEDED, FAILED, CANCELED])
def test_steps(state: Any) -> None:
    for ours, wire in BEGUN.items():
        operation_steps = told(operation(state=state, steps=steps(validate_update=ours)))["operationSteps"]
        assert operation_steps == [{"stepType": "VALIDATE_UPDATE", "stepState": wire}]
    waiting = told(operation(state=state, steps=steps(finalize_update=STEP.OPERATION_STEP_STATE_PENDING)))
    is_over = state in (SUCCEEDED, FAILED, CANCELED)
    assert waiting["operationSteps"][0]["stepState"] == ("CANCELLED" if is_over else "PENDING")


def test_steps_of_an_update_that_was_taken_back_and_none_of_those_that_the_wire_does_not_know() -> None:
    done, failed = STEP.OPERATION_STEP_STATE_DONE, STEP.OPERATION_STEP_STATE_FAILED
    undone, pending = STEP.OPERATION_STEP_STATE_UNDONE, STEP.OPERATION_STEP_STATE_PENDING
    of_update = steps(
        reach_brokers=done, start_workers=done, initialize_update=done, update_connector_configuration=undone,
        validate_update=failed, finalize_update=pending,
    )  # fmt: skip
    assert [
        (operation_step["stepType"], operation_step["stepState"])
        for operation_step in told(operation(steps=of_update))["operationSteps"]
    ] == [
        ("INITIALIZE_UPDATE", "COMPLETED"),
        ("UPDATE_CONNECTOR_CONFIGURATION", "CANCELLED"),
        ("VALIDATE_UPDATE", "FAILED"),
        ("FINALIZE_UPDATE", "CANCELLED"),
    ]
    of_workers = told(operation(WORKERS, RUNNING, steps=steps(update_worker_setting=done)))["operationSteps"]
    assert of_workers == [{"stepType": "UPDATE_WORKER_SETTING", "stepState": "COMPLETED"}]
    of_pause = told(operation(PAUSE, SUCCEEDED, steps=steps(ask_workers=done, await_state=done)))
    assert not of_pause.get("operationSteps")


NO_CAUSE = "The last operation failed. Retry the operation"


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        ({"error": pb.OperationError(code="FAILED_PRECONDITION", reason="TASK_FAILED", message="task 0 failed: no")},
         "ConnectorError.TaskFailed", "task 0 failed: no"),
        ({"error": pb.OperationError(code="UNAVAILABLE", reason="BROKERS_UNREACHABLE")},
         "ClusterError.BrokerUnreachable", "UNAVAILABLE"),
        ({"error": pb.OperationError(code="INTERNAL", message="why"), "message": "other"},
         "UnknownError.Unknown", "why"),
        ({"state": CANCELED, "cancel_reason": "its connector is being deleted", "message": "other"},
         "UnknownError.Unknown", "its connector is being deleted"),
        ({"message": "it waited for too long"}, "UnknownError.Unknown", "it waited for too long"),
        ({}, "UnknownError.Unknown", NO_CAUSE),
        ({"state": CANCELED}, "UnknownError.Unknown", NO_CAUSE),
        ({"state": GOES_BACK, "error": pb.OperationError(code="X", reason="NO_NODE", message="no node")},
         "CapacityError.NoNodeAvailable", "no node"),
    ],
)  # fmt: skip
def test_the_cause_of_one_that_failed(more: dict[str, Any], code: str, message: str) -> None:
    assert told(operation(**more))["errorInfo"] == {"code": code, "message": message}


@pytest.mark.parametrize("state", [PENDING, RUNNING, SUCCEEDED])
def test_one_that_did_not_fail_has_no_cause(state: Any) -> None:
    assert "errorInfo" not in told(operation(state=state, message="waits for its workers"))

"""What each state of a connector tells an operation that waits for it."""

from datetime import timedelta

import pytest

from keelman.api.connect.v1.connector_pb2 import Connector, ConnectorState, ConnectorTask
from keelman.model.connectors.connector_definition import DefinitionGoal
from keelman.model.errors import FailedPrecondition
from keelman.state.definitions.states import awaited
from keelman.state.operations.moves import Done, Waiting


def connector(state: str, *tasks: str, trace: str = "") -> Connector:
    connector_tasks = [
        ConnectorTask(task=n, state=ConnectorState.Value(f"CONNECTOR_STATE_{task}"), trace=trace)
        for n, task in enumerate(tasks)
    ]
    return Connector(
        name="c", state=ConnectorState.Value(f"CONNECTOR_STATE_{state}"), tasks=connector_tasks, trace=trace
    )


@pytest.mark.parametrize(
    ("goal", "actual_connector", "seconds", "was_running", "expected"),
    [
        ("RUNNING", connector("RUNNING", "RUNNING", "RUNNING"), 0, False, None),
        ("RUNNING", connector("RUNNING", "RUNNING"), 0, True, "its state may be that of before"),
        ("RUNNING", connector("RUNNING", "RUNNING"), 3, True, None),
        ("RUNNING", connector("RUNNING", "UNASSIGNED"), 9, False, "task 0 is UNASSIGNED"),
        ("RUNNING", connector("RUNNING", "RUNNING", "RESTARTING"), 9, False, "task 1 is RESTARTING"),
        ("RUNNING", connector("UNASSIGNED"), 9, False, "the connector is UNASSIGNED"),
        ("RUNNING", connector("RUNNING"), 1, False, "the connector has no tasks yet"),
        ("RUNNING", connector("RUNNING"), 5, False, None),
        ("RUNNING", connector("RUNNING", "FAILED"), 1, True, "task 0 is FAILED"),
        ("PAUSED", connector("PAUSED", "PAUSED", "FAILED"), 0, True, None),
        ("PAUSED", connector("PAUSED", "RUNNING"), 9, True, "task 0 has not ended yet"),
        ("STOPPED", connector("STOPPED"), 0, True, None),
        ("STOPPED", connector("STOPPED", "RUNNING"), 9, True, "task 0 has not ended yet"),
        ("STOPPED", connector("FAILED"), 0, True, "the connector is FAILED"),
    ],
)
def test_awaited(
    goal: str, actual_connector: Connector, seconds: int, *, was_running: bool, expected: str | None
) -> None:
    waited = timedelta(seconds=seconds)
    outcome = awaited(DefinitionGoal(goal), actual_connector, waited, without_tasks=waited, was_running=was_running)
    assert isinstance(outcome, Done) if expected is None else outcome == Waiting(expected, 0.3)


@pytest.mark.parametrize(
    ("actual_connector", "message"),
    [
        (connector("FAILED", trace="no such table\n\tat x"), "the connector failed: no such table"),
        (connector("RUNNING", "FAILED", trace="\nno such file: /x\nat y"), "task 0 failed: no such file: /x"),
        (connector("RUNNING", "FAILED"), "task 0 failed: its worker gave no reason"),
    ],
)
def test_one_that_has_failed_is_told_by_the_first_line_of_its_trace(actual_connector: Connector, message: str) -> None:
    for was_running, seconds in ((False, 0), (True, 3)):
        waited = timedelta(seconds=seconds)
        with pytest.raises(FailedPrecondition) as failed:
            awaited(DefinitionGoal.RUNNING, actual_connector, waited, without_tasks=waited, was_running=was_running)
        assert (failed.value.message, failed.value.reason) == (message, "CONNECTOR_FAILED")


def test_one_that_came_up_late_has_its_time_to_get_tasks() -> None:
    late = timedelta(seconds=60)
    outcome = awaited(
        DefinitionGoal.RUNNING, connector("RUNNING"), late, without_tasks=timedelta(seconds=1), was_running=False
    )
    assert outcome == Waiting("the connector has no tasks yet", 0.3)

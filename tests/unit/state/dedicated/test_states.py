"""Where a dedicated connector stands, by what is stored and by what is reported; what becomes of it at an operation's
end."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from keelman.api.connect.v1.connector_pb2 import (
    CONNECTOR_STATE_FAILED,
    CONNECTOR_STATE_RUNNING,
    Connector,
    ConnectorTask,
)
from keelman.model.cluster import Annotations
from keelman.model.connectors.dedicated_connector import (
    DedicatedConnector,
    DedicatedConnectorSpec,
    DedicatedFailure,
    DedicatedGoal,
    DedicatedState,
)
from keelman.model.operation import Failure, Operation, OperationKind, OperationState, Target
from keelman.state.dedicated.states import UNDER_WAY, standing
from keelman.state.dedicated.steps import noted, specs_of
from keelman.state.snapshot import Snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD, NEW = DedicatedConnectorSpec("c", {"a": "1"}), DedicatedConnectorSpec("c", {"a": "2"})
ONE = DedicatedConnector("one", "u", NOW, NOW, 2, NEW, operation="op-1")
BROKEN = DedicatedFailure("ConnectorError.TaskFailed", "no")
S = DedicatedState


def reported(state: int) -> Connector:
    task = ConnectorTask(task=0, state=state, trace="bad\nmore")  # type: ignore[arg-type]
    return Connector(name="c", state=CONNECTOR_STATE_RUNNING, tasks=[task])


def operation(kind: OperationKind, **more: Any) -> Operation:
    return Operation("op-1", "o", NOW, NOW, kind, Target("dedicated_connector", "one"), (), **more)


@pytest.mark.parametrize(
    ("connector", "seen", "expected"),
    [
        (ONE, None, S.RUNNING),
        (ONE, reported(CONNECTOR_STATE_RUNNING), S.RUNNING),
        (ONE, reported(CONNECTOR_STATE_FAILED), S.FAILED),
        (replace(ONE, failure=BROKEN), None, S.FAILED),
        (replace(ONE, failure=BROKEN), reported(CONNECTOR_STATE_RUNNING), S.RUNNING),
        (replace(ONE, goal=DedicatedGoal.PAUSED), reported(CONNECTOR_STATE_FAILED), S.PAUSED),
        (replace(ONE, goal=DedicatedGoal.ABSENT, failure=BROKEN), None, S.DELETING),
    ],
)
def test_without_an_operation(connector: DedicatedConnector, seen: Connector | None, expected: DedicatedState) -> None:
    state, failure = standing(connector, None, Snapshot(), seen)
    assert (state, failure is not None) == (expected, expected is S.FAILED)


def test_the_cause_is_what_was_reported() -> None:
    _, failure = standing(ONE, None, Snapshot(), reported(CONNECTOR_STATE_FAILED))
    assert failure == DedicatedFailure("ConnectorError.TaskFailed", "task 0 failed: bad")


@pytest.mark.parametrize("kind", UNDER_WAY)
def test_never_running_while_something_is_under_way(kind: OperationKind) -> None:
    state, failure = standing(ONE, operation(kind), Snapshot(), reported(CONNECTOR_STATE_RUNNING))
    assert (state, failure) == (UNDER_WAY[kind], None)


FACTS = specs_of(OLD, NEW)
ERROR = Failure("FAILED_PRECONDITION", "TASK_FAILED", "no")
OVER = OperationState


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (operation(OperationKind.UPDATE_CONFIG, facts=FACTS), ONE),  # not ended
        (operation(OperationKind.UPDATE_CONFIG, facts=FACTS, state=OVER.SUCCEEDED), replace(ONE, updates=1)),
        (operation(OperationKind.UPDATE_CONFIG, facts=FACTS, state=OVER.FAILED, error=ERROR),
         replace(ONE, spec=OLD, generation=3)),
        (operation(OperationKind.UPDATE_CONFIG, facts=FACTS, state=OVER.CANCELED, cancel_reason="x"),
         replace(ONE, spec=OLD, generation=3)),
        (operation(OperationKind.UPDATE_WORKERS, facts=FACTS, state=OVER.FAILED, error=ERROR, back_failed=True),
         replace(ONE, spec=OLD, generation=3, failure=BROKEN)),
        (operation(OperationKind.CREATE_DEDICATED, state=OVER.FAILED, error=ERROR), replace(ONE, failure=BROKEN)),
        (operation(OperationKind.CREATE_DEDICATED, state=OVER.SUCCEEDED, facts={"uid": "u9"}),
         replace(ONE, connector_uid="u9")),
        (operation(OperationKind.PAUSE, state=OVER.FAILED, error=ERROR, facts={"former_goal": "PAUSED"}),
         replace(ONE, goal=DedicatedGoal.PAUSED)),
        (replace(operation(OperationKind.CREATE_DEDICATED, state=OVER.FAILED, error=ERROR), name="other"), ONE),
    ],
)  # fmt: skip
def test_what_becomes_of_it(ended: Operation, expected: DedicatedConnector) -> None:
    assert noted(ONE, ended) == expected


def test_tags_of_meanwhile_outlive_an_update_that_is_taken_back() -> None:
    def said(document: str, tag: str, label: str) -> Annotations:
        return Annotations(labels={"team": label}, extra={"document": document, "tags": {"team": tag}})

    former, wanted = (
        replace(OLD, annotations=said("old", "red", "a")),
        replace(NEW, annotations=said("new", "red", "a")),
    )
    now = replace(ONE, spec=replace(wanted, annotations=said("new", "blue", "b")))
    ended = operation(OperationKind.UPDATE_CONFIG, facts=specs_of(former, wanted), state=OVER.FAILED, error=ERROR)
    assert noted(now, ended).spec == replace(former, annotations=said("old", "blue", "b"))

"""The next move of an operation."""

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from keelman.model.errors import InvalidArgument
from keelman.model.operation import Operation, OperationKind, OperationState, OperationTarget, Step, StepState
from keelman.state.operations.moves import (
    Begin,
    Do,
    Done,
    End,
    Move,
    TurnBack,
    Undo,
    begun,
    done,
    ended,
    failed,
    next_move,
    not_undone,
    turned_back,
    undone,
    waits,
)
from keelman.state.operations.retention import to_forget

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REFUSED = InvalidArgument("tasks.max: 0 is not legal", reason="CONFIG_REFUSED")


def operation(*states: StepState, **more: object) -> Operation:
    steps = tuple(
        Step(f"step-{n}", state, start_time=None if state is StepState.PENDING else NOW)
        for n, state in enumerate(states)
    )
    target = OperationTarget("connector_definition", "orders", 1, "RUNNING")
    made_operation = Operation("op-1", "u1", NOW, NOW, OperationKind.APPLY_CONNECTOR, target, steps)
    return dataclasses.replace(made_operation, **more)  # type: ignore[arg-type]


P, R, D, F, S, U = (StepState(s) for s in ("PENDING", "RUNNING", "DONE", "FAILED", "SKIPPED", "UNDONE"))
BACK = OperationState.ROLLING_BACK


@pytest.mark.parametrize(
    ("present", "move"),
    [
        (operation(P, P), Begin(0)),
        (operation(R, P), Do(0)),
        (operation(D, P), Begin(1)),
        (operation(S, R), Do(1)),
        (operation(D, S), End(OperationState.SUCCEEDED)),
        (operation(D, R, P, cancel_reason="no"), TurnBack()),
        (operation(P, cancel_reason="no"), TurnBack()),
        (failed(operation(D, R, P), 1, REFUSED, 1, NOW), TurnBack()),
        (operation(D, R, P, state=BACK), Undo(1)),
        (operation(D, S, P, state=BACK), Undo(0)),
        (operation(S, P, state=BACK, cancel_reason="no"), End(OperationState.CANCELED)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_next_move(present: Operation, move: Move) -> None:
    assert next_move(present) == move


def story(changed: Operation, *changes: Callable[[Operation], Operation]) -> Operation:
    for change in changes:
        changed = change(changed)
    return changed


def test_a_failed_operation_is_taken_back_the_last_step_first() -> None:
    present = story(
        operation(P, P, P),
        lambda o: begun(o, 0, NOW),
        lambda o: done(o, 0, Done("found", {"former": {"a": "b"}}), 2, NOW),
        lambda o: begun(o, 1, NOW),
        lambda o: waits(o, 1, "rebalance", 3),
        lambda o: failed(o, 1, REFUSED, 4, NOW),
    )
    assert (present.state, present.message, present.facts) == (
        OperationState.RUNNING,
        REFUSED.message,
        {"former": {"a": "b"}},
    )
    assert present.error is not None
    assert (present.error.code, present.error.reason) == ("INVALID_ARGUMENT", "CONFIG_REFUSED")
    assert [(s.state, s.attempts, s.message) for s in present.steps] == [
        (D, 2, "found"), (F, 4, REFUSED.message), (P, 0, ""),
    ]  # fmt: skip
    present = turned_back(present, NOW, takes_back=True)
    assert (next_move(present), present.back_time) == (Undo(1), NOW)
    present = undone(present, 1, "", NOW)
    assert next_move(present) == Undo(0)
    present = undone(present, 0, "put back", NOW)
    assert next_move(present) == End(OperationState.FAILED)
    present = ended(present, OperationState.FAILED, NOW)
    assert [s.state for s in present.steps] == [U, F, P]
    assert (present.has_ended, present.message, present.end_time) == (True, REFUSED.message, NOW)


def test_what_cannot_be_taken_back_is_said() -> None:
    present = operation(D, F, P, state=BACK, cancel_reason="no")
    present = not_undone(present, 1, "cluster away", NOW)
    assert present.error is not None
    assert present.error.reason == "NOT_TAKEN_BACK"
    assert present.message == "step-1 could not be taken back: cluster away"
    present = not_undone(present, 0, "cluster away", NOW)
    assert present.message.count("could not be taken back") == 2
    assert next_move(present) == End(OperationState.FAILED)


def test_an_operation_that_is_not_taken_back_ends_as_it_is() -> None:
    failed = turned_back(operation(D, R, cancel_reason="too slow"), NOW, takes_back=False)
    assert (failed.state, failed.message) == (OperationState.CANCELED, "canceled: too slow")
    assert [s.state for s in failed.steps] == [D, R]


def test_the_same_wait_changes_nothing() -> None:
    waiting = waits(operation(R), 0, "rebalance", 1)
    assert waits(waiting, 0, "rebalance", 2) is waiting


def test_what_is_forgotten() -> None:
    def one(name: str, noun: str, age: int | None) -> Operation:
        end = None if age is None else NOW - timedelta(seconds=age)
        state = OperationState.RUNNING if age is None else OperationState.SUCCEEDED
        return operation(D, name=name, target=OperationTarget(noun, "x"), end_time=end, state=state)

    remaining = [
        one("a", "topic", 1),
        one("b", "topic", 2),
        one("c", "topic", None),
        one("d", "connector_definition", 50),
    ]
    gone = [one("e", "topic", 3), one("f", "connector_definition", 101)]
    assert to_forget([*remaining, *gone], NOW, 100, 2) == ["e", "f"]

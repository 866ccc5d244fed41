"""What comes next in an operation."""

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from keelman.model.errors import InvalidArgument
from keelman.model.operation import Operation, OperationKind, OperationState, Step, StepState, Target
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
    target = Target("connector_definition", "orders", 1, "RUNNING")
    made = Operation("op-1", "u1", NOW, NOW, OperationKind.APPLY_CONNECTOR, target, steps)
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


P, R, D, F, S, U = (StepState(s) for s in ("PENDING", "RUNNING", "DONE", "FAILED", "SKIPPED", "UNDONE"))
BACK = OperationState.ROLLING_BACK


@pytest.mark.parametrize(
    ("given", "move"),
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
    ids=lambda one: type(one).__name__,
)
def test_next_move(given: Operation, move: Move) -> None:
    assert next_move(given) == move


def story(made: Operation, *changes: Callable[[Operation], Operation]) -> Operation:
    for change in changes:
        made = change(made)
    return made


def test_a_failed_operation_is_taken_back_the_last_step_first() -> None:
    made = story(
        operation(P, P, P),
        lambda o: begun(o, 0, NOW),
        lambda o: done(o, 0, Done("found", {"former": {"a": "b"}}), 2, NOW),
        lambda o: begun(o, 1, NOW),
        lambda o: waits(o, 1, "rebalance", 3),
        lambda o: failed(o, 1, REFUSED, 4, NOW),
    )
    assert (made.state, made.message, made.facts) == (OperationState.RUNNING, REFUSED.message, {"former": {"a": "b"}})
    assert made.error is not None
    assert (made.error.code, made.error.reason) == ("INVALID_ARGUMENT", "CONFIG_REFUSED")
    assert [(s.state, s.attempts, s.message) for s in made.steps] == [
        (D, 2, "found"), (F, 4, REFUSED.message), (P, 0, ""),
    ]  # fmt: skip
    made = turned_back(made, NOW, takes_back=True)
    assert (next_move(made), made.back_time) == (Undo(1), NOW)
    made = undone(made, 1, "", NOW)
    assert next_move(made) == Undo(0)
    made = undone(made, 0, "put back", NOW)
    assert next_move(made) == End(OperationState.FAILED)
    made = ended(made, OperationState.FAILED, NOW)
    assert [s.state for s in made.steps] == [U, F, P]
    assert (made.has_ended, made.message, made.end_time) == (True, REFUSED.message, NOW)


def test_what_cannot_be_taken_back_is_said() -> None:
    made = operation(D, F, P, state=BACK, cancel_reason="no")
    made = not_undone(made, 1, "cluster away", NOW)
    assert made.error is not None
    assert made.error.reason == "NOT_TAKEN_BACK"
    assert made.message == "step-1 could not be taken back: cluster away"
    made = not_undone(made, 0, "cluster away", NOW)
    assert made.message.count("could not be taken back") == 2
    assert next_move(made) == End(OperationState.FAILED)


def test_an_operation_that_is_not_taken_back_ends_as_it_is() -> None:
    made = turned_back(operation(D, R, cancel_reason="too slow"), NOW, takes_back=False)
    assert (made.state, made.message) == (OperationState.CANCELED, "canceled: too slow")
    assert [s.state for s in made.steps] == [D, R]


def test_the_same_wait_changes_nothing() -> None:
    made = waits(operation(R), 0, "rebalance", 1)
    assert waits(made, 0, "rebalance", 2) is made


def test_what_is_forgotten() -> None:
    def one(name: str, noun: str, age: int | None) -> Operation:
        end = None if age is None else NOW - timedelta(seconds=age)
        state = OperationState.RUNNING if age is None else OperationState.SUCCEEDED
        return operation(D, name=name, target=Target(noun, "x"), end_time=end, state=state)

    kept = [one("a", "topic", 1), one("b", "topic", 2), one("c", "topic", None), one("d", "connector_definition", 50)]
    gone = [one("e", "topic", 3), one("f", "connector_definition", 101)]
    assert to_forget([*kept, *gone], NOW, 100, 2) == ["e", "f"]

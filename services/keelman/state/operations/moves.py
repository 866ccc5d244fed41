"""Decides the next move of an operation, and applies each outcome: the next step, a failure, a rollback. Pure.

A step is stored RUNNING before it is done and ended after; a step found RUNNING is done again, so steps are idempotent.
A rollback undoes every step that was begun, the last first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from keelman.model.errors import KeelmanError
from keelman.model.operation import Failure, Operation, OperationState, Step, StepState
from keelman.rpc.errors import code_name


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome of a step that has taken effect. `facts` are added to the operation's, for later steps and
    rollbacks."""

    message: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    skipped: bool = False
    """There was nothing to do."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The outcome of a step to try again in so many seconds: `message` tells which condition is not met yet."""

    message: str
    seconds: float = 0.5


Outcome: TypeAlias = Done | Waiting


@dataclass(frozen=True, slots=True)
class Begin:
    """Store a step as begun."""

    index: int


@dataclass(frozen=True, slots=True)
class Do:
    """Do a step that is stored as begun."""

    index: int


@dataclass(frozen=True, slots=True)
class TurnBack:
    """Roll back all steps, or leave their effects: the operation's kind decides."""


@dataclass(frozen=True, slots=True)
class Undo:
    """Undo a step."""

    index: int


@dataclass(frozen=True, slots=True)
class End:
    """End the operation."""

    state: OperationState


Move: TypeAlias = Begin | Do | TurnBack | Undo | End


def next_move(operation: Operation) -> Move:
    """Returns the next move of an operation that has not ended."""
    if operation.state is OperationState.ROLLING_BACK:
        for index in reversed(range(len(operation.steps))):
            step = operation.steps[index]
            if step.start_time is not None and step.state is not StepState.SKIPPED and step.undo_time is None:
                return Undo(index)
        return End(OperationState.CANCELED if operation.error is None else OperationState.FAILED)
    if operation.error is not None or operation.cancel_reason:
        return TurnBack()
    for index, step in enumerate(operation.steps):
        if step.state is StepState.PENDING:
            return Begin(index)
        if step.state is StepState.RUNNING:
            return Do(index)
    return End(OperationState.SUCCEEDED)


def begun(operation: Operation, index: int, now: datetime) -> Operation:
    """Returns the operation with a step begun."""
    step = dataclasses.replace(operation.steps[index], state=StepState.RUNNING, start_time=now, attempts=1)
    return dataclasses.replace(_with(operation, index, step), state=OperationState.RUNNING, message="")


def done(operation: Operation, index: int, outcome: Done, attempts: int, now: datetime) -> Operation:
    """Returns the operation with a step done."""
    state = StepState.SKIPPED if outcome.skipped else StepState.DONE
    step = dataclasses.replace(
        operation.steps[index], state=state, message=outcome.message, end_time=now, attempts=attempts
    )
    return dataclasses.replace(_with(operation, index, step), message="", facts={**operation.facts, **outcome.facts})


def waits(operation: Operation, index: int, message: str, attempts: int) -> Operation:
    """Returns the operation with a step that will be tried again."""
    step = operation.steps[index]
    if step.message == message == operation.message:
        return operation
    return dataclasses.replace(
        _with(operation, index, dataclasses.replace(step, message=message, attempts=attempts)), message=message
    )


def failed(operation: Operation, index: int, error: KeelmanError, attempts: int, now: datetime) -> Operation:
    """Returns the operation with a step that failed for good."""
    step = dataclasses.replace(
        operation.steps[index], state=StepState.FAILED, message=error.message, end_time=now, attempts=attempts
    )
    failure = Failure(code_name(error), error.reason, error.message)
    return dataclasses.replace(_with(operation, index, step), message=error.message, error=failure)


def turned_back(operation: Operation, now: datetime, *, takes_back: bool) -> Operation:
    """Returns the operation in its rollback, or ended with the effects of its steps left in place."""
    if takes_back:
        return dataclasses.replace(operation, state=OperationState.ROLLING_BACK, back_time=now)
    return ended(operation, OperationState.CANCELED if operation.error is None else OperationState.FAILED, now)


def undone(operation: Operation, index: int, message: str, now: datetime) -> Operation:
    """Returns the operation with a step undone; a step that failed stays FAILED."""
    step = operation.steps[index]
    if step.state is StepState.FAILED:
        step = dataclasses.replace(step, undo_time=now)
    else:
        step = dataclasses.replace(
            step, state=StepState.UNDONE, message=message, end_time=step.end_time or now, undo_time=now
        )
    return _with(operation, index, step)


def not_undone(operation: Operation, index: int, reason: str, now: datetime) -> Operation:
    """Returns the operation with a step that could not be undone, with that in its message and error."""
    step = operation.steps[index]
    text = f"{step.name} could not be taken back: {reason}"
    changed = _with(
        operation, index, dataclasses.replace(step, message=text, end_time=step.end_time or now, undo_time=now)
    )
    error = operation.error
    if error is None:
        error = Failure("ABORTED", "NOT_TAKEN_BACK", text)
    else:
        error = dataclasses.replace(error, message=f"{error.message}; {text}")
    return dataclasses.replace(changed, error=error, message=error.message, back_failed=True)


def ended(operation: Operation, state: OperationState, now: datetime) -> Operation:
    """Returns the operation at its end; steps that were begun and are not known to have ended are so no more."""
    message = ""
    if operation.error is not None:
        message = operation.error.message
    elif state is OperationState.CANCELED:
        message = f"canceled: {operation.cancel_reason}"
    return dataclasses.replace(operation, state=state, message=message, end_time=now)


def _with(operation: Operation, index: int, step: Step) -> Operation:
    steps = (*operation.steps[:index], step, *operation.steps[index + 1 :])
    return dataclasses.replace(operation, steps=steps)

"""An operation: work that takes more than one transaction, as steps that are stored before and after each is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from keelman.model.annotations import Origin
from keelman.model.resource import Resource


class OperationKind(StrEnum):
    """The kind of work that an operation does."""

    APPLY_CONNECTOR = "APPLY_CONNECTOR"
    APPLY_TOPIC = "APPLY_TOPIC"
    CREATE_DEDICATED = "CREATE_DEDICATED"
    UPDATE_WORKERS = "UPDATE_WORKERS"
    UPDATE_CONFIG = "UPDATE_CONFIG"
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    RESTART = "RESTART"
    DELETE_DEDICATED = "DELETE_DEDICATED"
    SCALE = "SCALE"
    IMPORT_PLUGIN = "IMPORT_PLUGIN"


class OperationState(StrEnum):
    """The state of an operation."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    ROLLING_BACK = "ROLLING_BACK"
    CANCELED = "CANCELED"


ENDED = (OperationState.SUCCEEDED, OperationState.FAILED, OperationState.CANCELED)


class StepState(StrEnum):
    """The state of a step."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    """Begun; it is unknown whether it has taken effect."""
    DONE = "DONE"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    """There was nothing to do."""
    UNDONE = "UNDONE"
    """Its effect was undone."""


@dataclass(frozen=True, slots=True)
class OperationTarget:
    """The resource of an operation, its generation that is applied, and the goal that it is brought to."""

    noun: str
    name: str
    generation: int = 0
    goal: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `undo_time` is set once it no longer needs to be undone."""

    name: str
    state: StepState = StepState.PENDING
    message: str = ""
    start_time: datetime | None = None
    end_time: datetime | None = None
    attempts: int = 0
    undo_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an operation failed: a gRPC code by name, a reason for programs, a message for people."""

    code: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Operation(Resource):
    """One operation. `facts` is JSON with its steps' inputs and findings: stored sealed, never shown."""

    NOUN: ClassVar[str] = "operation"

    kind: OperationKind
    target: OperationTarget
    steps: tuple[Step, ...]
    origin: Origin | None = None
    state: OperationState = OperationState.PENDING
    message: str = ""
    error: Failure | None = None
    end_time: datetime | None = None
    back_time: datetime | None = None
    """When its roll-back began."""
    back_failed: bool = False
    """Some of it could not be undone."""
    cancel_reason: str = ""
    """The reason of a request to cancel it; empty without one."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    actor: str = ""
    """The gateway's caller who requested it; empty if the system began it, or without callers."""
    etag: str = ""

    @property
    def has_ended(self) -> bool:
        """True if no more of its steps will be done."""
        return self.state in ENDED

    def step(self, name: str) -> Step:
        """Returns the step of that name."""
        return next(step for step in self.steps if step.name == name)

    def begin_time_of(self, name: str) -> datetime:
        """Returns when the step of that name began; if it has not, when the operation was created."""
        return self.step(name).start_time or self.create_time

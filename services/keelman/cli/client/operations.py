"""Begins operations on topics and definitions, and follows them to their ends."""

from __future__ import annotations

from typing import Any

from keelman.api.connect.v1.connector_definition_pb2 import DefinitionGoal
from keelman.api.connect.v1.operation_pb2 import OperationState
from keelman.api.connect.v1.topic_pb2 import TopicGoal
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.exits import NotReached, plain_plugins
from keelman.cli.kinds import Kind
from keelman.cli.output.operations import current_step, operation_state
from keelman.cli.waiting import progress_line, until
from keelman.model.errors import DeadlineExceeded
from keelman.rpc.enums import word
from keelman.runtime.supervise import deadline

ENDED = (
    OperationState.OPERATION_STATE_SUCCEEDED,
    OperationState.OPERATION_STATE_FAILED,
    OperationState.OPERATION_STATE_CANCELED,
)
ABSENT = "ABSENT"
_GOALS: dict[str, Any] = {kinds.TOPICS.singular: TopicGoal, kinds.DEFINITIONS.singular: DefinitionGoal}


def goals(kind: Kind) -> tuple[str, ...]:
    """Returns the goals of a kind, as words."""
    enum = _GOALS[kind.singular]
    return tuple(word(enum, value) for value in enum.values() if value)


def goal_of(kind: Kind, text: str) -> int:
    """Returns the number of a goal in the protocol."""
    enum = _GOALS[kind.singular]
    return int(next(value for value in enum.values() if value and word(enum, value) == text))


async def begin(gateway: Gateway, kind: Kind, name: str, goal: str = "") -> Any:
    """Begins an operation on a topic or a definition; returns the operation. Without a goal it takes the resource's
    latest goal; if that is ABSENT, the initial goal, it takes PRESENT or RUNNING."""
    if not goal:
        resource = await gateway.get(kind, name)
        applied_goal = word(_GOALS[kind.singular], resource.goal)
        goal = goals(kind)[-1] if applied_goal == ABSENT else applied_goal
    _, operation = await gateway.apply(kind, name, goal_of(kind, goal))
    return operation


async def follow(gateway: Gateway, name: str, *, seconds: float, canceled: bool = False) -> Any:
    """Waits for the end of an operation and shows its current step on stderr; returns the operation.

    Raises NotReached with the operation's error if it failed or, unless `canceled` is set, if it was canceled;
    DeadlineExceeded while it still runs.
    """
    latest: Any = None

    async def has_ended() -> bool:
        nonlocal latest
        latest = await gateway.get(kinds.OPERATIONS, name)
        line.show(progress_text(latest))
        return latest.state in ENDED

    def late() -> DeadlineExceeded:
        text = "" if latest is None else f": {progress_text(latest)}"
        return DeadlineExceeded(f"operation {name} has not ended after {seconds:.0f} s and continues{text}")

    with progress_line() as line:
        async with deadline(seconds, late):
            await until(has_ended)
    if latest.state == OperationState.OPERATION_STATE_FAILED:
        raise NotReached(f"operation {name} failed: {latest.error.message or latest.message}")
    if latest.state == OperationState.OPERATION_STATE_CANCELED and not canceled:
        raise NotReached(f"operation {name} was {latest.message or 'canceled'}")
    return latest


def progress_text(operation: Any) -> str:
    """Returns one line with an operation's state and current step."""
    text = f"operation/{operation.name} {operation_state(operation)}"
    step = current_step(operation)
    if step is None or operation.state in ENDED:
        return text
    detail = " ".join(plain_plugins(step.message or operation.message).split())
    return f"{text}: {step.name}" + (f": {detail}" if detail else "")


async def delete_applied(gateway: Gateway, kind: Kind, name: str, *, keep: bool, seconds: float) -> None:
    """Deletes a topic or a definition; before it, unless `keep` is set, its topic on the brokers or its connector."""
    resource = await gateway.get(kind, name)
    field = "keep_topic" if kind is kinds.TOPICS else "keep_connector"
    if not keep and is_applied(resource):
        operation = await begin(gateway, kind, name, ABSENT)
        await follow(gateway, operation.name, seconds=seconds)
    await gateway.call("Delete", kind, name=name, **{field: keep})


def is_applied(resource: Any) -> bool:
    """Tells whether a topic or a connector may exist that this resource created."""
    return bool(resource.status.applied_generation) or resource.goal > 1

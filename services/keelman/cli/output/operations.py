"""Formats definitions, operations and the partitions of topics for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keelman.api.connect.v1.connector_definition_pb2 import (
    DEFINITION_GOAL_PAUSED,
    DEFINITION_GOAL_RUNNING,
    DEFINITION_GOAL_STOPPED,
    DefinitionGoal,
)
from keelman.api.connect.v1.connector_pb2 import ConnectorState
from keelman.api.connect.v1.operation_pb2 import OperationKind, OperationState, OperationStepState
from keelman.rpc.enums import word

_APPLYING, _FAILED, _ABSENT, _UNKNOWN = "APPLYING", "FAILED", "ABSENT", "UNKNOWN"
_IN_PLACE = (DEFINITION_GOAL_STOPPED, DEFINITION_GOAL_PAUSED, DEFINITION_GOAL_RUNNING)


def definition_state(definition: Any) -> str:
    """Returns the state of a definition's connector, APPLYING during an apply, or FAILED if an apply failed."""
    status = definition.status
    if status.applying:
        return _APPLYING
    if status.HasField("connector"):
        return word(ConnectorState, status.connector.state)
    if status.message:
        return _FAILED
    # It was applied, and no report shows that it is gone: its worker cluster does not run.
    return _UNKNOWN if status.applied_goal in _IN_PLACE and not status.drifted else _ABSENT


def definition_states() -> tuple[str, ...]:
    """Returns all results of `definition_state`."""
    states = (word(ConnectorState, value) for value in ConnectorState.values() if value)
    return tuple(dict.fromkeys((_ABSENT, _APPLYING, *states, _UNKNOWN)))


def tasks_text(connector: Any) -> str:
    """Returns how many of a connector's tasks run, how many have failed, and how many fail repeatedly."""
    running = sum(t.state == ConnectorState.CONNECTOR_STATE_RUNNING and not t.failed_attempts for t in connector.tasks)
    failed = sum(t.state == ConnectorState.CONNECTOR_STATE_FAILED for t in connector.tasks)
    failing = sum(t.state != ConnectorState.CONNECTOR_STATE_FAILED and t.failed_attempts > 0 for t in connector.tasks)
    wrong = [f"{failed} failed"] * bool(failed) + [f"{failing} failing"] * bool(failing)
    return f"{running}/{len(connector.tasks)}" + (f" ({', '.join(wrong)})" if wrong else "")


def task_note(task: Any) -> str:
    """Returns a note on a running task: that its attempts fail, or its reason to wait; else empty."""
    if task.failed_attempts:
        return f"failed {task.failed_attempts} times in a row: {task.last_failure}"
    return str(task.waits_for)


def workers_text(connector: Any) -> str:
    """Returns how many workers of a dedicated connector run, and how many its spec wants."""
    capacity = connector.spec.capacity
    if capacity.WhichOneof("workers") == "autoscale":
        return f"{connector.status.workers} of {capacity.autoscale.min_workers} to {capacity.autoscale.max_workers}"
    return f"{connector.status.workers}/{capacity.count}"


def goal_text(definition: Any) -> str:
    """Returns the goal of a definition that was requested last."""
    return word(DefinitionGoal, definition.goal) if definition.goal else _ABSENT


def operation_state(operation: Any) -> str:
    """Returns the state of an operation."""
    return word(OperationState, operation.state)


def operation_kind(operation: Any) -> str:
    """Returns the kind of an operation, such as APPLY_TOPIC."""
    return word(OperationKind, operation.kind)


def target_noun(operation: Any) -> str:
    """Returns the noun of an operation's target, as the command line writes it, such as topic."""
    noun = operation.target.noun
    return "definition" if noun == "connector_definition" else str(noun).replace("_", "-")


def step_state(step: Any) -> str:
    """Returns the state of a step."""
    return word(OperationStepState, step.state)


def current_step(operation: Any) -> Any:
    """Returns the step that an operation is at, or ended at; None before the first."""
    begun = [step for step in operation.steps if step.state != OperationStepState.OPERATION_STEP_STATE_PENDING]
    return begun[-1] if begun else None


def step_name(operation: Any) -> str:
    """Returns the name of the step that an operation is at, or ended at; empty before the first."""
    step = current_step(operation)
    return "" if step is None else str(step.name)


def steps_done(operation: Any) -> str:
    """Returns the number of finished steps of all, such as 3/5."""
    pending = OperationStepState.OPERATION_STEP_STATE_PENDING
    running = OperationStepState.OPERATION_STEP_STATE_RUNNING
    done = sum(step.state not in (pending, running) for step in operation.steps)
    return f"{done}/{len(operation.steps)}"


def step_lines(operation: Any) -> list[str]:
    """Returns a line for each step: create-topic DONE 0.2 s after 1 try at 12:00:01Z: 3 partitions."""
    return [step_line(step) for step in operation.steps]


def step_line(step: Any) -> str:
    """Returns one step as a line."""
    words = [step.name, step_state(step)]
    if step.HasField("start_time"):
        words.append(f"at {step.start_time.ToDatetime():%Y-%m-%d %H:%M:%S}Z")
        if step.HasField("end_time"):
            took = step.end_time.ToDatetime() - step.start_time.ToDatetime()
            words.append(f"in {took.total_seconds():.1f} s")
    if step.attempts > 1:
        words.append(f"after {step.attempts} tries")
    text = " ".join(words)
    return f"{text}: {' '.join(step.message.split())}" if step.message else text


def partition_lines(partitions: Sequence[Any]) -> list[str]:
    """Returns a line for each partition: 0: leader 1 (b1:9092), replicas 1 2 3, in sync 1 2, offsets 0 to 42."""
    return [_partition_line(partition) for partition in partitions]


def _partition_line(partition: Any) -> str:
    leader = (
        f"leader {partition.leader.node_id} ({partition.leader.host}:{partition.leader.port})"
        if partition.HasField("leader")
        else ""
    )
    replicas, in_sync = ([str(b.node_id) for b in some] for some in (partition.replicas, partition.in_sync_replicas))
    words = [leader or "no leader", f"replicas {' '.join(replicas)}"]
    if sorted(replicas) != sorted(in_sync):
        words.append(f"in sync {' '.join(in_sync) or 'none'}")
    if partition.HasField("end_offset"):
        words.append(f"offsets {partition.begin_offset} to {partition.end_offset}")
    return f"{partition.partition}: {', '.join(words)}"

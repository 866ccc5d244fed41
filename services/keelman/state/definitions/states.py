"""Judges the states of a connector and its tasks against its goal: to run, to pause or to stop. Pure."""

from __future__ import annotations

from datetime import timedelta

from keelman.api.connect.v1.connector_pb2 import (
    CONNECTOR_STATE_FAILED,
    CONNECTOR_STATE_RUNNING,
    Connector,
    ConnectorState,
    ConnectorTask,
)
from keelman.model.connectors.connector_definition import DefinitionGoal
from keelman.model.errors import FailedPrecondition
from keelman.state.operations.moves import Done, Outcome, Waiting

STEADY = ("RUNNING", "PAUSED", "STOPPED")
"""States that a user requests; the others come and go by themselves."""
LOOK_AGAIN_SECONDS = 0.3
STALE = timedelta(seconds=3)
"""How long a connector that ran before may still be reported in its former state."""
NO_TASKS = timedelta(seconds=5)
"""A connector that runs for so long without tasks has none to do."""
MAX_CAUSE = 500


def awaited(
    goal: DefinitionGoal, connector: Connector, waited: timedelta, *, without_tasks: timedelta, was_running: bool
) -> Outcome:
    """Returns the outcome of waiting for a goal for so long. `without_tasks`: for how long the connector has been seen
    to run without tasks; `was_running`: it ran before, with another configuration.

    Raises FailedPrecondition (CONNECTOR_FAILED) when it has failed.
    """
    is_fresh = not was_running or waited >= STALE
    if goal is DefinitionGoal.RUNNING and has_failed(connector) and is_fresh:
        raise FailedPrecondition(failure_of(connector), reason="CONNECTOR_FAILED")
    if missing := _missing(goal, connector):
        return Waiting(missing, LOOK_AGAIN_SECONDS)
    if goal is DefinitionGoal.RUNNING and not connector.tasks and without_tasks < NO_TASKS:
        return Waiting("the connector has no tasks yet", LOOK_AGAIN_SECONDS)
    if goal is DefinitionGoal.RUNNING and not is_fresh:
        return Waiting("its state may be that of before", LOOK_AGAIN_SECONDS)
    return Done(f"tasks: {len(connector.tasks)}")


def _missing(goal: DefinitionGoal, connector: Connector) -> str:
    """Returns which part is not in the wanted state yet; empty when all are."""
    if state_of(connector) != goal:
        return f"the connector is {state_of(connector)}"
    for task in connector.tasks:
        state = state_of(task)
        if goal is DefinitionGoal.RUNNING and state != goal:
            return f"task {task.task} is {state}"
        if goal is not DefinitionGoal.RUNNING and task.state == CONNECTOR_STATE_RUNNING:
            return f"task {task.task} has not ended yet"
    return ""


def runs_without_tasks(connector: Connector) -> bool:
    """Returns whether it runs, and its tasks are still to come, if there are any."""
    return connector.state == CONNECTOR_STATE_RUNNING and not connector.tasks


def state_of(connector: Connector | ConnectorTask) -> str:
    """Returns the state by Connect's name."""
    return ConnectorState.Name(connector.state).removeprefix("CONNECTOR_STATE_")


def has_failed(connector: Connector) -> bool:
    """Returns whether the connector, or a task of it, has failed."""
    return CONNECTOR_STATE_FAILED in (connector.state, *(task.state for task in connector.tasks))


def failure_of(connector: Connector) -> str:
    """Returns which part of the connector has failed, and the first line of the reason."""
    if connector.state == CONNECTOR_STATE_FAILED:
        return f"the connector failed: {_first_line(connector.trace)}"
    task = next(task for task in connector.tasks if task.state == CONNECTOR_STATE_FAILED)
    return f"task {task.task} failed: {_first_line(task.trace)}"


def _first_line(trace: str) -> str:
    return (trace.strip().splitlines() or ["its worker gave no reason"])[0][:MAX_CAUSE]

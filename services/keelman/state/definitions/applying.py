"""Brings a worker cluster to the state of a connector definition, by the REST API of any worker that answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.model import errors
from keelman.model.connectors.connector_definition import DefinitionGoal
from keelman.model.operation import Operation
from keelman.runtime.supervise import deadline
from keelman.state.database.failpoints import hit
from keelman.state.definitions.states import (
    LOOK_AGAIN_SECONDS,
    STEADY,
    awaited,
    has_failed,
    runs_without_tasks,
    state_of,
)
from keelman.state.definitions.steps import (
    ASK,
    AWAIT,
    AWAIT_GONE,
    CONFIGURE,
    DELETE,
    FORMER,
    GONE,
    STEER,
    UID,
    has_config,
    noted,
    ran_otherwise,
    same_config,
    takes_back,
)
from keelman.state.operations.kinds import OperationProcedure, StepWork
from keelman.state.operations.moves import Done, Outcome, Waiting
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Transaction
from keelman.workers.rest.connectors import RestConnectors

CALL_SECONDS = 30.0
PASSES = ("timed out", "a rebalance is expected")
"""Parts of the messages that Connect answers with status 500 in a rebalance."""
LOOK_COUNTS = timedelta(seconds=1)
"""The most time between two looks that counts as observed: a rebalance may have filled the rest."""
DELETED = "the connector was deleted in the meantime: apply it again"


def procedure(store: ResourceStore, connectors: RestConnectors) -> OperationProcedure:
    """Returns the steps of operations on connectors."""
    steps = ConnectorSteps(store, connectors)
    return OperationProcedure(
        {
            ASK: StepWork(steps.ask),
            CONFIGURE: StepWork(steps.configure, steps.put_back),
            STEER: StepWork(steps.steer, steps.steer_back),
            AWAIT: StepWork(steps.await_state),
            DELETE: StepWork(steps.delete),
            AWAIT_GONE: StepWork(steps.await_gone),
        },
        takes_back=takes_back,
        stored=_noted,
    )


def _noted(tx: Transaction, operation: Operation) -> None:
    definition = tx.snapshot.connector_definitions.get(operation.target.name)
    if definition is not None and (changed := noted(definition, operation, tx.now)) != definition:
        tx.put(changed)


class ConnectorSteps:
    """The steps. Facts that they need: worker_cluster, connector and config."""

    def __init__(self, store: ResourceStore, connectors: RestConnectors) -> None:
        self._connectors = connectors
        self._store = store
        self._without_tasks: dict[str, tuple[tuple[str, bool], datetime, timedelta]] = {}
        """By target: the waiting operation, and whether it is being rolled back; the time of the last look that saw the
        connector run without tasks; and for how long looks have seen that."""

    async def ask(self, operation: Operation) -> Outcome:
        """Finds out whether the cluster has the connector, and records its configuration and state."""
        if GONE in operation.facts:
            return Done("its worker cluster does not exist or does not run, and never had the connector")
        answer = await self.look(operation)
        if answer is None:
            return Done("the worker cluster does not have it", {FORMER: None})
        former = {"config": dict(answer.config), "state": state_of(answer), "failed": has_failed(answer)}
        return Done("the worker cluster has it", {FORMER: former, UID: answer.uid})

    async def configure(self, operation: Operation) -> Outcome:
        """Creates the connector, or gives it another configuration."""
        config = operation.facts["config"]
        connector = await self.look(operation)
        if connector is not None and same_config(connector.config, config):
            had = has_config(operation.facts)
            return Done("it had it already" if had else "", {UID: connector.uid}, skipped=had)
        if connector is None:
            answer = await self.write(operation)
        else:
            async with _refusing():
                answer = await self._connectors.update(*place_of(operation), config)
        hit("connector-written")
        return Done("changed" if connector is not None else "created", {UID: answer.uid})

    async def write(self, operation: Operation) -> Connector:
        """Creates the connector in the requested state."""
        config, goal = operation.facts["config"], operation.target.goal
        initial = "" if goal == DefinitionGoal.RUNNING else goal
        async with _refusing():
            try:
                return await self._connectors.create(
                    *place_of(operation), config, request_id=operation.name, initial_state=initial
                )
            except errors.AlreadyExists as error:
                raise errors.Conflict(error.message) from None  # the next look finds its configuration

    async def put_back(self, operation: Operation) -> Outcome:
        """Restores the connector's former configuration; deletes a connector that did not exist before."""
        former, connector = operation.facts[FORMER], await self.look(operation)
        if connector is None:
            return Done("it does not exist" if former is None else "it was deleted in the meantime: it stays deleted")
        if former is None:
            async with calling():
                await self._connectors.delete(*place_of(operation))
            hit("connector-put-back")
            return Done("deleted")
        if same_config(connector.config, former["config"]):
            return Done("its former configuration is unchanged")
        async with _refusing():
            await self._connectors.update(*place_of(operation), former["config"])
        hit("connector-put-back")
        return Done("its former configuration is back")

    async def steer(self, operation: Operation) -> Outcome:
        """Makes the connector run, pause or stop."""
        connector = await self.look(operation)
        goal = DefinitionGoal(operation.target.goal)
        if connector is None and goal is not DefinitionGoal.RUNNING:
            return Done("it is created so", skipped=True)
        if connector is None:
            raise errors.FailedPrecondition(DELETED, reason="CONNECTOR_GONE")
        steered = await self._steer(operation, connector, goal)
        hit("connector-steered")
        return Done(steered, skipped=not steered)

    async def steer_back(self, operation: Operation) -> Outcome:
        """Returns the connector to its former state."""
        former, connector = operation.facts[FORMER], await self.look(operation)
        if former is None or connector is None:
            return Done()
        goal = former["state"] if former["state"] in STEADY else DefinitionGoal.RUNNING
        return Done(await self._steer(operation, connector, DefinitionGoal(goal)))

    async def await_state(self, operation: Operation) -> Outcome:
        """Waits until the connector and its tasks have the requested state. Raises FailedPrecondition when they
        fail."""
        connector = await self.look(operation)
        if connector is None:
            raise errors.FailedPrecondition(DELETED, reason="CONNECTOR_GONE")
        goal = DefinitionGoal(operation.target.goal)
        waited = self._store.database.clock() - operation.begin_time_of(AWAIT)
        without_tasks = self.without_tasks(operation, connector)
        return awaited(goal, connector, waited, without_tasks=without_tasks, was_running=ran_otherwise(operation.facts))

    async def delete(self, operation: Operation) -> Outcome:
        """Deletes the connector; its offsets stay."""
        if GONE in operation.facts or operation.facts[FORMER] is None:
            return Done(skipped=True)
        try:
            async with calling():
                await self._connectors.delete(*place_of(operation))
        except errors.NotFound as error:
            if not _is_connects(error):
                raise
            return Done("it is gone")
        hit("connector-deleted")
        return Done("deleted")

    async def await_gone(self, operation: Operation) -> Outcome:
        """Waits until the workers no longer have the connector."""
        if GONE in operation.facts or await self.look(operation) is None:
            return Done()
        return Waiting("the workers still have it", LOOK_AGAIN_SECONDS)

    async def _steer(self, operation: Operation, connector: Connector, goal: DefinitionGoal) -> str:
        """Makes the workers bring the connector to its goal, unless it is there; returns a report of that."""
        state, place = state_of(connector), place_of(operation)
        async with calling():
            if goal is DefinitionGoal.STOPPED and state != goal:
                await self._connectors.stop(*place)
                return "ordered to stop"
            if goal is DefinitionGoal.PAUSED and state != goal:
                await self._connectors.pause(*place)
                return "ordered to pause"
            if goal is DefinitionGoal.RUNNING and state in (DefinitionGoal.STOPPED, DefinitionGoal.PAUSED):
                await self._connectors.resume(*place)
                return "ordered to run"
            had_failed = (operation.facts[FORMER] or {}).get("failed", False)
            if goal is DefinitionGoal.RUNNING and had_failed and has_failed(connector):
                await self._connectors.restart(*place, include_tasks=True, only_failed=True)
                return "failed parts were restarted"
        return ""

    def without_tasks(self, operation: Operation, connector: Connector) -> timedelta:
        """Returns for how long the operation has seen the connector run without tasks, uninterrupted."""
        name, by = operation.target.name, (operation.name, operation.back_time is not None)
        if not runs_without_tasks(connector):
            self._without_tasks.pop(name, None)
            return timedelta(0)
        now = self._store.database.clock()
        seen_by, last, seen = self._without_tasks.get(name, (by, now, timedelta(0)))
        seen = seen + max(timedelta(0), min(now - last, LOOK_COUNTS)) if seen_by == by else timedelta(0)
        self._without_tasks[name] = by, now, seen
        return seen

    async def look(self, operation: Operation) -> Connector | None:
        """Returns the connector as the workers have it now; None if they do not have it."""
        async with calling():
            try:
                return await self._connectors.get(*place_of(operation))
            except errors.NotFound as error:
                if _is_connects(error):
                    return None
                raise


@asynccontextmanager
async def calling() -> AsyncIterator[None]:
    """Bounds calls of workers, and turns Connect's errors of a rebalance into Unavailable, so that they are tried
    again."""
    late = errors.Unavailable(f"no worker answered in {CALL_SECONDS:g} s")
    try:
        async with deadline(CALL_SECONDS, late):
            yield
    except errors.Internal as error:
        if any(text in error.message.lower() for text in PASSES):
            raise errors.Unavailable(error.message) from None
        raise


@asynccontextmanager
async def _refusing() -> AsyncIterator[None]:
    """Does as `calling`, for a configuration that Connect may refuse."""
    try:
        async with calling():
            yield
    except errors.InvalidArgument as error:
        raise errors.InvalidArgument(
            error.message, reason="CONFIG_REFUSED", metadata=error.metadata, violations=error.violations
        ) from None


def place_of(operation: Operation) -> tuple[str, str]:
    """Returns the worker cluster and name of an operation's connector."""
    return operation.facts["worker_cluster"], operation.facts["connector"]


def _is_connects(error: errors.NotFound) -> bool:
    """Returns whether the connector is missing, and not its worker cluster."""
    return "http_status" in error.metadata

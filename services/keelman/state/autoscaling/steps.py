"""Names the steps of operations that scale, makes their facts and applies their results. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from keelman.model.autoscale import Scaling
from keelman.model.cluster import ClusterGoal, WorkerCluster
from keelman.model.connectors.dedicated_connector import DedicatedConnector
from keelman.model.operation import Operation, OperationTarget, StepState
from keelman.state.dedicated.steps import facts_of
from keelman.state.definitions.steps import ASK, CONFIGURE

SET, AWAIT_WORKERS = "set-workers", "await-workers"
WORKERS, FORMER_WORKERS, TASKS_MAX = "workers", "former_workers", "tasks_max"
REASON, CLUSTER_UID = "reason", "cluster_uid"
TASKS_FOLLOW = "tasks.max follows the number of workers"
"""Also the number of partitions, if `tasks.max` is bound to it."""
_TAKEN = (StepState.DONE, StepState.SKIPPED)


def target_of(cluster: WorkerCluster, connector: DedicatedConnector | None, workers: int) -> OperationTarget:
    """Returns the target of a scaling: the dedicated connector if the workers belong to one, else the worker
    cluster."""
    goal = f"{workers} worker{'' if workers == 1 else 's'}"
    owner = cluster if connector is None else connector
    return OperationTarget(owner.NOUN, owner.name, owner.generation, goal)


def plan_of(
    cluster: WorkerCluster, connector: DedicatedConnector | None, workers: int, tasks: int, reason: str, *,
    configured: Mapping[str, str] | None = None,
) -> tuple[tuple[str, ...], dict[str, Any]]:  # fmt: skip
    """Returns the steps that give a cluster a number of workers, and its connector a number of tasks; and their facts.
    `configured`: the properties of the connector's worker configuration, None if it names none."""
    steps: tuple[str, ...] = ()
    facts: dict[str, Any] = {
        WORKERS: workers, FORMER_WORKERS: cluster.wanted_workers, REASON: reason, CLUSTER_UID: cluster.uid,
    }  # fmt: skip
    if workers != cluster.wanted_workers:
        steps = (SET, AWAIT_WORKERS)
    if connector is not None and tasks != connector.tasks_max:
        steps += (ASK, CONFIGURE)
        facts |= facts_of(dataclasses.replace(connector, tasks_max=tasks), configured) | {TASKS_MAX: tasks}
    return steps, facts


def scaled(
    cluster: WorkerCluster | None, facts: Mapping[str, Any], now: datetime, *, back: bool
) -> WorkerCluster | None:
    """Returns the cluster with its new number of workers; None if there is nothing to do. `back`: with the former
    number, or with those of more workers that have come up."""
    if cluster is None or cluster.uid != facts[CLUSTER_UID] or cluster.goal is not ClusterGoal.RUNNING:
        return None
    to, of = facts[WORKERS], facts[FORMER_WORKERS]
    if back:
        to, of = max(of, min(to, cluster.status.ready_workers)) if to > of else of, to
    if cluster.spec.autoscale is None or cluster.wanted_workers == to:
        return None
    text = f"taken back to {to}: {facts[REASON]}" if back else facts[REASON]
    step = Scaling(to, of, now, text)
    return dataclasses.replace(cluster, scaling=step, generation=cluster.generation + 1, note="")


def noted(connector: DedicatedConnector, operation: Operation) -> DedicatedConnector:
    """Returns the dedicated connector with the number of tasks from an operation."""
    written = any(step.name == CONFIGURE and step.state in _TAKEN for step in operation.steps)
    if not written or operation.facts.get("uid_of_dedicated") != connector.uid or operation.back_time is not None:
        return connector
    return dataclasses.replace(connector, tasks_max=operation.facts[TASKS_MAX])

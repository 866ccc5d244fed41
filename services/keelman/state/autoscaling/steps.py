"""The operation that scales: its steps by name, what they are given, and what comes of it. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from keelman.model.autoscale import Scaling
from keelman.model.cluster import ClusterGoal, WorkerCluster
from keelman.model.connectors.dedicated_connector import DedicatedConnector
from keelman.model.operation import Operation, StepState, Target
from keelman.state.dedicated.steps import facts_of
from keelman.state.operations.connector_steps import ASK, CONFIGURE

SET, AWAIT_WORKERS = "set-workers", "await-workers"
WORKERS, FORMER_WORKERS, TASKS_MAX = "workers", "former_workers", "tasks_max"
REASON, CLUSTER_UID = "reason", "cluster_uid"
TASKS_FOLLOW = "tasks.max follows the number of workers"
"""And that of the partitions, where it is bound to these."""
_TAKEN = (StepState.DONE, StepState.SKIPPED)


def target_of(cluster: WorkerCluster, connector: DedicatedConnector | None, workers: int) -> Target:
    """What is scaled: the dedicated connector where the workers are those of one."""
    goal = f"{workers} worker{'' if workers == 1 else 's'}"
    one = cluster if connector is None else connector
    return Target(one.NOUN, one.name, one.generation, goal)


def plan_of(
    cluster: WorkerCluster, connector: DedicatedConnector | None, workers: int, tasks: int, why: str, *,
    configured: Mapping[str, str] | None = None,
) -> tuple[tuple[str, ...], dict[str, Any]]:  # fmt: skip
    """The steps that give a cluster so many workers, and its connector so many tasks; and their facts. `configured`:
    the properties of the connector's worker configuration, None where it names none."""
    steps: tuple[str, ...] = ()
    facts: dict[str, Any] = {
        WORKERS: workers, FORMER_WORKERS: cluster.wanted_workers, REASON: why, CLUSTER_UID: cluster.uid,
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
    """The cluster with the number of workers that it is to get, or with the former one; None where there is nothing to
    be done."""
    if cluster is None or cluster.uid != facts[CLUSTER_UID] or cluster.goal is not ClusterGoal.RUNNING:
        return None
    to, of = facts[WORKERS], facts[FORMER_WORKERS]
    if back:
        to, of = of, to
    if cluster.spec.autoscale is None or cluster.wanted_workers == to:
        return None
    why = f"taken back: {facts[REASON]}" if back else facts[REASON]
    step = Scaling(to, of, now, why)
    return dataclasses.replace(cluster, scaling=step, generation=cluster.generation + 1, note="")


def noted(connector: DedicatedConnector, operation: Operation) -> DedicatedConnector:
    """The dedicated connector with the tasks that an operation gave it."""
    written = any(step.name == CONFIGURE and step.state in _TAKEN for step in operation.steps)
    if not written or operation.facts.get("uid_of_dedicated") != connector.uid or operation.back_time is not None:
        return connector
    return dataclasses.replace(connector, tasks_max=operation.facts[TASKS_MAX])

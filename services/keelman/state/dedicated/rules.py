"""Decides the outcomes of the steps of operations on dedicated connectors, from their observations. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.model.cluster import ClusterState, RolloutState, WorkerCluster
from keelman.model.connectors.connector_definition import DefinitionGoal
from keelman.model.errors import FailedPrecondition, KeelmanError
from keelman.model.workload import START_QUEUED, Goal, ProcessState, Workload, WorkloadKind, spark_of
from keelman.state.dedicated.policy import without_detail
from keelman.state.dedicated.states import brokers_away, failure_reason, workers_reason
from keelman.state.definitions.states import awaited, failure_of, has_failed
from keelman.state.operations.moves import Done, Outcome, Waiting
from keelman.state.resources.snapshot import Snapshot

LOOK_AGAIN_SECONDS = 0.2
NO_NODE_AFTER = timedelta(seconds=5)
"""How long it may be chance that no node takes a worker, or that all report their brokers as unreachable."""
START_WITHIN = timedelta(seconds=180)
"""The longest start without a known cause of delay."""
SLOW_START_WITHIN = timedelta(seconds=900)
"""The longest first start of processes none of which has ended: a busy machine needs minutes for a worker and the Spark
service that it waits for."""
MIN_HEALTHY = timedelta(seconds=1)
"""The shortest time that a connector is watched once it runs."""
LIVING = frozenset({ProcessState.PREPARING, ProcessState.STARTING, ProcessState.RUNNING})
NO_CLASS = "Failed to find any class"


def workers_outcome(
    cluster: WorkerCluster, snapshot: Snapshot, observed: int, waited: timedelta, *, placed: bool = False
) -> Outcome:
    """Returns whether the workers run as wanted. Raises FailedPrecondition once the cause is known why they do not,
    and after START_WITHIN, or SLOW_START_WITHIN while their processes live. `observed` is the newest generation that
    the planner has seen; `placed`: they have to move, so it is not enough that they run."""
    status, workers = cluster.status, snapshot.workloads_in(WorkloadKind.WORKER, cluster.name)
    if observed < cluster.generation:
        return Waiting("its workers are being placed", LOOK_AGAIN_SECONDS)
    if status.rollout is not None and status.rollout.state is RolloutState.HALTED:
        raise FailedPrecondition(status.rollout.message, reason=workers_reason(workers))
    if status.stuck:
        raise FailedPrecondition(status.message, reason=workers_reason(workers))
    away = brokers_away(workers, snapshot)
    if away is not None and waited >= NO_NODE_AFTER:
        raise FailedPrecondition(without_detail(away.message), reason=away.reason)
    if cluster.note and waited >= NO_NODE_AFTER:
        raise FailedPrecondition(cluster.note, reason="NO_NODE")
    stays = placed and bool(cluster.note)
    if not stays and status.state is ClusterState.RUNNING and status.rollout is None and not status.leaving_workers:
        return Done(f"workers: {status.ready_workers}")
    within = SLOW_START_WITHIN if starts_at_first(workers, snapshot) else START_WITHIN
    if waited >= within:
        message = status.message or f"{status.ready_workers} of {cluster.wanted_workers} run"
        text = f"the workers do not run after {within.total_seconds():g} s: {without_detail(message)}"
        raise FailedPrecondition(text, reason=workers_reason(workers))
    return Waiting(without_detail(status.message) or f"its workers are {status.state}", LOOK_AGAIN_SECONDS)


def starts_at_first(workers: Sequence[Workload], snapshot: Snapshot) -> bool:
    """Returns whether these workers and their Spark services start or run, and no worker's process has ended since the
    change that it was started for."""
    meant = [w for w in workers if w.goal is Goal.RUNNING]
    sparks = [snapshot.workloads[name] for w in meant if (name := spark_of(w)) in snapshot.workloads]
    if not meant or any(w.status is None or w.status.state not in LIVING for w in (*meant, *sparks)):
        return False
    return all(w.status.restarts <= w.trial.restarts for w in meant if w.status is not None)


def is_queued(workers: Iterable[Workload]) -> bool:
    """Returns whether a worker waits for the start of others on its node: that time does not count as its own."""
    return any(worker.status is not None and worker.status.reason == START_QUEUED for worker in workers)


def health(
    goal: DefinitionGoal, connector: Connector, waited: timedelta, *, without_tasks: timedelta, had_failed: bool
) -> Outcome:
    """Returns whether a connector is healthy so long after a change: it and its tasks run. Raises FailedPrecondition
    when it has failed. `without_tasks`: for how long it has been seen to run without tasks; `had_failed`: already
    before the change."""
    if has_failed(connector) and not had_failed and goal is DefinitionGoal.RUNNING:
        raise FailedPrecondition(failure_of(connector), reason=failure_reason(connector))
    return awaited(goal, connector, waited, without_tasks=without_tasks, was_running=had_failed)


def watched(outcome: Done, waited: timedelta, healthy: timedelta, lasts: timedelta) -> Outcome:
    """Returns the outcome of a healthy connector, once it has been healthy until `lasts` after its change, and for some
    time if its start took long: a task runs before it writes its first record. `healthy`: for how long it has been
    so."""
    left = max(lasts - waited, min(lasts, MIN_HEALTHY) - healthy)
    if left <= timedelta(0):
        return outcome
    seconds = max(0.1, min(LOOK_AGAIN_SECONDS, left.total_seconds()))
    return Waiting(f"its health is being watched for {lasts.total_seconds():g} s", seconds)


def coded(error: KeelmanError) -> KeelmanError:
    """Returns the error with the reason why the connector does not run, if its text or reason names that."""
    if NO_CLASS in error.message:
        return FailedPrecondition(error.message, reason="CLASS_NOT_FOUND")
    if error.reason == "CONNECTOR_FAILED":
        reason = "TASK_FAILED" if error.message.startswith("task ") else "START_FAILED"
        return FailedPrecondition(error.message, reason=reason)
    return error

"""Measures the use of a cluster's workers, from their last reports. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from keelman.api.connect.v1.worker_pb2 import WorkerUsage
from keelman.model.cluster import ClusterGoal, ClusterState, WorkerCluster
from keelman.model.workload import Goal, ProcessState, ResourceLimits, Workload
from keelman.state.autoscaling.decision import Measure

WITHOUT_LIMIT = 1.0
"""The number of processors that counts as full use of a worker without a limit."""


def measured(
    workers: Iterable[Workload], usage: Callable[[Workload], WorkerUsage | None], limits: ResourceLimits
) -> Measure:
    """Returns the measure of the running workers. `usage` gives None for a worker that has not reported of late."""
    running = [w for w in workers if w.goal is not Goal.REMOVED and w.is_in(ProcessState.RUNNING)]
    usages = [reading for reading in map(usage, running) if reading is not None]
    if not usages:
        return Measure(None, whole=False)
    each = limits.cpus or WITHOUT_LIMIT
    percent = 100.0 * sum(reading.cpus for reading in usages) / (each * len(usages))
    return Measure(percent, sum(reading.lag_records for reading in usages), whole=len(usages) == len(running))


def is_settled(cluster: WorkerCluster) -> bool:
    """Returns whether all of its workers run, and no other: only then their use is meaningful."""
    status = cluster.status
    return (
        cluster.goal is ClusterGoal.RUNNING
        and status.state is ClusterState.RUNNING
        and status.rollout is None
        and not status.leaving_workers
        and status.ready_workers == cluster.wanted_workers
    )

"""Measures the use of a cluster's workers, from their last reports. Pure."""

from __future__ import annotations

from collections.abc import Callable

from keelman.api.connect.v1.worker_pb2 import WorkerUsage
from keelman.model.cluster import ClusterGoal, ClusterState, WorkerCluster
from keelman.model.workload import Goal, ProcessState, Workload, WorkloadKind
from keelman.state.autoscaling.decision import Measure
from keelman.state.planning.places import has_labels
from keelman.state.resources.snapshot import Snapshot

WITHOUT_LIMIT = 1.0
"""The number of processors that counts as full use of a worker without a limit."""


def measured(cluster: WorkerCluster, snapshot: Snapshot, usage: Callable[[Workload], WorkerUsage | None]) -> Measure:
    """Returns the measure of a cluster's running workers. `usage` gives None for a worker that has not reported of
    late."""
    workers = snapshot.workloads_in(WorkloadKind.WORKER, cluster.name)
    running = [w for w in workers if w.goal is not Goal.REMOVED and w.is_in(ProcessState.RUNNING)]
    usages = [reading for reading in map(usage, running) if reading is not None]
    if not usages:
        return Measure(None, whole=False)
    each = cluster.spec.limits.cpus or WITHOUT_LIMIT
    percent = 100.0 * sum(reading.cpus for reading in usages) / (each * len(usages))
    waiting = sum(reading.waiting_tasks for reading in usages)
    return Measure(
        percent,
        sum(reading.lag_records for reading in usages),
        whole=len(usages) == len(running),
        rate=sum(reading.records_per_second for reading in usages) * len(running) / len(usages),
        waiting=waiting,
        running=sum(reading.running_tasks for reading in usages),
        workers=len(running),
        free_nodes=len(_placeable(cluster, snapshot) - {worker.node for worker in workers}) if waiting else 0,
    )


def _placeable(cluster: WorkerCluster, snapshot: Snapshot) -> set[str]:
    """Returns the nodes on which a worker may be placed."""
    selector = cluster.spec.node_selector
    return {node.name for node in snapshot.nodes.values() if node.takes_new and has_labels(node, selector)}


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

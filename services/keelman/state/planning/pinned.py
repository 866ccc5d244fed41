"""Finds the workloads that do not leave a drained node. Pure."""

from __future__ import annotations

from keelman.model.workload import Goal, Workload, WorkloadKind
from keelman.state.resources.snapshot import Snapshot


def pinned_workloads(snapshot: Snapshot, node: str) -> tuple[str, ...]:
    """Returns the brokers of a node and the workers whose clusters name it, by name: only their users can move them
    away."""
    return tuple(w.name for w in snapshot.workloads_on(node) if w.goal is not Goal.REMOVED and _is_pinned(snapshot, w))


def _is_pinned(snapshot: Snapshot, workload: Workload) -> bool:
    if workload.kind is WorkloadKind.BROKER:
        return True
    cluster = snapshot.worker_clusters.get(workload.cluster)
    return workload.kind is WorkloadKind.WORKER and cluster is not None and bool(cluster.spec.nodes)

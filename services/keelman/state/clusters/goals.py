"""Stores the common parts of broker clusters and worker clusters: columns of their rows, and their goals."""

from __future__ import annotations

import dataclasses

from keelman.model.cluster import BrokerCluster, ClusterGoal, WorkerCluster
from keelman.model.errors import FailedPrecondition
from keelman.state.clusters.status import with_status
from keelman.state.resources.snapshot import C
from keelman.state.resources.transaction import Transaction


def check_not_deleted(cluster: BrokerCluster | WorkerCluster) -> None:
    """Raises FailedPrecondition for a cluster that is being deleted."""
    if cluster.goal is ClusterGoal.DELETED:
        what = "broker cluster" if isinstance(cluster, BrokerCluster) else "worker cluster"
        raise FailedPrecondition(f"{what} {cluster.name!r} is being deleted", reason="DELETING")


def saved(tx: Transaction, cluster: C) -> C:
    """Stores a cluster that is new or changed; its status is derived again."""
    return tx.put(with_status(cluster, tx.snapshot, tx.now))


def with_goal(tx: Transaction, cluster: C, goal: ClusterGoal, *, force: bool = False) -> C:
    """Returns the cluster unchanged, or with another goal in a new generation; with `force` its processes are
    killed."""
    if cluster.goal is goal and (cluster.force or not force):
        return cluster
    force = goal is not ClusterGoal.RUNNING and (force or cluster.force)
    return saved(tx, dataclasses.replace(cluster, goal=goal, force=force, generation=cluster.generation + 1, note=""))

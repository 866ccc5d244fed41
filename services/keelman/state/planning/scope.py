"""Finds the resources that a plan must cover after some changes: all others are as the last plan left them. Pure.

A cluster is planned from its spec, its workloads, the nodes these are on with their Spark services, and the addresses
of its brokers and of the drivers of its Spark cluster. A cluster that waits for anything else has a note, and is
planned each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from keelman.model.cluster import BrokerCluster, WorkerCluster
from keelman.model.node import Node
from keelman.model.spark_cluster import SparkCluster
from keelman.model.workload import Goal, Workload, WorkloadKind, spark_cluster_of
from keelman.state.resources.snapshot import BROKER_CLUSTER, SPARK_CLUSTER, WORKER_CLUSTER, Resource, Snapshot


@dataclass(slots=True)
class Scope:
    """Clusters to plan, and nodes whose Spark services to plan. `everything` when all are. Workers are planned after
    Spark clusters, whose drivers' addresses they get."""

    everything: bool = False
    broker_clusters: set[str] = field(default_factory=set)
    worker_clusters: set[str] = field(default_factory=set)
    spark_clusters: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)

    def widen(self, other: Scope) -> None:
        """Adds another scope to this one."""
        self.everything |= other.everything
        self.broker_clusters |= other.broker_clusters
        self.worker_clusters |= other.worker_clusters
        self.spark_clusters |= other.spark_clusters
        self.nodes |= other.nodes


def everything(snapshot: Snapshot) -> Scope:
    """Returns the scope of everything."""
    return Scope(
        True, set(snapshot.broker_clusters), set(snapshot.worker_clusters), set(snapshot.spark_clusters),
        set(snapshot.nodes),
    )  # fmt: skip


def scope_of(
    changes: Iterable[tuple[Resource | None, Resource | None]], snapshot: Snapshot, events_broker_cluster: str
) -> Scope:
    """Returns the scope that changes from old to new resources may affect, in the snapshot after them."""
    scope = Scope()
    for old, new in changes:
        for state in (old, new):
            _add(scope, state)
        for brokers in _whose_brokers(old, new, snapshot):
            scope.broker_clusters.add(brokers)
            scope.worker_clusters |= {c.name for c in snapshot.users_of(brokers)}
            scope.everything |= brokers == events_broker_cluster
        _add_users_of_drivers(scope, old, new, snapshot)
    if scope.everything:
        return everything(snapshot)
    scope.spark_clusters |= snapshot.waiting(SPARK_CLUSTER)
    for cluster in scope.spark_clusters:
        scope.nodes |= {w.node for w in snapshot.workloads_in(WorkloadKind.SPARK, cluster)}
    for cluster in scope.worker_clusters:
        scope.nodes |= {w.node for w in snapshot.workloads_in(WorkloadKind.WORKER, cluster)}
    for node in scope.nodes:
        for workload in snapshot.workloads_on(node):
            _of_workload(scope, workload)
    scope.broker_clusters |= snapshot.waiting(BROKER_CLUSTER)
    scope.worker_clusters |= snapshot.waiting(WORKER_CLUSTER)
    scope.broker_clusters &= snapshot.broker_clusters.keys()
    scope.worker_clusters &= snapshot.worker_clusters.keys()
    scope.spark_clusters &= snapshot.spark_clusters.keys()
    return scope


def _add(scope: Scope, state: Resource | None) -> None:
    match state:
        case Node():
            scope.nodes.add(state.name)
        case Workload():
            _of_workload(scope, state)
        case BrokerCluster():
            scope.broker_clusters.add(state.name)
        case WorkerCluster():
            scope.worker_clusters.add(state.name)
            scope.broker_clusters.add(state.spec.broker_cluster)  # it may await its last user's end
            scope.spark_clusters |= {state.spec.spark_cluster} - {""}
        case SparkCluster():
            scope.spark_clusters.add(state.name)


def _of_workload(scope: Scope, workload: Workload) -> None:
    match workload.kind:
        case WorkloadKind.BROKER:
            scope.broker_clusters.add(workload.cluster)
        case WorkloadKind.WORKER:
            scope.worker_clusters.add(workload.cluster)
            scope.nodes.add(workload.node)
            scope.spark_clusters |= {spark_cluster_of(workload)} - {""}
        case WorkloadKind.SPARK:
            scope.nodes.add(workload.node)
            scope.spark_clusters |= {workload.cluster} - {""}


def _add_users_of_drivers(scope: Scope, old: Resource | None, new: Resource | None, snapshot: Snapshot) -> None:
    """Adds the worker clusters to which a driver gives another address, and the Spark clusters whose drivers a node may
    or may no longer have."""
    subject = new if old is None else old
    if isinstance(subject, Workload) and subject.kind is WorkloadKind.SPARK and subject.cluster:
        addresses = [w.address if isinstance(w, Workload) and w.goal is Goal.RUNNING else None for w in (old, new)]
        if addresses[0] != addresses[1]:
            scope.worker_clusters |= {c.name for c in snapshot.users_of_spark(subject.cluster)}
            scope.worker_clusters |= {w.cluster for w in snapshot.linked_to(subject.cluster)}
    elif isinstance(subject, Node):
        takes = [(n.takes_new, n.host, n.spec.draining, n.state) if isinstance(n, Node) else None for n in (old, new)]
        if takes[0] != takes[1]:
            scope.spark_clusters |= snapshot.spark_clusters.keys()


def _whose_brokers(old: Resource | None, new: Resource | None, snapshot: Snapshot) -> Iterable[str]:
    """Returns the broker clusters whose change concerns their users."""
    subject = new if old is None else old
    if isinstance(subject, BrokerCluster):
        seen = [(c.spec, c.goal) if isinstance(c, BrokerCluster) else None for c in (old, new)]
        return [subject.name] if seen[0] != seen[1] else []
    if isinstance(subject, Workload) and subject.kind is WorkloadKind.BROKER:
        addresses = [w.address if isinstance(w, Workload) else None for w in (old, new)]
        return [subject.cluster] if addresses[0] != addresses[1] else []
    if isinstance(subject, Node):
        closed = [(n.spec.cordoned, n.spec.draining) if isinstance(n, Node) else None for n in (old, new)]
        return snapshot.pinned_to(BROKER_CLUSTER, subject.name) if closed[0] != closed[1] else []
    return []

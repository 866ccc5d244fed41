"""Finds the resources that a plan must cover after some changes: all others are as the last plan left them. Pure.

A cluster is planned from its spec, its workloads, the nodes these are on with their Spark services, and the addresses
of its brokers. A cluster that waits for anything else has a note, and is planned each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from keelman.model.cluster import BrokerCluster, WorkerCluster
from keelman.model.node import Node
from keelman.model.workload import Workload, WorkloadKind
from keelman.state.resources.snapshot import BROKER_CLUSTER, WORKER_CLUSTER, Resource, Snapshot


@dataclass(slots=True)
class Scope:
    """Clusters to plan, and nodes whose Spark services to plan. `everything` when all are."""

    everything: bool = False
    broker_clusters: set[str] = field(default_factory=set)
    worker_clusters: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)

    def widen(self, other: Scope) -> None:
        """Adds another scope to this one."""
        self.everything |= other.everything
        self.broker_clusters |= other.broker_clusters
        self.worker_clusters |= other.worker_clusters
        self.nodes |= other.nodes


def everything(snapshot: Snapshot) -> Scope:
    """Returns the scope of everything."""
    return Scope(True, set(snapshot.broker_clusters), set(snapshot.worker_clusters), set(snapshot.nodes))


def scope_of(
    changes: Iterable[tuple[Resource | None, Resource | None]], snapshot: Snapshot, events_broker_cluster: str
) -> Scope:
    """Returns the scope that changes from old to new resources may affect, in the snapshot after them."""
    found = Scope()
    for old, new in changes:
        for one in (old, new):
            match one:
                case Node():
                    found.nodes.add(one.name)
                case Workload():
                    _of_workload(found, one)
                case BrokerCluster():
                    found.broker_clusters.add(one.name)
                case WorkerCluster():
                    found.worker_clusters.add(one.name)
                    found.broker_clusters.add(one.spec.broker_cluster)  # it may await its last user's end
        for brokers in _whose_brokers(old, new, snapshot):
            found.broker_clusters.add(brokers)
            found.worker_clusters |= {c.name for c in snapshot.users_of(brokers)}
            found.everything |= brokers == events_broker_cluster
    if found.everything:
        return everything(snapshot)
    for cluster in found.worker_clusters:
        found.nodes |= {w.node for w in snapshot.workloads_in(WorkloadKind.WORKER, cluster)}
    for node in found.nodes:
        for workload in snapshot.workloads_on(node):
            _of_workload(found, workload)
    found.broker_clusters |= snapshot.waiting(BROKER_CLUSTER)
    found.worker_clusters |= snapshot.waiting(WORKER_CLUSTER)
    found.broker_clusters &= snapshot.broker_clusters.keys()
    found.worker_clusters &= snapshot.worker_clusters.keys()
    return found


def _of_workload(found: Scope, workload: Workload) -> None:
    match workload.kind:
        case WorkloadKind.BROKER:
            found.broker_clusters.add(workload.cluster)
        case WorkloadKind.WORKER:
            found.worker_clusters.add(workload.cluster)
            found.nodes.add(workload.node)
        case WorkloadKind.SPARK:
            found.nodes.add(workload.node)


def _whose_brokers(old: Resource | None, new: Resource | None, snapshot: Snapshot) -> Iterable[str]:
    """Returns the broker clusters whose change concerns their users."""
    one = new if old is None else old
    if isinstance(one, BrokerCluster):
        seen = [(c.spec, c.goal) if isinstance(c, BrokerCluster) else None for c in (old, new)]
        return [one.name] if seen[0] != seen[1] else []
    if isinstance(one, Workload) and one.kind is WorkloadKind.BROKER:
        addresses = [w.address if isinstance(w, Workload) else None for w in (old, new)]
        return [one.cluster] if addresses[0] != addresses[1] else []
    if isinstance(one, Node):
        closed = [(n.spec.cordoned, n.spec.draining) if isinstance(n, Node) else None for n in (old, new)]
        return snapshot.pinned_to(BROKER_CLUSTER, one.name) if closed[0] != closed[1] else []
    return []

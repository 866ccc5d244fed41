"""Everything the state service knows, at one moment: what the planner and the statuses are derived from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keelman.model.cluster import BrokerCluster, WorkerCluster
from keelman.model.node import Node, NodeState
from keelman.model.workload import Workload, WorkloadKind


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Nodes, clusters and workloads by name."""

    nodes: Mapping[str, Node] = field(default_factory=dict)
    broker_clusters: Mapping[str, BrokerCluster] = field(default_factory=dict)
    worker_clusters: Mapping[str, WorkerCluster] = field(default_factory=dict)
    workloads: Mapping[str, Workload] = field(default_factory=dict)

    def workloads_in(self, kind: WorkloadKind, cluster: str) -> list[Workload]:
        """The brokers or workers of a cluster, in the order of their numbers."""
        found = [w for w in self.workloads.values() if w.kind is kind and w.cluster == cluster]
        return sorted(found, key=lambda w: int(w.name.rpartition("/")[2]))

    def is_offline(self, node: str) -> bool:
        """True when the node is known to be offline or not known at all."""
        return node not in self.nodes or self.nodes[node].state is NodeState.OFFLINE

    def users_of(self, broker_cluster: str) -> list[WorkerCluster]:
        """Worker clusters on a broker cluster, by name."""
        users = [c for c in self.worker_clusters.values() if c.spec.broker_cluster == broker_cluster]
        return sorted(users, key=lambda c: c.name)

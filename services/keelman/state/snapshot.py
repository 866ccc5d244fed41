"""Everything the state service knows at one moment. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from keelman.model.cluster import (
    BrokerCluster,
    WorkerCluster,
)
from keelman.model.errors import NotFound
from keelman.model.node import Node, NodeState
from keelman.model.workload import Workload, WorkloadKind

MAX_NAMED = 20  # in an error
T = TypeVar("T")
C = TypeVar("C", BrokerCluster, WorkerCluster)


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

    def node(self, name: str) -> Node:
        """The node of that name; raises NotFound."""
        return _get("node", self.nodes, name)

    def broker_cluster(self, name: str) -> BrokerCluster:
        """The broker cluster of that name; raises NotFound."""
        return _get("broker cluster", self.broker_clusters, name)

    def worker_cluster(self, name: str) -> WorkerCluster:
        """The worker cluster of that name; raises NotFound."""
        return _get("worker cluster", self.worker_clusters, name)

    def worker(self, name: str) -> Workload:
        """The workload of a worker's name, e.g. "demo/0"; raises NotFound."""
        workload = self.workloads.get(f"{WorkloadKind.WORKER}/{name}")
        if workload is None:
            if cluster := name.rpartition("/")[0]:
                self.worker_cluster(cluster)
            raise NotFound(
                f"no worker is named {name!r} (a name is <worker cluster>/<number>)", metadata={"worker": name}
            )
        return workload


def _get(noun: str, known: Mapping[str, T], name: str) -> T:
    if name in known:
        return known[name]
    names = sorted(known)
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    there = f"those there are: {', '.join(names[:MAX_NAMED])}{more}" if names else "there is none yet"
    raise NotFound(f"no {noun} is named {name!r}: {there}", metadata={noun.replace(" ", "_"): name})

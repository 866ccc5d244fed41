"""Decides which broker each node has, which nodes get none yet, and which of the brokers' processes run. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from keelman.model.cluster import BrokerCluster, BrokerTls, ManagedBrokers
from keelman.model.workload import Goal, ProcessState, Workload, WorkloadKind
from keelman.state.resources.snapshot import Snapshot

QUORUM = 3
WITH_TLS = frozenset({BrokerTls.SERVER, BrokerTls.MUTUAL})


def brokers_of(snapshot: Snapshot, cluster: BrokerCluster) -> list[Workload]:
    """Returns the brokers that a managed cluster has and keeps, in the order of its nodes."""
    if not isinstance(cluster.spec, ManagedBrokers):
        return []
    there = {w.node: w for w in snapshot.workloads_in(WorkloadKind.BROKER, cluster.name)}
    return [there[node] for node in cluster.spec.nodes if node in there]


def held_nodes(snapshot: Snapshot, cluster: BrokerCluster) -> dict[str, str]:
    """Returns the nodes of a managed cluster that shall get a broker but take nothing new, or would start it without
    the cluster's TLS, each with the reason for people."""
    if not isinstance(cluster.spec, ManagedBrokers):
        return {}
    had = {w.node for w in snapshot.workloads_in(WorkloadKind.BROKER, cluster.name)}
    new = [snapshot.nodes[name] for name in cluster.spec.nodes if name not in had and name in snapshot.nodes]
    reasons = {}
    for node in new:
        if node.spec.draining or node.spec.cordoned:
            reasons[node.name] = f"which is {'drained' if node.spec.draining else 'cordoned'}"
        elif cluster.spec.tls in WITH_TLS and node.host and not node.broker_tls:
            reasons[node.name] = "whose agent is of a version that starts brokers without TLS: upgrade it"
    return {name: f"waits for node {name}, {reason}" for name, reason in reasons.items()}


def nodes_with_brokers(snapshot: Snapshot, cluster: BrokerCluster) -> list[str]:
    """Returns the nodes that have a broker of a managed cluster or get one now; none while a new cluster has too few
    nodes for its controllers."""
    if not isinstance(cluster.spec, ManagedBrokers):
        return []
    held = held_nodes(snapshot, cluster)
    nodes = [name for name in cluster.spec.nodes if name not in held]
    begun = bool(snapshot.workloads_in(WorkloadKind.BROKER, cluster.name))
    return nodes if begun or len(nodes) >= controllers_of(cluster.spec) else []


def controllers_of(managed_brokers: ManagedBrokers) -> int:
    """Returns the number of controllers of a new cluster."""
    return managed_brokers.controllers or (QUORUM if len(managed_brokers.nodes) >= QUORUM else 1)


def running_mark(cluster: BrokerCluster, brokers: Sequence[Workload]) -> str:
    """Identifies the present processes of a cluster's brokers and the generation of the cluster; empty unless all run.
    Findings about these processes hold for no others."""
    if not brokers or not all(b.goal is Goal.RUNNING and b.is_in(ProcessState.RUNNING) for b in brokers):
        return ""
    lives = [(b.name, b.generation, b.current.pid, b.current.restarts) for b in brokers if b.current is not None]
    return hashlib.sha256(repr((cluster.generation, lives)).encode()).hexdigest()[:16]


def numbers_of(nodes: Sequence[str], present: Sequence[Workload]) -> dict[str, int]:
    """Returns each node's broker number: its present one, else the lowest free one; leaving brokers keep theirs."""
    had = {w.node: int(w.name.rpartition("/")[2]) for w in present}
    taken = set(had.values())
    free = (n for n in range(len(nodes) + len(taken)) if n not in taken)
    return {node: had[node] if node in had else next(free) for node in nodes}

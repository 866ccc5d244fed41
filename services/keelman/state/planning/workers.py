"""Plans the workers of worker clusters. Pure."""

from __future__ import annotations

from keelman.model.cluster import ClusterGoal, WorkerCluster
from keelman.model.node import NodeState
from keelman.model.workload import (
    Goal,
    WorkerSpec,
    WorkloadKind,
    joined_address,
    worker_name,
)
from keelman.state.planning.draft import Draft, NoPort
from keelman.state.planning.sparks import port_of, spark_on
from keelman.state.properties import worker_properties


def plan_workers(draft: Draft, cluster: WorkerCluster) -> bool:
    """Plans one worker cluster; True when it is to be deleted and nothing of it is left."""
    present = draft.snapshot.workloads_in(WorkloadKind.WORKER, cluster.name)
    if cluster.goal is ClusterGoal.DELETED:
        for workload in present:
            draft.remove(workload)
        return not any(w.name in draft.workloads for w in present)
    if cluster.goal is ClusterGoal.STOPPED:
        for workload in present:
            draft.set_goal(workload, Goal.STOPPED)
        return False
    bootstrap, brokers = draft.bootstrap_of(cluster.spec.broker_cluster)
    if not bootstrap:
        draft.worker_notes[cluster.name] = f"waits for the brokers of {cluster.spec.broker_cluster} to be placed"
        return False
    for number in range(cluster.spec.wanted_workers):
        name = worker_name(cluster.name, number)
        node = cluster.spec.nodes[number] if cluster.spec.nodes else _node_for(draft, cluster.name, name)
        if node is None:
            draft.worker_notes[cluster.name] = "no node is online to place a worker on"
            continue
        try:
            spec = _worker_spec(draft, cluster, name, node, bootstrap, brokers=brokers)
        except NoPort as problem:
            draft.worker_notes[cluster.name] = str(problem)
            continue
        draft.want(name, node, Goal.RUNNING, spec)
    return False


def _node_for(draft: Draft, cluster: str, name: str) -> str | None:
    """Where a movable worker goes: it stays unless its node is offline; else to the least loaded; None when no node is
    online, but one that is placed stays placed."""
    old = draft.workloads.get(name)
    if old is not None and not draft.snapshot.is_offline(old.node):
        return old.node
    online = [n.name for n in draft.snapshot.nodes.values() if n.state is NodeState.ONLINE]
    if not online:
        return None if old is None else old.node

    def load(node: str) -> tuple[int, int, str]:
        others = [w for w in draft.workers_on(node, except_for=name) if w.goal is Goal.RUNNING]
        return len(others), sum(w.cluster == cluster for w in others), node

    return min(online, key=load)


def _worker_spec(
    draft: Draft, cluster: WorkerCluster, name: str, node: str, bootstrap: str, *, brokers: int
) -> WorkerSpec:
    spark = spark_on(draft, node)
    port = port_of(draft, name, node, draft.limits.worker_ports)
    host = draft.node(node).host
    reports, _ = draft.bootstrap_of(draft.limits.events_broker_cluster)
    listener = f"http://{joined_address(host, port)}"
    properties = worker_properties(cluster, bootstrap_servers=bootstrap, brokers=brokers, listener=listener)
    return WorkerSpec(cluster.name, host, port, properties, spark.address, reports)

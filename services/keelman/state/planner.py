"""The planner: what is wanted and what is, in; what the agents are to run, out. No I/O, no clock, no randomness.

Rules. Brokers are pinned to their nodes and, once they have data, to their ports. Workers of a `nodes` placement are
pinned too; workers of a `count` placement go to the online node with the fewest workers and leave a node that is
offline. A node that carries a running worker carries one Spark service; it ends when no worker there needs it. Any
change of a workload is a new generation. A workload that is to go stays until its node says REMOVED; one that has no
data of its own does not wait for an offline node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from keelman.model.cluster import BrokerCluster, ClusterGoal, ExternalBrokers, ManagedBrokers, WorkerCluster
from keelman.model.node import NodeState
from keelman.model.workload import (
    BrokerSpec,
    Goal,
    ProcessState,
    SparkSpec,
    WorkerSpec,
    Workload,
    WorkloadKind,
    broker_name,
    joined_address,
    spark_name,
    worker_name,
)
from keelman.state.draft import Draft, Limits, NoPort, ports_taken
from keelman.state.properties import VOTERS, worker_properties
from keelman.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes: workloads to store, names to forget, clusters that are gone, and what stands in the way of a cluster
    (only where that changed)."""

    put: tuple[Workload, ...] = ()
    drop: tuple[str, ...] = ()
    gone_broker_clusters: tuple[str, ...] = ()
    gone_worker_clusters: tuple[str, ...] = ()
    broker_notes: Mapping[str, str] = field(default_factory=dict)
    worker_notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True when the world is as wanted, or nothing more can be asked of it now."""
        return self == Plan()


def make_plan(snapshot: Snapshot, limits: Limits) -> Plan:
    """The plan for one snapshot. Planning again for what the plan leads to gives an empty plan."""
    draft = Draft(snapshot, limits)
    gone_brokers = tuple(n for n, c in sorted(snapshot.broker_clusters.items()) if _plan_brokers(draft, c))
    gone_workers = tuple(n for n, c in sorted(snapshot.worker_clusters.items()) if _plan_workers(draft, c))
    _plan_sparks(draft)
    before, after = snapshot.workloads, draft.workloads
    return Plan(
        put=tuple(w for n, w in sorted(after.items()) if before.get(n) != w),
        drop=tuple(sorted(before.keys() - after.keys())),
        # A broker cluster's row outlives its users' rows, which name it.
        gone_broker_clusters=tuple(
            n for n in gone_brokers if all(u.name in gone_workers for u in snapshot.users_of(n))
        ),
        gone_worker_clusters=gone_workers,
        broker_notes={
            n: draft.broker_notes.get(n, "")
            for n, c in sorted(snapshot.broker_clusters.items())
            if n not in gone_brokers and c.note != draft.broker_notes.get(n, "")
        },
        worker_notes={
            n: draft.worker_notes.get(n, "")
            for n, c in sorted(snapshot.worker_clusters.items())
            if n not in gone_workers and c.note != draft.worker_notes.get(n, "")
        },
    )


def _plan_brokers(draft: Draft, cluster: BrokerCluster) -> bool:
    """Plans one broker cluster; True when it is to be deleted and nothing of it is left."""
    present = draft.snapshot.workloads_in(WorkloadKind.BROKER, cluster.name)
    if cluster.goal is ClusterGoal.DELETED:
        for workload in present:
            draft.remove(workload)
        return not any(w.name in draft.workloads for w in present)
    if isinstance(cluster.spec, ExternalBrokers):
        return False
    if cluster.goal is ClusterGoal.STOPPED:
        for workload in present:
            draft.set_goal(workload, Goal.STOPPED)
        return False
    try:
        specs = _broker_specs(draft, cluster, cluster.spec)
    except NoPort as problem:
        draft.broker_notes[cluster.name] = str(problem)
        return False
    for number, (node, spec) in enumerate(zip(cluster.spec.nodes, specs, strict=True)):
        draft.want(broker_name(cluster.name, number), node, Goal.RUNNING, spec)
    return False


def _broker_specs(draft: Draft, cluster: BrokerCluster, wanted: ManagedBrokers) -> list[BrokerSpec]:
    """The brokers of a cluster. All ports come first: each broker must know every controller of its quorum."""
    places = []
    given: dict[str, set[int]] = {}
    for number, node in enumerate(wanted.nodes):
        old = draft.workloads.get(broker_name(cluster.name, number))
        host = draft.node(node).host
        if old is not None and isinstance(old.spec, BrokerSpec) and (old.has_run or not ports_taken(old)):
            pair = [old.spec.port, old.spec.controller_port]
        else:
            tried = () if old is None else (*old.tried_ports, *ports_taken(old))
            pair = draft.ports(node, draft.limits.broker_ports, 2, (*tried, *given.get(host, ())))
        given.setdefault(host, set()).update(pair)
        places.append((host, pair[0], pair[1]))
    properties = dict(wanted.properties)
    if len(places) > 1:
        properties[VOTERS] = ",".join(f"{i}@{joined_address(h, c)}" for i, (h, _, c) in enumerate(places))
    return [
        BrokerSpec(cluster.name, cluster.kafka_cluster_id, i, host, port, controller, properties)
        for i, (host, port, controller) in enumerate(places)
    ]


def _plan_workers(draft: Draft, cluster: WorkerCluster) -> bool:
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
    spark = _spark_on(draft, node)
    port = _port_of(draft, name, node, draft.limits.worker_ports)
    host = draft.node(node).host
    reports, _ = draft.bootstrap_of(draft.limits.events_broker_cluster)
    listener = f"http://{joined_address(host, port)}"
    properties = worker_properties(cluster, bootstrap_servers=bootstrap, brokers=brokers, listener=listener)
    return WorkerSpec(cluster.name, host, port, properties, spark.address, reports)


def _spark_on(draft: Draft, node: str) -> Workload:
    """Wants the node's Spark service to run."""
    name = spark_name(node)
    port = _port_of(draft, name, node, draft.limits.spark_ports)
    reports, _ = draft.bootstrap_of(draft.limits.events_broker_cluster)
    draft.want(name, node, Goal.RUNNING, SparkSpec(draft.node(node).host, port, draft.limits.spark_master, reports))
    return draft.workloads[name]


def _port_of(draft: Draft, name: str, node: str, wanted: range) -> int:
    """The port that a worker or Spark service has on this node, or the next free one."""
    old = draft.workloads.get(name)
    if old is None or old.node != node:
        return draft.ports(node, wanted)[0]
    if ports_taken(old):
        return draft.ports(node, wanted, tried=(*old.tried_ports, *ports_taken(old)))[0]
    return old.spec.port


def _plan_sparks(draft: Draft) -> None:
    """Ends Spark services that no worker needs: not before the workers there have ended."""
    for spark in list(_of_kind(draft, WorkloadKind.SPARK)):
        placed = draft.workers_on(spark.node)
        if any(w.goal is Goal.RUNNING or not _has_ended(w) for w in placed):
            continue
        if placed:
            draft.set_goal(spark, Goal.STOPPED)
        else:
            draft.remove(spark)


def _of_kind(draft: Draft, kind: WorkloadKind) -> Iterator[Workload]:
    return (w for w in draft.workloads.values() if w.kind is kind)


def _has_ended(workload: Workload) -> bool:
    return workload.is_in(ProcessState.STOPPED) or workload.is_in(ProcessState.REMOVED)

"""Derives the clusters' statuses from a snapshot. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from keelman.model.cluster import (
    BrokerCluster,
    BrokerClusterStatus,
    ClusterGoal,
    ClusterState,
    ExternalBrokers,
    RolloutState,
    WorkerCluster,
    WorkerClusterStatus,
)
from keelman.model.workload import (
    LASTING,
    REACH_PROBLEMS,
    SPARK_PROBLEMS,
    Goal,
    ProcessState,
    WorkerSpec,
    Workload,
    WorkloadKind,
    spark_cluster_of,
    spark_of,
)
from keelman.state.clusters.kafka_names import clash
from keelman.state.clusters.spark_status import is_served, present_drivers, spark_cluster_status
from keelman.state.planning.draft import ports_taken
from keelman.state.planning.kept_brokers import brokers_of, nodes_with_brokers
from keelman.state.planning.rollout import rollout_of
from keelman.state.planning.sparks import needs_spark
from keelman.state.resources.snapshot import C, Snapshot


def with_status(cluster: C, snapshot: Snapshot, now: datetime) -> C:
    """Returns the cluster with its status, derived again at this time."""
    if isinstance(cluster, BrokerCluster):
        brokers = broker_cluster_status(cluster, snapshot)
        since = (cluster.status.down_since or now) if _is_out_of_reach(cluster, snapshot) else None
        return dataclasses.replace(cluster, status=dataclasses.replace(brokers, down_since=since))
    workers = worker_cluster_status(cluster, snapshot)
    is_down = cluster.goal is ClusterGoal.RUNNING and not workers.ready_workers
    since = (cluster.status.down_since or now) if is_down else None
    return dataclasses.replace(cluster, status=dataclasses.replace(workers, down_since=since))


def _is_out_of_reach(cluster: BrokerCluster, snapshot: Snapshot) -> bool:
    """Returns whether none of its brokers is known to answer; external ones that were never called do not count as
    unreachable."""
    if isinstance(cluster.spec, ExternalBrokers):
        return cluster.reachable is False
    brokers = snapshot.workloads_in(WorkloadKind.BROKER, cluster.name)
    return not any(b.is_in(ProcessState.RUNNING) and not snapshot.is_offline(b.node) for b in brokers)


def broker_cluster_status(cluster: BrokerCluster, snapshot: Snapshot) -> BrokerClusterStatus:
    """Returns the status of a broker cluster."""
    if isinstance(cluster.spec, ExternalBrokers):
        return _external(cluster, cluster.spec)
    brokers = brokers_of(snapshot, cluster)
    if cluster.goal is not ClusterGoal.RUNNING:
        brokers = snapshot.workloads_in(WorkloadKind.BROKER, cluster.name)
    state, message = _state(cluster.goal, cluster.note, brokers, len(cluster.spec.nodes), snapshot)
    placed = bool(brokers) and len(brokers) >= len(nodes_with_brokers(snapshot, cluster))
    stuck = cluster.goal is ClusterGoal.RUNNING and is_stuck(brokers, (cluster.spec.port,))
    return BrokerClusterStatus(state, message, ",".join(b.address for b in brokers) if placed else "", stuck)


def worker_cluster_status(cluster: WorkerCluster, snapshot: Snapshot) -> WorkerClusterStatus:
    """Returns the status of a worker cluster. A worker without its Spark service answers REST, but copies nothing."""
    workers = snapshot.workloads_in(WorkloadKind.WORKER, cluster.name)
    leaving = sum(w.goal is Goal.REMOVED for w in workers)
    if cluster.goal is ClusterGoal.RUNNING:  # leaving workers no longer belong to it
        workers = [w for w in workers if w.goal is not Goal.REMOVED]
    names = {spark_of(w) for w in workers if needs_spark(w)}
    sparks = [snapshot.workloads[name] for name in sorted(names) if name in snapshot.workloads]
    drivers = _without_service(workers, snapshot)
    state, message = _state(cluster.goal, cluster.note, workers, cluster.wanted_workers, snapshot)
    if cluster.goal is ClusterGoal.RUNNING:
        broken = [_why_failed(s) for s in sparks if s.is_broken] + drivers
        if broken:
            state, message = ClusterState.DEGRADED, "; ".join(filter(None, [message, *broken]))
        elif state is ClusterState.RUNNING and not _are_served(workers, sparks, snapshot):
            state, message = ClusterState.STARTING, "the Spark service is starting"
    ready = [w for w in workers if w.is_in(ProcessState.RUNNING) and not snapshot.is_offline(w.node)]
    rollout = rollout_of(cluster, workers, snapshot)
    if rollout is not None and rollout.state is RolloutState.HALTED and state is ClusterState.RUNNING:
        state, message = ClusterState.DEGRADED, f"the rollout was halted at {rollout.worker}: {rollout.message}"
    message = "; ".join(filter(None, [message, clash(cluster, snapshot)]))
    stuck = cluster.goal is ClusterGoal.RUNNING and is_stuck((*workers, *sparks), cluster.spec.ports)
    urls = tuple(_rest_url(w) for w in ready)
    return WorkerClusterStatus(state, message, len(ready), urls, rollout, stuck, leaving)


def _are_served(workers: Sequence[Workload], sparks: Sequence[Workload], snapshot: Snapshot) -> bool:
    """Returns whether these Spark services of nodes run, and a driver of each Spark cluster of the workers."""
    clusters = {spark_cluster_of(w) for w in workers} - {""}
    served = all(is_served(present_drivers(name, snapshot), snapshot) for name in clusters)
    return served and all(s.is_in(ProcessState.RUNNING) for s in sparks)


def _without_service(workers: Sequence[Workload], snapshot: Snapshot) -> list[str]:
    """Returns why Spark clusters of these workers do not copy, for people: no driver runs and one is broken, or those
    that run have no executors. A standby that is broken keeps nobody from copying."""
    problems = []
    for name in sorted({spark_cluster_of(w) for w in workers} - {""}):
        cluster = snapshot.spark_clusters.get(name)
        if cluster is None:
            continue
        status = spark_cluster_status(cluster, snapshot)
        lacks = status.reason in SPARK_PROBLEMS or not is_served(present_drivers(name, snapshot), snapshot)
        if status.state is ClusterState.DEGRADED and lacks:
            problems.append(f"spark cluster {name}: {status.message}")
    return problems


def _rest_url(worker: Workload) -> str:
    scheme = "https" if isinstance(worker.spec, WorkerSpec) and worker.spec.https else "http"
    return f"{scheme}://{worker.address}"


def _external(cluster: BrokerCluster, spec: ExternalBrokers) -> BrokerClusterStatus:
    if cluster.goal is ClusterGoal.DELETED:
        return BrokerClusterStatus(ClusterState.DELETING, "", spec.bootstrap_servers)
    match cluster.reachable:
        case None:
            return BrokerClusterStatus(
                ClusterState.STARTING, "its brokers were not queried yet", spec.bootstrap_servers
            )
        case True:
            return BrokerClusterStatus(ClusterState.RUNNING, "", spec.bootstrap_servers)
        case False:
            message = cluster.seen.problem or f"none of {spec.bootstrap_servers} answers"
            return BrokerClusterStatus(ClusterState.DEGRADED, message, spec.bootstrap_servers)


def _state(
    goal: ClusterGoal, note: str, workloads: Sequence[Workload], expected: int, snapshot: Snapshot
) -> tuple[ClusterState, str]:
    lost = [w for w in workloads if snapshot.is_offline(w.node)]
    if goal is not ClusterGoal.RUNNING:
        waits = "; ".join(f"waits for node {n}, which is offline" for n in sorted({w.node for w in lost}))
        if goal is ClusterGoal.DELETED:
            return ClusterState.DELETING, waits
        if all(w.has_ended for w in workloads):
            return ClusterState.STOPPED, ""
        return ClusterState.STOPPING, waits
    problems = [f"{w.name}: node {w.node} is offline" for w in lost]
    problems += [_why_failed(w) for w in workloads if w not in lost and w.is_broken]
    if problems:
        return ClusterState.DEGRADED, "; ".join(filter(None, [note, *problems]))
    away = [_why_failed(w) for w in workloads if w.current is not None and w.current.reason in REACH_PROBLEMS]
    message = "; ".join(filter(None, [note, *away]))
    if len(workloads) == expected and all(w.is_in(ProcessState.RUNNING) for w in workloads):
        return (ClusterState.DEGRADED if away else ClusterState.RUNNING), message
    return ClusterState.STARTING, message


def _why_failed(workload: Workload) -> str:
    status = workload.status
    message = "" if status is None else status.message or status.reason
    if (
        workload.kind is WorkloadKind.BROKER
        and workload.has_run
        and status is not None
        and status.reason == "PORT_TAKEN"
    ):
        message += " (a broker with data keeps its port: free it)"
    return f"{workload.name}: {message or 'failed'}"


def is_stuck(workloads: Iterable[Workload], fixed: Collection[int] = ()) -> bool:
    """Returns whether any of these failed, and no further start will help. `fixed` are the ports that their cluster
    names."""
    return any(w.is_in(ProcessState.FAILED) and _lasts(w, fixed) for w in workloads)


def _lasts(workload: Workload, fixed: Collection[int]) -> bool:
    if workload.current is not None and workload.current.reason in LASTING:
        return True
    # A broker's data and port belong together; other workloads get another port unless the spec names one.
    pinned = workload.ports if workload.kind is WorkloadKind.BROKER and workload.has_run else fixed
    return any(port in pinned for port in ports_taken(workload))

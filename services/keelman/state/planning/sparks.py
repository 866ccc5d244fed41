"""Plans the nodes' Spark services, and the ports of what has one. Pure."""

from __future__ import annotations

from collections.abc import Collection

from keelman.model.workload import (
    Goal,
    ProcessState,
    SparkSpec,
    Workload,
    spark_name,
)
from keelman.state.planning.draft import Draft, ports_taken


def spark_on(draft: Draft, node: str) -> Workload:
    """Wants the node's Spark service to run."""
    name = spark_name(node)
    port = port_of(draft, name, node, draft.limits.spark_ports)
    reports, _ = draft.bootstrap_of(draft.limits.events_broker_cluster)
    draft.want(name, node, Goal.RUNNING, SparkSpec(draft.node(node).host, port, draft.limits.spark_master, reports))
    return draft.workloads[name]


def port_of(draft: Draft, name: str, node: str, wanted: range) -> int:
    """The port that a worker or Spark service has on this node, or the next free one."""
    old = draft.workloads.get(name)
    if old is None or old.node != node:
        return draft.ports(node, wanted)[0]
    if ports_taken(old):
        return draft.ports(node, wanted, tried=(*old.tried_ports, *ports_taken(old)))[0]
    return old.spec.port


def plan_sparks(draft: Draft, nodes: Collection[str]) -> None:
    """Ends Spark services of these nodes that no worker needs: not before the workers there have ended."""
    for node in sorted(nodes):
        spark = draft.workloads.get(spark_name(node))
        if spark is None:
            continue
        placed = draft.workers_on(spark.node)
        if any(w.goal is Goal.RUNNING or not _has_ended(w) for w in placed):
            continue
        if placed:
            draft.set_goal(spark, Goal.STOPPED)
        else:
            draft.remove(spark)


def _has_ended(workload: Workload) -> bool:
    return workload.is_in(ProcessState.STOPPED) or workload.is_in(ProcessState.REMOVED)

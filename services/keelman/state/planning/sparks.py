"""Plans the nodes' Spark services. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from keelman.model.workload import Goal, ProcessState, SparkSpec, WorkerSpec, Workload, spark_name
from keelman.state.planning.draft import Draft, ports_taken


def spark_on(draft: Draft, node: str) -> Workload:
    """Plans the node's Spark service as running, and returns it. Raises NoPort."""
    if node in draft.sparks:
        return draft.sparks[node]
    name = spark_name(node)
    old = draft.workloads.get(name)
    reports, _ = draft.bootstrap_of(draft.limits.events_broker_cluster)
    if old is not None and isinstance(old.spec, SparkSpec):
        reports = still_good(old.spec.reports_bootstrap_servers, reports)
    properties = dict(draft.client_properties_of(draft.limits.events_broker_cluster))
    spec = SparkSpec(draft.node(node).host, _port(draft, node, old), draft.limits.spark_master, reports, properties)
    draft.want(name, node, Goal.RUNNING, spec, reason=_why(old, spec))
    draft.sparks[node] = draft.workloads[name]
    return draft.sparks[node]


def still_good(old: str, new: str) -> str:
    """Returns the old bootstrap servers while all of them are among the new ones: more servers need no restart."""
    return old if old and set(old.split(",")) <= set(new.split(",")) else new


def _port(draft: Draft, node: str, old: Workload | None) -> int:
    """Returns the present port, or the next free one. Raises NoPort."""
    range_of_ports = draft.limits.spark_ports
    if old is None:
        return draft.ports(node, range_of_ports)[0]
    if taken := ports_taken(old):
        return draft.ports(node, range_of_ports, tried=(*old.tried_ports, *taken))[0]
    return old.spec.port


def plan_sparks(draft: Draft, nodes: Collection[str], lingers: Callable[[str], bool]) -> None:
    """Ends Spark services of these nodes that no worker needs: not before the workers there have ended, and not while
    `lingers` keeps the node's service running; it does not on nodes that are offline or drained."""
    for node in sorted(nodes):
        spark = draft.workloads.get(spark_name(node))
        if spark is None:
            continue
        workloads = draft.made.workloads_on(node)
        if is_used(workloads) or (spark.goal is Goal.RUNNING and _may_linger(draft, node) and lingers(node)):
            continue
        if any(map(needs_spark, workloads)):
            draft.set_goal(spark, Goal.STOPPED, reason="no worker of its node runs")
        else:
            draft.remove(spark, reason="its node has no worker")


def is_used(workloads: Iterable[Workload]) -> bool:
    """Returns whether any of a node's workloads is a worker that needs its Spark service, and shall run or has not
    ended."""
    return any(needs_spark(w) and (w.goal is Goal.RUNNING or not _has_ended(w)) for w in workloads)


def needs_spark(workload: Workload) -> bool:
    """Returns whether a workload is a worker that copies by the Spark service of its node."""
    return isinstance(workload.spec, WorkerSpec) and not workload.spec.kafka_connect


def _may_linger(draft: Draft, node: str) -> bool:
    return not (draft.snapshot.is_offline(node) or draft.node(node).spec.draining)


def _why(old: Workload | None, new: SparkSpec) -> str:
    if old is None or old.goal is not Goal.RUNNING:
        return "workers of its node run"
    if taken := ports_taken(old):
        return f"port {taken[0]} of its node is taken"
    if old.spec.host != new.host:
        return f"its node has another address: {new.host}"
    if isinstance(old.spec, SparkSpec) and old.spec.master != new.master:
        return "Spark's master is another one"
    return "the brokers of its reports changed"


def _has_ended(workload: Workload) -> bool:
    return workload.is_in(ProcessState.STOPPED) or workload.is_in(ProcessState.REMOVED)

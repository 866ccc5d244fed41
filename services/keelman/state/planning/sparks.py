"""Plans the nodes' Spark services, and the end of drivers of Spark clusters. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from keelman.model.cluster import WorkerEngine
from keelman.model.workload import (
    Goal,
    ProcessState,
    SparkSpec,
    WorkerSpec,
    Workload,
    spark_cluster_of,
    spark_name,
    spark_of,
    tenant_of,
)
from keelman.state.planning.draft import Draft, ports_taken
from keelman.state.resources.snapshot import Snapshot


def spark_on(draft: Draft, node: str, tenant: str) -> Workload:
    """Plans a Spark service as running, and returns it: the node's, or that of a tenant, which has no port. Raises
    NoPort."""
    name = spark_name(node, tenant)
    if name in draft.sparks:
        return draft.sparks[name]
    old = draft.workloads.get(name)
    reports, _ = draft.bootstrap_of(draft.limits.events_broker_cluster)
    if old is not None and isinstance(old.spec, SparkSpec):
        reports = still_good(old.spec.reports_bootstrap_servers, reports)
    properties = dict(draft.reports_client_properties)
    port = 0 if tenant else _port(draft, node, old)
    spec = SparkSpec(draft.node(node).host, port, draft.limits.spark_master, reports, properties, tenant)
    draft.want(name, node, Goal.RUNNING, spec, reason=_why(old, spec))
    draft.sparks[name] = draft.workloads[name]
    return draft.sparks[name]


def spark_address(spark: Workload) -> str:
    """Returns host:port of a Spark service for its workers; empty for one that they reach by its Unix socket."""
    return spark.address if spark.spec.port else ""


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
    """Ends Spark services of these nodes that no worker needs: not before their workers have ended, and not while
    `lingers` keeps a service, by name, running; it does not on nodes that are offline or drained, and not a driver
    whose Spark cluster is gone."""
    for node in sorted(nodes):
        workloads = draft.made.workloads_on(node)
        for spark in sparks_of(workloads):
            if is_used(spark, draft.made):
                continue
            if spark.goal is Goal.RUNNING and _may_linger(draft, spark) and lingers(spark.name):
                continue
            if spark.cluster:
                draft.remove(spark, reason=_why_no_driver(draft, spark))
            elif any(_copies_by(w, spark) for w in workloads):
                draft.set_goal(spark, Goal.STOPPED, reason="no worker of its node runs")
            else:
                draft.remove(spark, reason="its node has no worker")


def sparks_of(workloads: Iterable[Workload]) -> list[Workload]:
    """Returns the Spark services among workloads, by name."""
    return sorted((w for w in workloads if isinstance(w.spec, SparkSpec)), key=lambda spark: spark.name)


def is_used(spark: Workload, snapshot: Snapshot) -> bool:
    """Returns whether a worker needs this Spark service, and shall run or has not ended: one of its node or, for a
    driver that is not leaving, one of its Spark cluster."""
    if spark.cluster:
        return spark.goal is not Goal.REMOVED and snapshot.needs_drivers(spark.cluster)
    workloads = snapshot.workloads_on(spark.node)
    workers = [w for w in workloads if _copies_by(w, spark)]
    return any(w.goal is Goal.RUNNING or not _has_ended(w) for w in workers) or any(
        _will_copy_by(w, spark, snapshot) for w in workloads
    )


def _will_copy_by(workload: Workload, spark: Workload, snapshot: Snapshot) -> bool:
    """Returns whether a worker that a Spark cluster copies for gets this service in its turn of a rollout."""
    if workload.goal is not Goal.RUNNING or not spark_cluster_of(workload):
        return False
    cluster = snapshot.worker_clusters.get(workload.cluster)
    leaves = cluster is not None and not cluster.spec.spark_cluster and cluster.spec.engine is WorkerEngine.KEELMAN
    return leaves and spark_name(workload.node, tenant_of(workload)) == spark.name


def _why_no_driver(draft: Draft, driver: Workload) -> str:
    if driver.cluster not in draft.snapshot.spark_clusters:
        return "its Spark cluster was deleted"
    return "no worker cluster that names its Spark cluster runs"


def _copies_by(workload: Workload, spark: Workload) -> bool:
    return needs_spark(workload) and spark_of(workload) == spark.name


def needs_spark(workload: Workload) -> bool:
    """Returns whether a workload is a worker that copies by a Spark service of its node."""
    spec = workload.spec
    return isinstance(spec, WorkerSpec) and not (spec.kafka_connect or spec.spark_cluster)


def _may_linger(draft: Draft, spark: Workload) -> bool:
    node, is_of_tenants = draft.node(spark.node), bool(tenant_of(spark))
    may_run = spark.cluster in draft.snapshot.spark_clusters if spark.cluster else is_of_tenants == node.tenant_users
    return may_run and not (draft.snapshot.is_offline(node.name) or node.spec.draining)


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

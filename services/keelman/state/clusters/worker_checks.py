"""Checks the specs of worker clusters, and changes of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from keelman.model.autoscale import check_autoscale, check_no_tasks
from keelman.model.cluster import ClusterGoal, ClusterState, WorkerCluster, WorkerClusterSpec, WorkerEngine
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.rules import field_checks
from keelman.model.rules.log_checks import check_log_delivery
from keelman.model.rules.names import checked_name
from keelman.state.clusters.goals import check_not_deleted
from keelman.state.clusters.kafka_names import check_own_names
from keelman.state.clusters.port_checks import check_ports_free
from keelman.state.clusters.spark_clusters import check_named
from keelman.state.kafka.access_rules import OF_KAFKA
from keelman.state.kafka.properties import check_worker_properties
from keelman.state.resources.checks import check_nodes, check_same
from keelman.state.resources.log_delivery import check_topic
from keelman.state.resources.origins import check_origin
from keelman.state.resources.snapshot import WORKER_CLUSTER, Snapshot

INTERNAL_TOPICS = ("keelman.", *OF_KAFKA)
MAX_KAFKA_NAME = 249
"""Of topics: https://kafka.apache.org/documentation/#topicconfigs; groups may be longer, and are not."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_LEGAL_ALLOWED = (
    f"a name of letters, digits, '.', '_' and '-', at most {MAX_KAFKA_NAME}, with * at the end for all that begin so, "
    "or * for all; no topic of Kafka or of keelman"
)


def check(name: str, spec: WorkerClusterSpec, snapshot: Snapshot) -> None:
    """Raises InvalidArgument naming the field, the value and the legal values, or FailedPrecondition for a name in
    Kafka that another worker cluster has or a broker cluster that is being deleted."""
    if spec.broker_cluster not in snapshot.broker_clusters:
        names = ", ".join(sorted(snapshot.broker_clusters)) or "none exists yet: create one first"
        raise InvalidArgument.of("spec.broker_cluster", spec.broker_cluster, f"the name of a broker cluster ({names})")
    brokers = snapshot.broker_clusters[spec.broker_cluster]
    check_not_deleted(brokers)
    check_nodes("spec.nodes.names", spec.nodes, snapshot)
    field_checks.check_labels("spec.labels", spec.annotations.labels)
    field_checks.check_labels("spec.node_selector", spec.node_selector)
    field_checks.check_limits("spec.limits", spec.limits.cpus, spec.limits.memory_bytes)
    field_checks.check_count("spec.count", spec.count)
    if spec.autoscale is not None:
        check_no_tasks("spec.autoscale", spec.autoscale)
        check_autoscale("spec.autoscale", spec.autoscale)
        if spec.engine is not WorkerEngine.KEELMAN:
            legal = "nothing: workers of this engine do not report their use; set a count"
            raise InvalidArgument.of("spec.autoscale", spec.engine, legal)
    if spec.tenant:
        checked_name("spec.tenant", spec.tenant)
    check_named(spec, snapshot)
    _check_allowed("spec.allowed_topics", spec.allowed_topics, INTERNAL_TOPICS)
    _check_allowed("spec.allowed_groups", spec.allowed_groups, ())
    field_checks.check_routes("spec.routes", spec.routes)
    if spec.log_delivery is not None:
        check_log_delivery("spec.log_delivery", spec.log_delivery)
        check_topic("spec.log_delivery", spec.log_delivery)
    _check_ports(spec)
    check_worker_properties(name, spec, spec.credentials if brokers.spec.has_rules else brokers.spec.connection)
    check_own_names(name, spec, snapshot)
    check_ports_free(name, spec, snapshot)
    check_origin(WORKER_CLUSTER, name, spec.annotations.origin, snapshot)


def check_change(cluster: WorkerCluster, new: WorkerClusterSpec) -> None:
    """Raises InvalidArgument for a change of a fixed field, FailedPrecondition for a change that is not possible
    now."""
    old = cluster.spec
    check_same("spec.origin", old.annotations.origin, new.annotations.origin)
    check_same("spec.tenant", old.tenant, new.tenant)
    is_stopped = cluster.goal is ClusterGoal.STOPPED and cluster.status.state is ClusterState.STOPPED
    if old.broker_cluster != new.broker_cluster and not is_stopped:
        raise FailedPrecondition(
            f"spec.broker_cluster: {old.broker_cluster!r} cannot become {new.broker_cluster!r} while worker cluster "
            f"{cluster.name!r} is {cluster.status.state}: stop it first",
            reason="RUNNING",
        )


def _check_allowed(field: str, patterns: Sequence[str], internal: Sequence[str]) -> None:
    """Raises InvalidArgument for a pattern that is no name, or no beginning of one, or that means internal names."""
    for place, pattern in enumerate(patterns):
        beginning = pattern.removesuffix("*")
        is_legal = pattern == "*" or (beginning and len(beginning) <= MAX_KAFKA_NAME and _NAME.fullmatch(beginning))
        if not is_legal or beginning.startswith(tuple(internal)):
            raise InvalidArgument.of(f"{field}[{place}]", pattern[:MAX_KAFKA_NAME], _LEGAL_ALLOWED)


def _check_ports(spec: WorkerClusterSpec) -> None:
    field_checks.check_port("spec.port", spec.port, zero="a free one on each node")
    field_checks.check_port("spec.metrics_port", spec.metrics_port, zero="none")
    field_checks.check_port("spec.admin_port", spec.admin_port, zero="none")
    reserved = [(f"spec.reserved_ports[{number}]", port) for number, port in enumerate(spec.reserved_ports)]
    for field, port in reserved:
        field_checks.check_port(field, port)
    named = [("port", spec.port), ("metrics_port", spec.metrics_port), ("admin_port", spec.admin_port)]
    field_checks.check_different_ports([(f"spec.{field}", port) for field, port in named] + reserved)

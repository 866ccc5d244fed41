"""Checks the properties that users give to clusters, and completes those of a worker. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.model.cluster import (
    BrokerCluster,
    BrokerClusterSpec,
    ClusterGoal,
    ExternalBrokers,
    ManagedBrokers,
    WorkerCluster,
    WorkerClusterSpec,
)
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.node import NodeSpec
from keelman.model.shapes import (
    LARGEST_PORT,
    check_count,
    check_different_ports,
    check_labels,
    check_limits,
    check_port,
)
from keelman.state.snapshot import Snapshot

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
TOPICS = ("config.storage.topic", "offset.storage.topic", "status.storage.topic")
VOTERS = "controller.quorum.voters"

WORKER_FIXED = {
    "bootstrap.servers": "it follows from spec.broker_cluster",
    "listeners": "it follows from the worker's node and from the state service's worker_ports",
}
BROKER_FIXED = (
    "process.roles", "node.id", "broker.id", "log.dir", "log.dirs", "metadata.log.dir", "listeners",
    "advertised.listeners", "controller.listener.names", "inter.broker.listener.name",
    "listener.security.protocol.map", VOTERS, "controller.quorum.bootstrap.servers",
)  # fmt: skip


def group_of(name: str, properties: Mapping[str, str]) -> str:
    """Connect's group.id of a worker cluster."""
    return properties.get("group.id") or f"keelman-{name}"


def topics_of(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Topic by property of a worker cluster's three Connect topics."""
    defaults = zip(TOPICS, ("configs", "offsets", "status"), strict=True)
    return {key: properties.get(key) or f"{name}.connect-{what}" for key, what in defaults}


def worker_properties(cluster: WorkerCluster, *, bootstrap_servers: str, brokers: int, listener: str) -> dict[str, str]:
    """Connect's worker properties of one worker, complete, in the order of their names: ours, the user's over ours."""
    replicas = str(min(3, brokers))
    given = cluster.spec.properties
    complete = {
        "group.id": group_of(cluster.name, given),
        **topics_of(cluster.name, given),
        "config.storage.replication.factor": replicas,
        "offset.storage.replication.factor": replicas,
        "status.storage.replication.factor": replicas,
        "key.converter": JSON_CONVERTER,
        "value.converter": JSON_CONVERTER,
        **given,
        "bootstrap.servers": bootstrap_servers,
        "listeners": listener,
    }
    return dict(sorted(complete.items()))


def check_broker_cluster(spec: BrokerClusterSpec, snapshot: Snapshot) -> None:
    """Raises InvalidArgument naming the field, the value and what is legal."""
    match spec:
        case ManagedBrokers(nodes, properties, port=port):
            check_port("spec.managed.port", port, zero="a free one on each node")
            if not nodes:
                raise InvalidArgument.of("spec.managed.nodes", "", "at least one node; " + _known_nodes(snapshot))
            _check_nodes("spec.managed.nodes", nodes, snapshot)
            _check_quorum(spec, snapshot)
            for key in properties:
                if key in BROKER_FIXED:
                    raise InvalidArgument.of(
                        "spec.managed.properties", key, "any broker property but those that keelman sets itself: "
                        + ", ".join(BROKER_FIXED),
                    )  # fmt: skip
        case ExternalBrokers(bootstrap):
            _check_bootstrap(bootstrap)
    check_labels("spec.labels", spec.annotations.labels)


def _check_quorum(spec: ManagedBrokers, snapshot: Snapshot) -> None:
    if spec.controllers not in (0, 1, 3):
        raise InvalidArgument.of("spec.managed.controllers", spec.controllers, "1, 3, or 0 for what fits the nodes")
    if spec.controllers > len(spec.nodes):
        raise InvalidArgument.of(
            "spec.managed.controllers", spec.controllers, f"no more than there are nodes ({len(spec.nodes)})"
        )
    if not spec.port:
        return
    if not 1 <= spec.port <= LARGEST_PORT:
        raise InvalidArgument.of("spec.managed.port", spec.port, f"1 to {LARGEST_PORT}, or 0 for a free one")
    hosts = [snapshot.nodes[node].host for node in spec.nodes]
    shared = next((host for host in hosts if host and hosts.count(host) > 1), None)
    if shared is not None:
        raise InvalidArgument.of(
            "spec.managed.port", spec.port, f"0 for a free one on each, as nodes share the host {shared}"
        )


def check_worker_cluster(name: str, spec: WorkerClusterSpec, snapshot: Snapshot) -> None:
    """Raises InvalidArgument naming the field, the value and what is legal, or FailedPrecondition for a name that is
    taken in Kafka by another worker cluster or a broker cluster that is being deleted."""
    if spec.broker_cluster not in snapshot.broker_clusters:
        known = ", ".join(sorted(snapshot.broker_clusters)) or "there is none yet: create one first"
        raise InvalidArgument.of("spec.broker_cluster", spec.broker_cluster, f"the name of a broker cluster ({known})")
    check_not_deleted(snapshot.broker_clusters[spec.broker_cluster])
    _check_nodes("spec.nodes.names", spec.nodes, snapshot)
    check_labels("spec.labels", spec.annotations.labels)
    check_labels("spec.node_selector", spec.node_selector)
    check_limits("spec.limits", spec.limits.cpus, spec.limits.memory_bytes)
    check_count("spec.count", spec.count)
    _check_ports(spec)
    for key, why in WORKER_FIXED.items():
        if key in spec.properties:
            raise InvalidArgument.of("spec.properties", f"{key}={spec.properties[key]}", f"leave {key} out: {why}")
    topics = topics_of(name, spec.properties)
    for key, topic in topics.items():
        if list(topics.values()).count(topic) > 1:
            raise InvalidArgument.of(f"spec.properties.{key}", topic, "three different topics for " + ", ".join(TOPICS))
    for other in snapshot.users_of(spec.broker_cluster):
        if group_of(other.name, other.spec.properties) == group_of(name, spec.properties):
            raise FailedPrecondition(
                f"spec.properties.group.id: {group_of(name, spec.properties)!r} is the group of worker cluster "
                f"{other.name!r} on the same broker cluster: give another group.id",
                reason="GROUP_IN_USE",
                metadata={"worker_cluster": other.name},
            )
        theirs = topics_of(other.name, other.spec.properties)
        for key, topic in topics.items():
            if topic in theirs.values():
                raise FailedPrecondition(
                    f"spec.properties.{key}: {topic!r} is a topic of worker cluster {other.name!r} on the same broker "
                    "cluster: give another topic",
                    reason="TOPIC_IN_USE",
                    metadata={"worker_cluster": other.name},
                )


def _check_ports(spec: WorkerClusterSpec) -> None:
    check_port("spec.port", spec.port, zero="a free one on each node")
    check_port("spec.metrics_port", spec.metrics_port, zero="none")
    check_port("spec.admin_port", spec.admin_port, zero="none")
    reserved = [(f"spec.reserved_ports[{number}]", port) for number, port in enumerate(spec.reserved_ports)]
    for field, port in reserved:
        check_port(field, port)
    named = [("port", spec.port), ("metrics_port", spec.metrics_port), ("admin_port", spec.admin_port)]
    check_different_ports([(f"spec.{field}", port) for field, port in named] + reserved)


def check_node(spec: NodeSpec) -> None:
    """Raises InvalidArgument naming the field, the value and what is legal."""
    check_labels("spec.labels", spec.labels)
    check_limits("spec.capacity", spec.capacity.cpus, spec.capacity.memory_bytes)


def check_broker_change(old: BrokerClusterSpec, new: BrokerClusterSpec) -> None:
    """Raises InvalidArgument for a field that cannot be changed."""
    if isinstance(old, ManagedBrokers) != isinstance(new, ManagedBrokers):
        raise InvalidArgument.of("spec.kind", "external" if isinstance(new, ExternalBrokers) else "managed",
                                 "what it was when the cluster was created")  # fmt: skip
    _check_same("spec.origin", old.annotations.origin, new.annotations.origin)
    if isinstance(old, ManagedBrokers) and isinstance(new, ManagedBrokers):
        _check_same("spec.managed.controllers", old.controllers, new.controllers)


def check_worker_change(old: WorkerClusterSpec, new: WorkerClusterSpec) -> None:
    """Raises InvalidArgument for a field that cannot be changed."""
    _check_same("spec.broker_cluster", old.broker_cluster, new.broker_cluster)
    _check_same("spec.origin", old.annotations.origin, new.annotations.origin)


def _check_same(field: str, old: object, new: object) -> None:
    if old != new:
        raise InvalidArgument.of(field, new, f"{old!r}, as when the cluster was created: it cannot be changed")


def check_not_deleted(cluster: BrokerCluster | WorkerCluster) -> None:
    """Raises FailedPrecondition for a cluster that is being deleted."""
    if cluster.goal is ClusterGoal.DELETED:
        what = "broker cluster" if isinstance(cluster, BrokerCluster) else "worker cluster"
        raise FailedPrecondition(f"{what} {cluster.name!r} is being deleted", reason="DELETING")


def _check_nodes(field: str, nodes: tuple[str, ...], snapshot: Snapshot) -> None:
    for node in nodes:
        if node not in snapshot.nodes:
            raise InvalidArgument.of(field, node, _known_nodes(snapshot))
        if nodes.count(node) > 1:
            raise InvalidArgument.of(field, node, "each node once")


def _known_nodes(snapshot: Snapshot) -> str:
    known = ", ".join(sorted(snapshot.nodes))
    return f"registered nodes are {known}" if known else "no node has registered yet: start an agent first"


def _check_bootstrap(text: str) -> None:
    for server in text.split(","):
        host, colon, port = server.strip().rpartition(":")
        legal = colon and host and not any(c.isspace() or c == "/" for c in host) and port.isascii() and port.isdigit()
        if not legal or not 1 <= int(port) <= LARGEST_PORT:
            raise InvalidArgument.of(
                "spec.external.bootstrap_servers", text, "host:port, or several with commas between"
            )

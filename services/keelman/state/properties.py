"""Checks the properties that users give to worker clusters, and completes those of a worker. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.model.cluster import WorkerCluster, WorkerClusterSpec
from keelman.model.errors import InvalidArgument

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
TOPICS = ("config.storage.topic", "offset.storage.topic", "status.storage.topic")
VOTERS = "controller.quorum.voters"

WORKER_FIXED = {
    "bootstrap.servers": "it follows from spec.broker_cluster",
    "listeners": "it follows from the worker's node and from the state service's worker_ports",
}


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


def check_worker_properties(name: str, spec: WorkerClusterSpec) -> None:
    """Raises InvalidArgument for properties that cannot be, whatever else there is."""
    for key, why in WORKER_FIXED.items():
        if key in spec.properties:
            raise InvalidArgument.of("spec.properties", f"{key}={spec.properties[key]}", f"leave {key} out: {why}")
    topics = topics_of(name, spec.properties)
    for key, topic in topics.items():
        if list(topics.values()).count(topic) > 1:
            raise InvalidArgument.of(f"spec.properties.{key}", topic, "three different topics for " + ", ".join(TOPICS))

"""The names that a worker cluster has in Kafka: no other may have them, under whatever name it knows that Kafka."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from keelman.model.cluster import BrokerCluster, ExternalBrokers, WorkerCluster, WorkerClusterSpec
from keelman.model.errors import FailedPrecondition
from keelman.state.clusters.properties import OFFSET_TOPIC, group_of, topics_of
from keelman.state.resources.checks import origin_facts
from keelman.state.snapshot import Snapshot


def check_own_names(name: str, spec: WorkerClusterSpec, snapshot: Snapshot) -> None:
    """Raises FailedPrecondition for a group or topic of another worker cluster. Two that both say so may share their
    offset topic. The group is looked at first, then the topics one after another."""
    group = group_of(name, spec.properties)
    topics = topics_of(name, spec.properties)
    rivals = list(_rivals(name, spec.broker_cluster, group, topics.values(), snapshot))
    for other in rivals:
        if group_of(other.name, other.spec.properties) == group:
            raise FailedPrecondition(
                f"spec.properties.group.id: {group!r} is the group of {_where(spec, other)}: give another group.id",
                reason="GROUP_IN_USE",
                metadata=_held_by(other) | {"group": group},
            )
    for key, topic in topics.items():
        for other in rivals:
            theirs = topics_of(other.name, other.spec.properties)
            shared = theirs[OFFSET_TOPIC] if spec.shared_offset_topic and other.spec.shared_offset_topic else None
            if topic in theirs.values() and not (key == OFFSET_TOPIC and topic == shared):
                raise FailedPrecondition(
                    f"spec.properties.{key}: {topic!r} is a topic of {_where(spec, other)}: give another topic",
                    reason="TOPIC_IN_USE",
                    metadata=_held_by(other) | {"topic": topic, "property": key},
                )


def _where(spec: WorkerClusterSpec, other: WorkerCluster) -> str:
    brokers = other.spec.broker_cluster
    same = brokers == spec.broker_cluster
    on = "the same broker cluster" if same else f"broker cluster {brokers!r}, which is the same Kafka"
    return f"worker cluster {other.name!r} on {on}"


def _held_by(other: WorkerCluster) -> dict[str, str]:
    facts = {"worker_cluster": other.name, "broker_cluster": other.spec.broker_cluster}
    return facts | origin_facts(other.spec.annotations.origin)


def same_kafka(one: BrokerCluster, other: BrokerCluster) -> bool:
    """True when two broker clusters are one Kafka: by its id where both are known, else by a server of both."""
    if one.name == other.name:
        return True
    if one.kafka_cluster_id and other.kafka_cluster_id:
        return one.kafka_cluster_id == other.kafka_cluster_id
    return not _servers(one).isdisjoint(_servers(other))


def _servers(cluster: BrokerCluster) -> set[str]:
    external = isinstance(cluster.spec, ExternalBrokers)
    text = cluster.spec.bootstrap_servers if isinstance(cluster.spec, ExternalBrokers) else ""
    servers = text if external else cluster.status.bootstrap_servers
    return {server.strip().lower() for server in servers.split(",") if server.strip()}


def _rivals(
    name: str, broker_cluster: str, group: str, topics: Collection[str], snapshot: Snapshot
) -> Iterator[WorkerCluster]:
    """Other worker clusters on the same Kafka that have the group or one of the topics."""
    mine = snapshot.broker_clusters[broker_cluster]
    for other in sorted(snapshot.broker_clusters):
        if same_kafka(mine, snapshot.broker_clusters[other]):
            found = snapshot.named_in_kafka(other, group, topics) - {name}
            rivals = (snapshot.worker_clusters[rival] for rival in sorted(found))
            yield from (rival for rival in rivals if not snapshot.is_past(rival))

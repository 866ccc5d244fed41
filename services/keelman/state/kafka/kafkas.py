"""Finds the broker clusters that are one Kafka. Pure."""

from __future__ import annotations

from typing import Any

from keelman.model.cluster import BrokerCluster, ExternalBrokers


def same_kafka(broker_cluster: BrokerCluster, other: BrokerCluster) -> bool:
    """Returns True when two broker clusters are one Kafka: by its id if both are known, else by a server of both."""
    if broker_cluster.name == other.name:
        return True
    if broker_cluster.kafka_cluster_id and other.kafka_cluster_id:
        return broker_cluster.kafka_cluster_id == other.kafka_cluster_id
    return not servers_of(broker_cluster).isdisjoint(servers_of(other))


def kafka_keys(cluster: BrokerCluster) -> set[tuple[Any, ...]]:
    """Returns the index keys of a broker cluster: two that are the same Kafka share one."""
    keys: set[tuple[Any, ...]] = {("kafka at", server) for server in servers_of(cluster)}
    return keys | ({("kafka", cluster.kafka_cluster_id)} if cluster.kafka_cluster_id else set())


def servers_of(cluster: BrokerCluster) -> set[str]:
    """Returns host:port of the brokers, as clients know them."""
    spec = cluster.spec
    text = spec.bootstrap_servers if isinstance(spec, ExternalBrokers) else cluster.status.bootstrap_servers
    return {server.strip().lower() for server in text.split(",") if server.strip()}

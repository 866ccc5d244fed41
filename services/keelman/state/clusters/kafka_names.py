"""Checks that no two worker clusters have the same names in Kafka, under whatever names they know that Kafka."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from keelman.model.cluster import ClusterGoal, WorkerCluster, WorkerClusterSpec
from keelman.model.connectors.dedicated_connector import DedicatedConnector
from keelman.model.errors import FailedPrecondition
from keelman.state.kafka.properties import OFFSET_TOPIC, group_of
from keelman.state.resources.checks import origin_facts
from keelman.state.resources.snapshot import Snapshot
from keelman.workers.properties.storage_topics import storage_topics_of

NONE, UNKNOWN = ("", ""), ("", "?")
"""In place of an account."""


def check_own_names(name: str, spec: WorkerClusterSpec, snapshot: Snapshot) -> None:
    """Raises FailedPrecondition for a group or topic of another worker cluster. Two clusters that both allow it may
    share their offset topic, unless they are of different accounts. The group is checked first, then the topics one
    after another."""
    _check(name, spec, list(rivals_of(name, spec, snapshot)), snapshot)


def clash(cluster: WorkerCluster, snapshot: Snapshot) -> str:
    """Returns the error for a name that a running worker cluster shares with an older running one, as may come out once
    their brokers' Kafka is known; empty when there is none."""
    if cluster.goal is not ClusterGoal.RUNNING:
        return ""
    rivals = rivals_of(cluster.name, cluster.spec, snapshot)
    older = [rival for rival in rivals if rival.goal is ClusterGoal.RUNNING and _age(rival) < _age(cluster)]
    try:
        _check(cluster.name, cluster.spec, older, snapshot)
    except FailedPrecondition as error:
        return error.message
    return ""


def users_of_kafka(broker_cluster: str, snapshot: Snapshot) -> list[WorkerCluster]:
    """Returns the worker clusters on the Kafka of a broker cluster, under whatever name they know it."""
    return [user for name in snapshot.names_of_kafka(broker_cluster) for user in snapshot.users_of(name)]


def rivals_of(name: str, spec: WorkerClusterSpec, snapshot: Snapshot) -> Iterator[WorkerCluster]:
    """Yields the other worker clusters on the same Kafka that have the group or any of the topics."""
    group, topics = group_of(name, spec.properties), storage_topics_of(name, spec.properties)
    for brokers in snapshot.names_of_kafka(spec.broker_cluster):
        names = snapshot.named_in_kafka(brokers, group, topics.values()) - {name}
        rivals = (snapshot.worker_clusters[rival] for rival in sorted(names))
        yield from (rival for rival in rivals if not snapshot.is_past(rival))


def _check(name: str, spec: WorkerClusterSpec, rivals: Sequence[WorkerCluster], snapshot: Snapshot) -> None:
    group = group_of(name, spec.properties)
    for other in rivals:
        if group_of(other.name, other.spec.properties) == group:
            raise FailedPrecondition(
                f"spec.properties.group.id: {group!r} is the group of {_where(spec, other)}: give another group.id",
                reason="GROUP_IN_USE",
                metadata=_held_by(other) | {"group": group},
            )
    for key, topic in storage_topics_of(name, spec.properties).items():
        for other in rivals:
            theirs = storage_topics_of(other.name, other.spec.properties)
            may_share = spec.shared_offset_topic and other.spec.shared_offset_topic
            shared = theirs[OFFSET_TOPIC] if may_share and _is_of_one(spec, other.spec, snapshot) else None
            if topic in theirs.values() and not (key == OFFSET_TOPIC and topic == shared):
                raise FailedPrecondition(
                    f"spec.properties.{key}: {topic!r} is a topic of {_where(spec, other)}: give another topic",
                    reason="TOPIC_IN_USE",
                    metadata=_held_by(other) | {"topic": topic, "property": key},
                )


def _is_of_one(spec: WorkerClusterSpec, other: WorkerClusterSpec, snapshot: Snapshot) -> bool:
    """Returns whether two worker clusters are of one account, or both of none. True while the account of one is not
    known, since its dedicated connector is being created: that is checked again then."""
    accounts = [_account(one, snapshot) for one in (spec, other)]
    return UNKNOWN in accounts or accounts[0] == accounts[1]


def _account(spec: WorkerClusterSpec, snapshot: Snapshot) -> tuple[str, str]:
    """Returns the API and the account whose dedicated connector a worker cluster was made for."""
    origin = spec.annotations.origin
    if origin is None or origin.scope != DedicatedConnector.NOUN:
        return NONE
    connector = snapshot.dedicated_connectors.get(origin.key)
    if connector is None:
        return UNKNOWN
    kept = connector.spec.annotations.origin
    return NONE if kept is None else (kept.api, kept.scope)


def _where(spec: WorkerClusterSpec, other: WorkerCluster) -> str:
    brokers = other.spec.broker_cluster
    same = brokers == spec.broker_cluster
    on = "the same broker cluster" if same else f"broker cluster {brokers!r}, which is the same Kafka"
    return f"worker cluster {other.name!r} on {on}"


def _held_by(other: WorkerCluster) -> dict[str, str]:
    facts = {"worker_cluster": other.name, "broker_cluster": other.spec.broker_cluster}
    return facts | origin_facts(other.spec.annotations.origin)


def _age(cluster: WorkerCluster) -> tuple[datetime, str]:
    return cluster.create_time, cluster.name

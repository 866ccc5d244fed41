"""Checks the spec of a topic: by its fields, its broker cluster and the other topics. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.near_keys import mistyped, similar
from keelman.kafka.topic_configs import TOPIC_CONFIGS, value_problem
from keelman.model.cluster import BrokerCluster, ClusterGoal, ManagedBrokers
from keelman.model.errors import FailedPrecondition, InvalidArgument, Violation
from keelman.model.topic import Topic, TopicGoal, TopicSpec, check_topic_counts, checked_topic
from keelman.state.kafka.properties import raise_all
from keelman.state.resources.annotations import check_annotations
from keelman.state.resources.snapshot import TOPIC, Snapshot

MAX_VALUE = 10_000


def check(name: str, spec: TopicSpec, snapshot: Snapshot) -> None:
    """Raises InvalidArgument naming the field, the value and the legal values; NotFound for an unknown broker cluster;
    FailedPrecondition for a topic that another resource or a worker cluster has."""
    checked_topic("spec.topic", spec.topic)
    check_topic_counts("spec", spec.partitions, spec.replication_factor)
    if not spec.broker_cluster:
        raise InvalidArgument.of("spec.broker_cluster", "", "the name of a broker cluster")
    cluster = snapshot.broker_cluster(spec.broker_cluster)
    if cluster.goal is ClusterGoal.DELETED:
        raise FailedPrecondition(f"broker cluster {cluster.name!r} is being deleted", reason="DELETING")
    _check_replication(spec, cluster)
    raise_all(config_violations(spec.config, managed=isinstance(cluster.spec, ManagedBrokers)))
    check_annotations(TOPIC, name, spec.annotations, snapshot)
    for other in sorted(snapshot.topics_named(spec.broker_cluster, spec.topic) - {name}):
        raise FailedPrecondition(
            f"spec.topic: topic resource {other!r} has topic {spec.topic!r} of broker cluster "
            f"{spec.broker_cluster!r} already: there is one for each",
            reason="TOPIC_IN_USE",
            metadata={"kind": TOPIC, "name": other, "topic": spec.topic, "broker_cluster": spec.broker_cluster},
        )
    check_no_storage_topic(spec, snapshot)


def check_no_storage_topic(spec: TopicSpec, snapshot: Snapshot) -> None:
    """Raises FailedPrecondition for a topic in which a worker cluster keeps its configs, offsets or statuses."""
    for user in sorted(snapshot.named_in_kafka(spec.broker_cluster, "", [spec.topic])):
        raise FailedPrecondition(
            f"spec.topic: worker cluster {user!r} keeps its own records in topic {spec.topic!r}: choose another",
            reason="TOPIC_IN_USE",
            metadata={"kind": "worker_cluster", "name": user, "worker_cluster": user, "topic": spec.topic},
        )


def check_change(topic: Topic, spec: TopicSpec, brokers_have: int) -> None:
    """Raises InvalidArgument for a field that cannot be changed, or not while the brokers have the topic with that
    number of partitions (0: unknown)."""
    old = topic.spec
    for field, was, new in (
        ("spec.broker_cluster", old.broker_cluster, spec.broker_cluster),
        ("spec.topic", old.topic, spec.topic),
        ("spec.origin", old.annotations.origin, spec.annotations.origin),
    ):
        if was != new:
            raise InvalidArgument.of(field, new, f"{was!r}, as when the topic was created: it cannot be changed")
    if topic.applied.goal is TopicGoal.ABSENT and topic.applied.ended:
        return
    least = max(brokers_have, old.partitions)
    if spec.partitions != old.partitions and 0 < spec.partitions < least:
        raise InvalidArgument.of(
            "spec.partitions", spec.partitions, f"{least} or more, as the topic has that many: partitions only grow"
        )
    if spec.replication_factor != old.replication_factor:
        raise InvalidArgument.of(
            "spec.replication_factor", spec.replication_factor,
            f"{old.replication_factor}, as it is: it cannot be changed while the brokers have the topic",
        )  # fmt: skip


def config_violations(config: Mapping[str, str], *, managed: bool) -> list[Violation]:
    """Returns the problems of a topic's configuration. Managed brokers are of a known version; others may have keys of
    their own, so of their keys only those are refused that look mistyped."""
    violations: list[Violation] = []
    for key, value in sorted(config.items()):
        field = f"spec.config.{key}"
        if key not in TOPIC_CONFIGS:
            near = mistyped(key, TOPIC_CONFIGS) or (managed and similar(key, TOPIC_CONFIGS))
            if near or managed or not key.strip():
                hint = f"did you mean {near!r}? " if near else ""
                legal = f"{hint}one of {', '.join(TOPIC_CONFIGS)}"
                violations += InvalidArgument.of("spec.config", key, legal).violations
        elif len(value) > MAX_VALUE:
            violations += InvalidArgument.of(field, f"{value[:20]}...", f"at most {MAX_VALUE} characters").violations
        elif problem := value_problem(key, value, bounds=managed):
            violations += InvalidArgument.of(field, value, problem).violations
    return violations


def _check_replication(spec: TopicSpec, cluster: BrokerCluster) -> None:
    if isinstance(cluster.spec, ManagedBrokers) and spec.replication_factor > len(cluster.spec.nodes):
        raise InvalidArgument.of(
            "spec.replication_factor", spec.replication_factor,
            f"at most {len(cluster.spec.nodes)}, the number of brokers of broker cluster {cluster.name!r}",
        )  # fmt: skip

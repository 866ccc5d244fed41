"""Checks the storage topics of worker clusters on their brokers: from the command's host, or through the state service
where a client needs hidden values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keelman.cli.doctor.finding import Finding
from keelman.kafka.topic_brokers import TopicBrokers
from keelman.model.errors import KeelmanError
from keelman.workers.properties.storage_topics import storage_topics_of

POLICY, COMPACT = "cleanup.policy", "compact"
MIN_REPLICAS = 3


async def storage_findings(properties: Mapping[str, str], brokers: str, clusters: Sequence[Any]) -> list[Finding]:
    """Returns the problems of the worker clusters' topics on one broker cluster, read from the command's host."""
    topics = {name: (cluster, kind) for cluster in clusters for kind, name in topics_of(cluster).items()}
    try:
        async with TopicBrokers.open(properties) as brokers_client:
            description = await brokers_client.describe(list(topics))
            configs = await brokers_client.configs(list(description.topics))
    except KeelmanError as error:
        remedy = "only the command's host does not reach them where the broker cluster is RUNNING: routes, firewall"
        return [Finding("network", f"broker-cluster/{brokers}", f"not reached from here: {error.message}", remedy)]
    findings: list[Finding] = []
    for name, topic in description.topics.items():
        cluster, kind = topics[name]
        policy = configs.get(name, {}).get(POLICY)
        findings += judged(
            f"worker-cluster/{cluster.name}", kind, name,
            policy="" if policy is None else policy.value, partitions=len(topic.partitions),
            replicas=min((len(part.replicas) for part in topic.partitions.values()), default=0),
            brokers=len(description.brokers),
        )  # fmt: skip
    return findings


def reported_findings(cluster: str, reported: Any) -> Iterator[Finding]:
    """Yields the problems of one worker cluster's topics, from the state service's report."""
    for topic in reported.topics:
        yield from judged(
            f"worker-cluster/{cluster}", topic.use, topic.topic, policy=topic.cleanup_policy,
            partitions=topic.partitions, replicas=topic.replication_factor, brokers=reported.brokers,
        )  # fmt: skip


def topics_of(cluster: Any) -> dict[str, str]:
    """Returns the three storage topics of a worker cluster, by purpose."""
    topics = storage_topics_of(cluster.name, cluster.spec.properties)
    return {key.partition(".")[0]: topic for key, topic in topics.items()}


def judged(
    subject: str, kind: str, topic: str, *, policy: str, partitions: int, replicas: int, brokers: int
) -> Iterator[Finding]:
    """Yields the problems of one topic; `policy` is empty if unknown."""
    if policy and policy != COMPACT:
        yield Finding(
            "topics", subject, f"{kind} topic {topic} has {POLICY}={policy}: its records will be deleted some day",
            f"kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config {POLICY}={COMPACT}",
        )  # fmt: skip
    if kind == "config" and partitions != 1:
        yield Finding(
            "topics", subject, f"config topic {topic} has {partitions} partitions: the order of changes is lost",
            "stop the cluster, and give it another config.storage.topic with one partition",
        )  # fmt: skip
    expected = min(MIN_REPLICAS, brokers)
    if 0 < replicas < expected:
        yield Finding(
            "topics", subject, f"{kind} topic {topic} has {replicas} replicas on {brokers} brokers",
            f"kafka-reassign-partitions.sh: {expected} replicas, so that the loss of a broker loses nothing",
        )  # fmt: skip

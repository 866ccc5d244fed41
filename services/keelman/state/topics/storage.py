"""Queries brokers about the topics in which worker clusters keep configurations, offsets and statuses."""

from __future__ import annotations

from keelman.api.connect.v1 import worker_cluster_service_pb2 as pb
from keelman.kafka.topic_brokers import TopicBrokers
from keelman.model.errors import Unavailable
from keelman.runtime.supervise import deadline
from keelman.state.resources.snapshot import Snapshot
from keelman.state.topics.reaching import asked_properties
from keelman.workers.properties.storage_topics import storage_topics_of

ANSWER_SECONDS = 10.0
POLICY = "cleanup.policy"


async def storage_topics(name: str, snapshot: Snapshot) -> pb.DescribeStorageTopicsResponse:
    """Describes the storage topics of one worker cluster. Raises NotFound, FailedPrecondition for brokers that shall
    not run, Unavailable."""
    cluster = snapshot.worker_cluster(name)
    properties = asked_properties(snapshot.broker_cluster(cluster.spec.broker_cluster))
    uses = {topic: key.partition(".")[0] for key, topic in storage_topics_of(name, cluster.spec.properties).items()}
    late = Unavailable(f"no broker answers at {properties['bootstrap.servers']} within {ANSWER_SECONDS:g} s")
    async with deadline(ANSWER_SECONDS, late), TopicBrokers.open(properties) as brokers:
        description = await brokers.describe(uses)
        configs = await brokers.configs(description.topics)
    response = pb.DescribeStorageTopicsResponse(brokers=len(description.brokers))
    for topic, info in sorted(description.topics.items()):
        policy = configs.get(topic, {}).get(POLICY)
        response.topics.add(
            use=uses[topic], topic=topic, cleanup_policy="" if policy is None else policy.value,
            partitions=len(info.partitions),
            replication_factor=min((len(partition.replicas) for partition in info.partitions.values()), default=0),
        )  # fmt: skip
    return response

"""Describes a topic's life in Ohara's form: its state, its partitions, and its error. Pure."""

from __future__ import annotations

from typing import Any

from keelman.api.connect.v1 import topic_pb2 as pb

RUNNING = "RUNNING"
NOBODY = {"id": -1, "host": "unknown", "port": -1}
"""The leader shown for a partition without one: Ohara's clients require a leader."""
UNKNOWN_OFFSET = -1


def runs(topic: pb.Topic) -> bool:
    """Tells whether the brokers have a topic."""
    state = topic.status.state
    if state == pb.TOPIC_STATE_PRESENT:
        return True
    return state in (pb.TOPIC_STATE_APPLYING, pb.TOPIC_STATE_FAILED) and topic.status.HasField("brokers")


def is_changing(topic: pb.Topic) -> bool:
    """Tells whether an operation on a topic is under way."""
    return topic.status.state == pb.TOPIC_STATE_APPLYING


def is_to_run(topic: pb.Topic) -> bool:
    """Tells whether a topic has the goal PRESENT."""
    return topic.goal == pb.TOPIC_GOAL_PRESENT


def life(topic: pb.Topic) -> dict[str, Any]:
    """Returns the fields of an answer that are not settings."""
    there = runs(topic)
    fields: dict[str, Any] = {
        "partitionInfos": [_partition(partition) for partition in topic.status.brokers.partitions] if there else [],
        "nodeMetrics": {},
        "lastModified": topic.update_time.ToMilliseconds(),
    }
    if there:
        fields["state"] = RUNNING
    faulty = (pb.TOPIC_STATE_FAILED, pb.TOPIC_STATE_MISSING, pb.TOPIC_STATE_UNKNOWN)
    if topic.status.state in faulty and topic.status.message and topic.status.state != pb.TOPIC_STATE_ABSENT:
        fields["error"] = topic.status.message
    return fields


def _partition(topic_partition: pb.TopicPartition) -> dict[str, Any]:
    return {
        "id": topic_partition.partition,
        "leader": _broker(topic_partition.leader) if topic_partition.HasField("leader") else NOBODY,
        "replicas": [_broker(each) for each in topic_partition.replicas],
        "inSyncReplicas": [_broker(each) for each in topic_partition.in_sync_replicas],
        "beginningOffset": topic_partition.begin_offset if topic_partition.HasField("begin_offset") else UNKNOWN_OFFSET,
        "endOffset": topic_partition.end_offset if topic_partition.HasField("end_offset") else UNKNOWN_OFFSET,
    }


def _broker(topic_broker: pb.TopicBroker) -> dict[str, Any]:
    return {
        "id": topic_broker.node_id,
        "host": topic_broker.host or NOBODY["host"],
        "port": topic_broker.port or NOBODY["port"],
    }

"""The names that a worker cluster has in Kafka: no other may have them."""

from __future__ import annotations

from keelman.model.cluster import WorkerClusterSpec
from keelman.model.errors import FailedPrecondition
from keelman.state.properties import group_of, topics_of
from keelman.state.snapshot import Snapshot


def check_own_names(name: str, spec: WorkerClusterSpec, snapshot: Snapshot) -> None:
    """Raises FailedPrecondition for a group or topic of another worker cluster."""
    group = group_of(name, spec.properties)
    topics = topics_of(name, spec.properties)
    for other in (one for one in snapshot.users_of(spec.broker_cluster) if one.name != name):
        if group_of(other.name, other.spec.properties) == group:
            raise FailedPrecondition(
                f"spec.properties.group.id: {group!r} is the group of worker cluster "
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

"""Checks that no two resources of a noun have one origin."""

from __future__ import annotations

from keelman.model.annotations import Origin
from keelman.model.errors import FailedPrecondition
from keelman.state.resources.snapshot import BROKER_CLUSTER, NODE, SPARK_CLUSTER, TOPIC, WORKER_CLUSTER, Snapshot

WORDS = {
    BROKER_CLUSTER: "broker cluster",
    WORKER_CLUSTER: "worker cluster",
    TOPIC: "topic",
    NODE: "the Spark service of node",
    SPARK_CLUSTER: "spark cluster",
}


def check_origin(
    noun: str, name: str, origin: Origin | None, snapshot: Snapshot, *, field: str = "spec.origin"
) -> None:
    """Raises FailedPrecondition for an origin of another resource of this noun."""
    if origin is None:
        return
    for other in sorted(snapshot.of_origin(noun, origin) - {name}):
        if is_past(noun, other, snapshot):
            continue
        raise FailedPrecondition(
            f"{field}: {origin.key!r} in scope {origin.scope!r} of {origin.api!r} is the origin of "
            f"{WORDS.get(noun, noun.replace('_', ' '))} {other!r}: give another",
            reason="ORIGIN_IN_USE",
            metadata={"kind": noun, "name": other, "api": origin.api, "scope": origin.scope, "key": origin.key},
        )


def is_past(noun: str, name: str, snapshot: Snapshot) -> bool:
    """Returns True for a cluster whose unique names and ports are free, because it is being deleted and nothing of it
    runs."""
    return noun in (BROKER_CLUSTER, WORKER_CLUSTER) and snapshot.is_past(snapshot.resources(noun)[name])

"""The topics that this API, or somebody else, keeps on a broker cluster."""

from __future__ import annotations

from keelman.api.connect.v1 import topic_service_pb2 as pb
from keelman.api.connect.v1.topic_pb2 import TOPIC_GOAL_PRESENT
from keelman.gateway.ohara.state.control import Control
from keelman.gateway.ohara.wire.keys import ObjectKey, shown_key


async def topics_on(control: Control, broker_cluster: str, *, present: bool) -> list[ObjectKey]:
    """The keys of the topics on a broker cluster, which is named as the state service names it; with `present` only
    those that its brokers are to have."""
    topics = await control.all(pb.ListTopicsRequest, broker_cluster=broker_cluster)
    found = [shown_key(one.name, one.spec.origin) for one in topics if one.goal == TOPIC_GOAL_PRESENT or not present]
    return [key for key in found if key is not None]

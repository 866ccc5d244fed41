"""Names the steps of operations on topics, and makes their facts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.model.topic import TopicApplied, TopicGoal

ASK, CREATE, GROW, CONFIGURE, AWAIT = "ask-brokers", "create-topic", "add-partitions", "set-config", "await-topic"
DELETE, AWAIT_GONE = "delete-topic", "await-gone"
STEPS: Mapping[TopicGoal, tuple[str, ...]] = {
    TopicGoal.PRESENT: (ASK, CREATE, GROW, CONFIGURE, AWAIT),
    TopicGoal.ABSENT: (ASK, DELETE, AWAIT_GONE),
}


def facts_of(spec: Mapping[str, Any], applied: TopicApplied) -> dict[str, Any]:
    """Returns the facts that the steps get: the stored spec, and the topic that it was applied to before."""
    known = applied.goal is TopicGoal.PRESENT
    return {"spec": spec, "known": known, "known_id": applied.topic_id if known else ""}

"""Derives the state of a topic: from its operations, and from its brokers' last answer. Pure."""

from __future__ import annotations

from keelman.model.topic import Topic, TopicGoal, TopicState
from keelman.state.topics.broker_views import Seen


def state_of(topic: Topic, seen: Seen | None) -> tuple[TopicState, str]:
    """Returns the state and the reason; `seen` is its brokers' last answer, None if the caller does not need that, as
    in events."""
    applied = topic.applied
    if not applied.ended:
        return TopicState.APPLYING, applied.problem
    if applied.failed:
        return TopicState.FAILED, applied.problem
    if applied.goal is TopicGoal.ABSENT:
        return TopicState.ABSENT, ""
    return (TopicState.PRESENT, "") if seen is None else _seen(topic, seen)


def is_gone(topic: Topic, seen: Seen) -> bool:
    """Returns whether its brokers have answered, since its last change, that they do not have it."""
    return not seen.problem and seen.topic is None and seen.time is not None and seen.time >= topic.update_time


def _seen(topic: Topic, seen: Seen) -> tuple[TopicState, str]:
    if seen.problem:
        return TopicState.UNKNOWN, seen.problem
    if is_gone(topic, seen):
        reason = f"the brokers have no topic {topic.spec.topic}: it was deleted without this resource"
        return TopicState.MISSING, reason
    return TopicState.PRESENT, ""  # without an answer since its operation ended: as the operation left it

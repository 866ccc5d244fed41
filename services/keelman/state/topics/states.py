"""Derives where a topic stands: from what was done about it, and from what its brokers answered last. Pure."""

from __future__ import annotations

from keelman.model.topic import Topic, TopicGoal, TopicState
from keelman.state.topics.seen import Seen


def state_of(topic: Topic, seen: Seen | None) -> tuple[TopicState, str]:
    """The state and why; `seen` is what its brokers said last, None where nobody asks for that, as in events."""
    applied = topic.applied
    if not applied.ended:
        return TopicState.APPLYING, applied.problem
    if applied.failed:
        return TopicState.FAILED, applied.problem
    if applied.goal is TopicGoal.ABSENT:
        return TopicState.ABSENT, ""
    return (TopicState.PRESENT, "") if seen is None else _seen(topic, seen)


def is_gone(topic: Topic, seen: Seen) -> bool:
    """Whether its brokers have answered, since it was changed last, that they do not have it."""
    return not seen.problem and seen.topic is None and seen.time is not None and seen.time >= topic.update_time


def _seen(topic: Topic, seen: Seen) -> tuple[TopicState, str]:
    if seen.problem:
        return TopicState.UNKNOWN, seen.problem
    if is_gone(topic, seen):
        why = f"the brokers have no topic {topic.spec.topic}: somebody deleted it past this resource"
        return TopicState.MISSING, why
    return TopicState.PRESENT, ""  # if they were not asked since its operation ended, as that has left it

"""Topics as resources: a Kafka topic as the user wants it, and the result of applying it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from keelman.model.annotations import NO_ANNOTATIONS, Annotations
from keelman.model.errors import InvalidArgument
from keelman.model.resource import Resource

MAX_TOPIC_NAME = 249
MAX_PARTITIONS = 10_000
"""The most that Kafka's controller creates in one request."""
MAX_REPLICATION_FACTOR = 32_767
KAFKAS_OWN = frozenset(("__cluster_metadata", "__consumer_offsets", "__share_group_state", "__transaction_state"))
_LEGAL = re.compile(rf"[a-zA-Z0-9._-]{{1,{MAX_TOPIC_NAME}}}")
LEGAL_TOPIC = f"1 to {MAX_TOPIC_NAME} letters, digits, '.', '_' or '-', not '.' or '..', and no topic of Kafka's own"


class TopicGoal(StrEnum):
    """The state that a topic is brought to."""

    ABSENT = "ABSENT"
    PRESENT = "PRESENT"


class TopicState(StrEnum):
    """The state of a topic."""

    ABSENT = "ABSENT"
    APPLYING = "APPLYING"
    PRESENT = "PRESENT"
    FAILED = "FAILED"
    MISSING = "MISSING"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as the user wants it; 0 partitions or replicas mean the brokers' default."""

    broker_cluster: str
    topic: str
    partitions: int = 0
    replication_factor: int = 0
    config: Mapping[str, str] = field(default_factory=dict)
    annotations: Annotations = NO_ANNOTATIONS


@dataclass(frozen=True, slots=True)
class TopicApplied:
    """The result of applying a topic: of its present operation, or of the last one."""

    operation: str = ""
    """The operation's name; empty before the first one."""
    ended: bool = True
    problem: str = ""
    """Why the last operation failed, or the present obstacle; empty if all is well."""
    failed: bool = False
    generation: int = 0
    """The topic's generation that was applied last."""
    goal: TopicGoal = TopicGoal.ABSENT
    """The state that the brokers were brought to last."""
    topic_id: str = ""
    """Kafka's id of the topic that an operation created or found."""


NOT_APPLIED = TopicApplied()


@dataclass(frozen=True, slots=True)
class Topic(Resource):
    """A Kafka topic as a user wants it. Times are aware UTC; `etag` changes with every change."""

    NOUN: ClassVar[str] = "topic"

    generation: int
    etag: str
    goal: TopicGoal
    spec: TopicSpec
    applied: TopicApplied = NOT_APPLIED


def checked_topic(field: str, topic: str) -> str:
    """Returns a topic's name in Kafka. Raises InvalidArgument for a name that Kafka refuses, or uses itself."""
    if not _LEGAL.fullmatch(topic) or topic in (".", "..") or topic in KAFKAS_OWN:
        raise InvalidArgument.of(field, topic, LEGAL_TOPIC)
    return topic


def check_topic_counts(field: str, partitions: int, replication_factor: int) -> None:
    """Raises InvalidArgument for a number of partitions or replicas that no topic can have."""
    default = "0 (as many as the brokers make by default)"
    if not 0 <= partitions <= MAX_PARTITIONS:
        raise InvalidArgument.of(f"{field}.partitions", partitions, f"{default} or 1 to {MAX_PARTITIONS}")
    if not 0 <= replication_factor <= MAX_REPLICATION_FACTOR:
        raise InvalidArgument.of(
            f"{field}.replication_factor", replication_factor, f"{default} or 1 to {MAX_REPLICATION_FACTOR}"
        )

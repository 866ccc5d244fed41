"""Ensures that compacted topics exist with the right number of partitions: creates missing ones, refuses wrong ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aiokafka.admin import NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    NoError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)

from keelman.kafka.clients import Admin, ClientError
from keelman.model.errors import FailedPrecondition, PermissionDenied, Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger

log = get_logger()
TRIES = 60
KEPT_OUT = (TopicAuthorizationFailedError, ClusterAuthorizationFailedError)


@dataclass(frozen=True, slots=True)
class CompactedTopic:
    """The required form of a compacted topic.

    `partitions` are used when the topic is created, -1 for the broker's default; an existing topic may have another
    number unless `exact`. A `replication_factor` of None means min(3, brokers), -1 the broker's default.
    """

    name: str
    partitions: int
    replication_factor: int | None = None
    exact: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    setting_key: str = ""


async def topics_there(admin: Admin, topics: Sequence[CompactedTopic]) -> list[int]:
    """Repeats `ensure_topics` for two minutes while the brokers cannot answer: they may be starting.

    Raises the errors of `ensure_topics`.
    """
    backoff, problem = Backoff(first=0.1, most=2.0), ""
    for _ in range(TRIES):
        try:
            return await ensure_topics(admin, topics)
        except (Unavailable, ClientError) as error:
            if problem != str(error):
                log.info("topics_not_ready", error=str(error))
            problem = str(error)
            await asyncio.sleep(backoff.next())
    raise Unavailable(f"the brokers do not answer about the worker's topics: {problem}")


async def ensure_topics(admin: Admin, topics: Sequence[CompactedTopic]) -> list[int]:
    """Creates the missing topics; returns the number of partitions of each.

    Raises FailedPrecondition for a topic that has the wrong partitions or is not compacted, or cannot be created so;
    PermissionDenied where access rules forbid it; Unavailable while the brokers do not know. If this client may not see
    a topic's settings, it accepts the topic, like Connect.
    """
    missing = [topic for topic in topics if await _partitions(admin, topic) is None]
    if missing:
        await _create(admin, missing)
    return [await _check(admin, topic) for topic in topics]


async def _check(admin: Admin, topic: CompactedTopic) -> int:
    partitions = await _partitions(admin, topic)
    if partitions is None:
        raise Unavailable(f"topic {topic.name} was created and is not known to the brokers yet")
    policy = await _cleanup_policy(admin, topic.name)
    if policy is None:
        log.warning("cleanup_policy_unseen", topic=topic.name, note="this worker may not DESCRIBE_CONFIGS of it")
    if problem := _problem(topic, partitions, policy):
        raise FailedPrecondition(problem, reason="WRONG_TOPIC")
    return partitions


async def topic_problem(admin: Admin, topic: CompactedTopic) -> str:
    """Returns why `ensure_topics` would refuse the topic as it is now; empty if it would not, or if it is missing.
    Raises Unavailable, PermissionDenied."""
    partitions = await _partitions(admin, topic)
    return "" if partitions is None else _problem(topic, partitions, await _cleanup_policy(admin, topic.name))


def _problem(compacted: CompactedTopic, partitions: int, policy: str | None) -> str:
    topic = f"{compacted.setting_key}: topic {compacted.name}"
    if compacted.exact and partitions != compacted.partitions:
        return f"{topic} has {partitions} partitions, needed are exactly {compacted.partitions}"
    if policy not in (None, "compact"):
        return f"{topic} has cleanup.policy={policy}, needed is cleanup.policy=compact"
    return ""


async def _create(admin: Admin, missing: Sequence[CompactedTopic]) -> None:
    brokers = len((await admin.describe_cluster())["brokers"])
    by_name = {topic.name: topic for topic in missing}
    factors = {
        t.name: min(3, max(1, brokers)) if t.replication_factor is None else t.replication_factor for t in missing
    }
    new_topics = [
        NewTopic(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=factors[topic.name],
            # The library takes -1 only together with assignments of replicas, which are empty here.
            replica_assignments={} if -1 in (topic.partitions, factors[topic.name]) else None,
            topic_configs={**topic.settings, "cleanup.policy": "compact"},
        )
        for topic in missing
    ]
    try:
        _, refused = await create_missing(admin, new_topics)
    except KafkaError as error:
        raise Unavailable(f"topics {', '.join(by_name)} cannot be created: {error!r}") from None
    for name, reason in refused.items():
        raise FailedPrecondition(
            f"{by_name[name].setting_key}: topic {name} cannot be created with {by_name[name].partitions} "
            f"partitions and replication factor {factors[name]} on {brokers} broker(s): {reason}",
            reason="WRONG_TOPIC",
        )


async def create_missing(admin: Admin, topics: Sequence[NewTopic]) -> tuple[set[str], dict[str, str]]:
    """Creates topics; returns those created, and why the brokers refused others. All others existed already.

    Raises KafkaError.
    """
    new, refused = set(), {}
    for name, code, *message in (await admin.create_topics(list(topics))).topic_errors:
        problem = for_code(code)
        if problem is NoError:
            new.add(name)
        elif problem is not TopicAlreadyExistsError:
            refused[name] = message[0] if message and message[0] else problem.__name__
    return new, refused


async def _partitions(admin: Admin, topic: CompactedTopic) -> int | None:
    try:
        described = (await admin.describe_topics([topic.name]))[0]
    except KafkaError as error:
        raise Unavailable(f"topic {topic.name} cannot be described: {error}") from None
    if for_code(described["error_code"]) in KEPT_OUT:
        raise PermissionDenied(
            f"{topic.setting_key}: the brokers' access rules keep this worker out of topic {topic.name} (DESCRIBE)",
            reason="KEPT_OUT",
        )
    return None if described["error_code"] else len(described["partitions"])


async def _cleanup_policy(admin: Admin, topic: str) -> str | None:
    try:
        answers = await admin.describe_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic, {"cleanup.policy": None})]
        )
    except KafkaError as error:
        raise Unavailable(f"topic {topic} cannot be described: {error}") from None
    code, message, _, _, entries = answers[0].resources[0][:5]
    if for_code(code) in KEPT_OUT:
        return None
    if for_code(code) is not NoError:
        raise Unavailable(f"topic {topic} cannot be described: {message or for_code(code).__name__}")
    return next((str(entry[1]) for entry in entries if entry[0] == "cleanup.policy"), "unknown")

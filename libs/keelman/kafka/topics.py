"""Compacted topics that must be there, with the right number of partitions: made when missing, refused when wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aiokafka.admin import NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, NoError, TopicAlreadyExistsError, for_code

from keelman.kafka.clients import Admin
from keelman.model.errors import FailedPrecondition, Unavailable


@dataclass(frozen=True, slots=True)
class CompactedTopic:
    """A compacted topic as it is wanted.

    `partitions` are used when the topic is made, -1 for the broker's default; an existing topic may have another number
    unless `exact`. A `replication_factor` of None means min(3, brokers), -1 the broker's default.
    """

    name: str
    partitions: int
    replication_factor: int | None = None
    exact: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    setting_key: str = ""


async def ensure_topics(admin: Admin, wanted: Sequence[CompactedTopic]) -> list[int]:
    """Makes the topics that are missing; returns the number of partitions of each.

    Raises FailedPrecondition for a topic that has the wrong partitions or is not compacted, or that cannot be made so;
    Unavailable while the brokers cannot tell.
    """
    missing = [topic for topic in wanted if await _partitions(admin, topic.name) is None]
    if missing:
        await _create(admin, missing)
    return [await _checked(admin, topic) for topic in wanted]


async def _checked(admin: Admin, wanted: CompactedTopic) -> int:
    found = await _partitions(admin, wanted.name)
    if found is None:
        raise Unavailable(f"topic {wanted.name} was created and is not known to the brokers yet")
    if wanted.exact and found != wanted.partitions:
        raise FailedPrecondition(
            f"{wanted.setting_key}: topic {wanted.name} has {found} partitions, wanted exactly {wanted.partitions}",
            reason="WRONG_TOPIC",
        )
    policy = await _cleanup_policy(admin, wanted.name)
    if policy != "compact":
        raise FailedPrecondition(
            f"{wanted.setting_key}: topic {wanted.name} has cleanup.policy={policy}, wanted cleanup.policy=compact",
            reason="WRONG_TOPIC",
        )
    return found


async def _create(admin: Admin, missing: Sequence[CompactedTopic]) -> None:
    brokers = len((await admin.describe_cluster())["brokers"])
    by_name = {topic.name: topic for topic in missing}
    factors = {
        t.name: min(3, max(1, brokers)) if t.replication_factor is None else t.replication_factor for t in missing
    }
    asked = [
        NewTopic(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=factors[topic.name],
            # The library takes -1 only together with assignments of replicas, none of them here.
            replica_assignments={} if -1 in (topic.partitions, factors[topic.name]) else None,
            topic_configs={**topic.settings, "cleanup.policy": "compact"},
        )
        for topic in missing
    ]
    try:
        answer = await admin.create_topics(asked)
    except KafkaError as error:
        raise Unavailable(f"topics {', '.join(by_name)} cannot be created: {error!r}") from None
    for name, code, *message in answer.topic_errors:
        problem = for_code(code)
        if problem not in (NoError, TopicAlreadyExistsError):
            text = message[0] if message and message[0] else problem.__name__
            raise FailedPrecondition(
                f"{by_name[name].setting_key}: topic {name} cannot be created with {by_name[name].partitions} "
                f"partitions and replication factor {factors[name]} on {brokers} broker(s): {text}",
                reason="WRONG_TOPIC",
            )


async def _partitions(admin: Admin, topic: str) -> int | None:
    try:
        described = (await admin.describe_topics([topic]))[0]
    except KafkaError as error:
        raise Unavailable(f"topic {topic} cannot be described: {error}") from None
    return None if described["error_code"] else len(described["partitions"])


async def _cleanup_policy(admin: Admin, topic: str) -> str:
    try:
        answers = await admin.describe_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic, {"cleanup.policy": None})]
        )
    except KafkaError as error:
        raise Unavailable(f"topic {topic} cannot be described: {error}") from None
    for answer in answers:
        for resource in answer.resources:
            for entry in resource[4]:
                if entry[0] == "cleanup.policy":
                    return str(entry[1])
    return "unknown"

"""Creates and deletes topics that hold records, for users who do not let a connector create them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError, NoError, UnknownTopicOrPartitionError, for_code

from keelman.kafka.clients import admin_client
from keelman.kafka.topics import create_missing
from keelman.model.errors import FailedPrecondition, Unavailable

CLIENT = "keelman-topics"


async def create_topic(
    properties: Mapping[str, str], name: str, *, partitions: int, settings: Mapping[str, str] | None = None
) -> bool:
    """Creates a topic, stored on min(3, brokers) brokers; False if it already exists with as many partitions.

    `properties` are Java's client properties. Raises FailedPrecondition for another number of partitions and for
    refusals of the broker, Unavailable when no broker answers.
    """
    async with admin_client(properties, client_id=CLIENT) as admin:
        try:
            brokers = len((await admin.describe_cluster())["brokers"])
            topic = NewTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=min(3, max(1, brokers)),
                topic_configs=dict(settings or {}),
            )
            new, refused = await create_missing(admin, [topic])
            if new:
                return True
            if refused:
                raise FailedPrecondition(f"topic {name} cannot be created: {refused[name]}", reason="WRONG_TOPIC")
            described = (await admin.describe_topics([name]))[0]
        except KafkaError as error:
            raise Unavailable(f"topic {name} cannot be created: {error}") from None
    if len(described["partitions"]) != partitions:
        raise FailedPrecondition(
            f"topic {name} has {len(described['partitions'])} partitions, needed are exactly {partitions}",
            reason="WRONG_TOPIC",
        )
    return False


async def delete_topics(properties: Mapping[str, str], names: Sequence[str]) -> None:
    """Deletes topics with their records; missing ones count as deleted. Raises the errors of `create_topic`."""
    if not names:
        return
    async with admin_client(properties, client_id=CLIENT) as admin:
        try:
            answer = await admin.delete_topics(list(names))
        except KafkaError as error:
            raise Unavailable(f"topics {', '.join(names)} cannot be deleted: {error}") from None
        for name, code in answer.topic_error_codes:
            problem = for_code(code)
            if problem not in (NoError, UnknownTopicOrPartitionError):
                raise FailedPrecondition(f"topic {name} cannot be deleted: {problem.__name__}", reason="WRONG_TOPIC")

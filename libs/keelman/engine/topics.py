"""Makes sure that a source's topic is there before its first record."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from keelman.engine.failure import RunFailure

SECONDS = 20.0
_DEFAULT = "topic.creation.default."


def ensure_topic(
    topic: str, producer: Producer, admin: dict[str, Any], worker: Mapping[str, str], connector: Mapping[str, str]
) -> None:
    """Returns once the topic can be written.

    A missing topic is made with the connector's `topic.creation.default.*`, else with the brokers' defaults, unless the
    worker has `topic.creation.enable=false`. Raises KafkaException or RunFailure.
    """
    if _known(topic, producer):
        return
    if worker.get("topic.creation.enable", "true").strip().lower() != "false":
        _create(topic, admin, connector)
    deadline = time.monotonic() + SECONDS
    while not _known(topic, producer):
        producer.poll(0.05)
        if time.monotonic() > deadline:
            raise RunFailure("BROKER_LOST", f"topic {topic} not present in metadata after {SECONDS:.0f} s")


def _known(topic: str, producer: Producer) -> bool:
    found = producer.list_topics(topic, 5.0).topics.get(topic)
    return found is not None and found.error is None and bool(found.partitions)


def _create(topic: str, admin: dict[str, Any], connector: Mapping[str, str]) -> None:
    given = {k[len(_DEFAULT) :]: v for k, v in connector.items() if k.startswith(_DEFAULT)}
    partitions = int(given.pop("partitions", "-1"))
    replicas = int(given.pop("replication.factor", "-1"))
    for key in ("include", "exclude"):
        given.pop(key, None)
    wanted = NewTopic(topic, num_partitions=partitions, replication_factor=replicas, config=given)
    client = AdminClient(admin)
    try:
        client.create_topics([wanted], request_timeout=8.0)[topic].result(9.0)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise

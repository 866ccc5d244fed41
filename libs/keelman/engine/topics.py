"""Makes sure that a source's topics are there before its first record."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from keelman.connect.config_def import Type, parse_type
from keelman.connect.plugin import TopicPlan
from keelman.engine.failure import RunFailure
from keelman.model.keys import under

SECONDS = 20.0
AGAIN_SECONDS = 0.05
OFFSET_PARTITIONS = "25"
_ENABLE = "topic.creation.enable"
_DEFAULT = "topic.creation.default."
_STORAGE = "offset.storage."


def ensure_topic(
    topic: str,
    partitions: Callable[[str], int],
    admin: Mapping[str, Any],
    worker: Mapping[str, str],
    connector: Mapping[str, str],
    *,
    plan: TopicPlan | None = None,
) -> None:
    """Returns once the topic can be written. `partitions` tells how many a topic has, 0 while it is not there.

    A missing topic is made as the reader plans it, else with the connector's `topic.creation.default.*`, else with the
    brokers' defaults. Without a plan and with the worker's `topic.creation.enable=false` it is waited for. Raises
    KafkaException, RunFailure or ConfigValueError.
    """
    if partitions(topic):
        return
    if plan is not None:
        _create(topic, admin, plan)
    elif parse_type(_ENABLE, worker.get(_ENABLE, "").strip() or "true", Type.BOOLEAN):
        _create(topic, admin, _configured(connector))
    _await_topic(topic, partitions)


def ensure_offset_topic(
    topic: str, partitions: Callable[[str], int], admin: Mapping[str, Any], worker: Mapping[str, str]
) -> None:
    """Returns once a connector's own offset topic can be written; a missing one is made as the worker's would be.

    Connect makes it compacted with `offset.storage.partitions` (25), `.replication.factor` (here the brokers' default
    when unset) and the worker's other `offset.storage.*` settings. Raises KafkaException or RunFailure.
    """
    if partitions(topic):
        return
    given = under(_STORAGE, worker)
    given.pop("topic", None)
    count = int(given.pop("partitions", OFFSET_PARTITIONS))
    replicas = int(given.pop("replication.factor", "-1"))
    _create(topic, admin, TopicPlan(count, replicas, {**given, "cleanup.policy": "compact"}))
    _await_topic(topic, partitions)


def _await_topic(topic: str, partitions: Callable[[str], int]) -> None:
    deadline = time.monotonic() + SECONDS
    while not partitions(topic):
        time.sleep(AGAIN_SECONDS)
        if time.monotonic() > deadline:
            raise RunFailure("BROKER_LOST", f"topic {topic} not present in metadata after {SECONDS:.0f} s")


def _configured(connector: Mapping[str, str]) -> TopicPlan:
    given = under(_DEFAULT, connector)
    partitions = int(given.pop("partitions", "-1"))
    replicas = int(given.pop("replication.factor", "-1"))
    for key in ("include", "exclude"):
        given.pop(key, None)
    return TopicPlan(partitions, replicas, given)


def _create(topic: str, admin: Mapping[str, Any], plan: TopicPlan) -> None:
    wanted = NewTopic(
        topic, num_partitions=plan.partitions, replication_factor=plan.replication_factor, config=dict(plan.config)
    )
    client = AdminClient(dict(admin))
    try:
        client.create_topics([wanted], request_timeout=4.0)[topic].result(5.0)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise

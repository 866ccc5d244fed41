"""Makes sure that topics exist before the first record is written to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType

from keelman.connect.errors import ConnectError
from keelman.connect.topic_creation import TopicCreation, creates_topics
from keelman.connect.topic_plan import TopicPlan
from keelman.engine.clients import with_token
from keelman.engine.failure import NOT_ALLOWED, RunFailure, TopicRefused
from keelman.engine.records.size import NO_LIMIT, Sizes
from keelman.model.keys import under
from keelman.runtime.logs.logging import get_logger

SECONDS = 20.0
AGAIN_SECONDS = 0.05
ASK_SECONDS = 5.0
OFFSET_PARTITIONS = "25"
OWN_OFFSET_TOPIC = "offsets.storage.topic"
POLICY, COMPACT = "cleanup.policy", "compact"
DEAD_LETTER_REPLICAS = "errors.deadletterqueue.topic.replication.factor"
_STORAGE = "offset.storage."
_NOT_ALLOWED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
# Errors that a repeated request would get again.
_REFUSED = (
    KafkaError.INVALID_CONFIG,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.POLICY_VIOLATION,
    KafkaError.TOPIC_EXCEPTION,
)

_log = get_logger()


def ensure_topic(
    topic: str,
    partitions: Callable[[str], int],
    admin: Mapping[str, Any],
    worker: Mapping[str, str],
    connector: Mapping[str, str],
    *,
    plan: TopicPlan | None = None,
) -> None:
    """Returns once the topic can be written. `partitions` returns a topic's number of partitions, 0 if it is missing.

    Creates a missing topic by the reader's plan, else by the connector's first `topic.creation.*` group that matches,
    else with the brokers' defaults. Without a plan and with the worker's `topic.creation.enable=false`
    brokers may create it themselves. Raises KafkaException, RunFailure, ConnectError or ConfigValueError.
    """
    if partitions(topic):
        return
    if plan is None and creates_topics(worker):
        plan = TopicCreation(connector).plan(topic) or TopicPlan()
    if plan is not None:
        _create(topic, admin, plan)
    else:
        _have_brokers_create(topic, admin)
    _await_topic(topic, partitions)


def grow_topic(topic: str, count: int, partitions: Callable[[str, int], int], admin: Mapping[str, Any]) -> None:
    """Returns once the topic has `count` writable partitions. `partitions` returns their number, and queries again if
    it knows of fewer than its second argument. Raises TopicRefused; KafkaException and RunFailure for passing
    errors."""
    client = AdminClient(with_token(admin))
    try:
        client.create_partitions([NewPartitions(topic, count)], request_timeout=4.0)[topic].result(5.0)
    except KafkaException as error:
        if partitions(topic, count) < count:  # else another client was first
            if error.args[0].code() in (*_NOT_ALLOWED, *_REFUSED):
                raise TopicRefused(error.args[0].str()) from error
            raise
    else:
        _log.info("topic_grown", topic=topic, partitions=count)
    _await_topic(topic, lambda topic: partitions(topic, count), count)


def ensure_dead_letter_topic(
    topic: str, partitions: Callable[[str], int], admin: Mapping[str, Any], connector: Mapping[str, str]
) -> None:
    """Returns once a connector's dead letter topic can be written; creates a missing one with one partition.

    As in Connect it gets `errors.deadletterqueue.topic.replication.factor` replicas; if that is not set three, or the
    brokers' default if there are fewer brokers. Raises as `ensure_topic`.
    """
    if partitions(topic):
        return
    text = connector.get(DEAD_LETTER_REPLICAS, "").strip()
    try:
        _create(topic, admin, TopicPlan(1, int(text or 3)))
    except ConnectError as error:
        cause = error.__cause__
        few = isinstance(cause, KafkaException) and cause.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR
        if text or not few:
            raise ConnectError(f"Could not initialize dead letter queue with topic={topic}: {error}") from cause
        _create(topic, admin, TopicPlan(1))
    _await_topic(topic, partitions)


def record_sizes(topic: str, admin: Mapping[str, Any], request: int, codec: int = 0) -> Sizes:
    """Returns the size limits of one record for a topic: its producer's limit, and the topic's, which is queried."""
    ask = partial(_most_message_bytes, topic, admin)
    return Sizes(request, ask(), codec, ask)


def _most_message_bytes(topic: str, admin: Mapping[str, Any]) -> int:
    """Returns the topic's max.message.bytes; NO_LIMIT where no broker answers."""
    resource, client = ConfigResource(ResourceType.TOPIC, topic), AdminClient(with_token(admin))
    try:
        configs = client.describe_configs([resource], request_timeout=ASK_SECONDS)[resource].result(ASK_SECONDS + 1)
        return int(configs["max.message.bytes"].value)
    except (KafkaException, KeyError, TimeoutError, TypeError, ValueError):
        return NO_LIMIT


def ensure_offset_topic(
    topic: str, partitions: Callable[[str], int], admin: Mapping[str, Any], worker: Mapping[str, str]
) -> None:
    """Returns once a connector's own offset topic can be written; creates a missing one like the worker's.

    Connect creates it compacted with `offset.storage.partitions` (25), `.replication.factor` (here the brokers' default
    when unset) and the worker's other `offset.storage.*` settings. Raises KafkaException, RunFailure, and ConnectError
    for an existing topic that is not compacted.
    """
    own = under(_STORAGE, worker)
    own.pop("topic", None)
    count = int(own.pop("partitions", OFFSET_PARTITIONS))
    replicas = int(own.pop("replication.factor", "-1"))
    plan = TopicPlan(count, replicas, {**own, POLICY: COMPACT})
    ensure_compacted(topic, partitions, admin, plan, OWN_OFFSET_TOPIC)


def ensure_compacted(
    topic: str, partitions: Callable[[str], int], admin: Mapping[str, Any], plan: TopicPlan, field: str
) -> None:
    """Returns once a topic of offsets can be written; creates a missing one by this plan. Raises KafkaException,
    RunFailure, and ConnectError, which names `field`, for a topic that others created, perhaps just now, and that is
    not compacted."""
    is_new = not partitions(topic) and _create(topic, admin, plan)
    _await_topic(topic, partitions)
    if not is_new:
        _check_compacted(topic, admin, field)


def _check_compacted(topic: str, admin: Mapping[str, Any], field: str) -> None:
    """Raises ConnectError, which names `field`, for a topic from which brokers delete old records: offsets in it would
    be gone one day. Accepts the topic if this client may not see its settings, as Connect does. Raises KafkaException
    where no broker answers."""
    resource, client = ConfigResource(ResourceType.TOPIC, topic), AdminClient(with_token(admin))
    try:
        policy = client.describe_configs([resource], request_timeout=ASK_SECONDS)[resource].result(ASK_SECONDS + 1)[
            POLICY
        ]
    except KafkaException as error:
        if error.args[0].code() not in _NOT_ALLOWED:
            raise
        _log.warning("cleanup_policy_unseen", topic=topic, note="the connector may not DESCRIBE_CONFIGS of it")
        return
    if policy.value != COMPACT:
        raise ConnectError(
            f"{field}: topic {topic} has {POLICY}={policy.value}, and must have {POLICY}={COMPACT}: "
            "offsets in it would be deleted one day. Alter the topic, or use another one"
        )


def _await_topic(topic: str, partitions: Callable[[str], int], count: int = 1) -> None:
    deadline = time.monotonic() + SECONDS
    while partitions(topic) < count:
        time.sleep(AGAIN_SECONDS)
        if time.monotonic() > deadline:
            what = topic if count == 1 else f"{topic} with {count} partitions"
            raise RunFailure("BROKER_LOST", f"topic {what} not present in metadata after {SECONDS:.0f} s")


def _create(topic: str, admin: Mapping[str, Any], plan: TopicPlan) -> bool:
    """Creates a topic. Returns False if it exists already. Raises ConnectError, RunFailure where that is not allowed,
    with topic and reason; KafkaException for other errors."""
    new_topic = NewTopic(
        topic, num_partitions=plan.partitions, replication_factor=plan.replication_factor, config=dict(plan.config)
    )
    client = AdminClient(with_token(admin))
    try:
        client.create_topics([new_topic], request_timeout=4.0)[topic].result(5.0)
    except KafkaException as error:
        code, reason = error.args[0].code(), error.args[0].str()
        if code in _NOT_ALLOWED:
            text = (
                f"Task failed to create new topic {topic}: {reason}. Ensure that the task is authorized to create "
                "topics or that the topic exists and restart the task"
            )
            raise RunFailure(NOT_ALLOWED, text, retriable=False) from error
        if code in _REFUSED:
            raise TopicRefused(f"Unable to create topic(s) '{topic}': {reason}") from error
        if code != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    _log.info("topic_created", topic=topic, partitions=plan.partitions, replicas=plan.replication_factor)
    return True


def _have_brokers_create(topic: str, admin: Mapping[str, Any]) -> None:
    """Requests the topic's metadata as a producer does: brokers with `auto.create.topics.enable` then create it."""
    AdminClient({**with_token(admin), "allow.auto.create.topics": True}).list_topics(topic, ASK_SECONDS)

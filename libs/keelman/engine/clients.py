"""Translates client properties from the names of Java's clients, in worker and connector configurations, to
librdkafka's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from keelman.connect.errors import ConfigValueError
from keelman.connect.records import TopicPartition
from keelman.kafka.properties.connector_clients import merged
from keelman.kafka.properties.keys import ClientKind
from keelman.kafka.properties.settings import librdkafka_settings
from keelman.kafka.security.oauth import ALLOWED_KEY, allow_urls
from keelman.model.errors import InvalidArgument
from keelman.model.keys import under
from keelman.runtime.own_thread import in_thread
from keelman.runtime.side_loop import KAFKA_LOOP

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition as ClientPartition

_JAVA = "java."


def consumer_properties(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, Any]:
    """For consumers: the worker's common keys, its `consumer.`, then the connector's `consumer.override.`."""
    return client_settings(merged(worker, connector, "consumer"), "consumer")


def admin_properties(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, Any]:
    """For admin clients, the same way."""
    return client_settings(merged(worker, connector, "admin"), "admin")


def partition_of(partition: ClientPartition) -> TopicPartition:
    """Returns a partition of the client library without its offset."""
    return TopicPartition(partition.topic, partition.partition)


def client_settings(properties: Mapping[str, str], client: ClientKind) -> dict[str, Any]:
    """librdkafka's settings for Java's properties. Raises ConfigValueError."""
    try:
        return librdkafka_settings(properties, client)
    except InvalidArgument as error:
        key = error.metadata.get("field", "")
        raise ConfigValueError(key, properties.get(key), whole=error.message) from None


def with_token(settings: Mapping[str, Any], beat: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """The settings of a client that is made now, once there is a token for it where it needs one: the client would wait
    ten seconds for it, and would not say why none comes.

    `beat` is called while who gives tokens is slow. Raises Unauthenticated, Unavailable and what `beat` raises.
    """
    if "oauth_cb" in settings:
        KAFKA_LOOP.call(_ask_for_token(settings["oauth_cb"]), beat)
    return dict(settings)


async def _ask_for_token(give: Callable[[str], object]) -> None:
    await in_thread(lambda: give(""))[1]


def portable(settings: Mapping[str, Any], java: Mapping[str, str]) -> dict[str, str]:
    """Returns settings as texts, for another process: without the function that makes tokens, with its properties."""
    texts = {key: str(value) for key, value in settings.items() if not callable(value)}
    if "oauth_cb" in settings:
        texts |= {f"{_JAVA}{k}": v for k, v in java.items() if k.startswith(("security.", "sasl.", ALLOWED_KEY))}
    return texts


def restored(texts: Mapping[str, str]) -> dict[str, Any]:
    """The settings again, in that process."""
    java = under(_JAVA, texts)
    settings: dict[str, Any] = {key: value for key, value in texts.items() if not key.startswith(_JAVA)}
    if java:
        allow_urls(java.get(ALLOWED_KEY, ""))
        settings["oauth_cb"] = client_settings(java, "consumer")["oauth_cb"]
    return settings

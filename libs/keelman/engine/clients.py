"""Client properties: from the names of Java's clients, in worker and connector configurations, to librdkafka's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.connect.errors import ConfigValueError
from keelman.kafka.client_keys import Client
from keelman.kafka.client_properties import merged
from keelman.kafka.client_settings import librdkafka_settings
from keelman.model.errors import InvalidArgument


def given_to_producers(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, str]:
    """Java's properties of a producer: the worker's, its `producer.`, then the connector's `producer.override.`."""
    return merged(worker, connector, "producer")


def producer_properties(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, Any]:
    """For producers: the worker's common keys, its `producer.`, then the connector's `producer.override.`."""
    return client_settings(merged(worker, connector, "producer"), "producer")


def consumer_properties(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, Any]:
    """For consumers: the worker's common keys, its `consumer.`, then the connector's `consumer.override.`."""
    return client_settings(merged(worker, connector, "consumer"), "consumer")


def admin_properties(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, Any]:
    """For admin clients, the same way."""
    return client_settings(merged(worker, connector, "admin"), "admin")


def client_settings(given: Mapping[str, str], client: Client) -> dict[str, Any]:
    """librdkafka's settings for Java's properties. Raises ConfigValueError."""
    try:
        return librdkafka_settings(given, client)
    except InvalidArgument as error:
        key = error.metadata.get("field", "")
        raise ConfigValueError(key, given.get(key), whole=error.message) from None


def commit_interval_seconds(worker: Mapping[str, str], connector: Mapping[str, str]) -> float:
    """`keelman.commit.interval.ms` of the connector, else of the worker, else 500 ms. Raises ConfigValueError."""
    key = "keelman.commit.interval.ms"
    text = connector.get(key, worker.get(key, "500")).strip()
    if not text.isdigit() or not 1 <= int(text) <= 600_000:
        raise ConfigValueError(key, text, "Value must be a number of milliseconds between 1 and 600000")
    return int(text) / 1000

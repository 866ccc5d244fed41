"""Turns a connector's settings into its configuration in Connect: texts, with Kafka's names for topics. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from keelman.gateway.ohara.wire.json_types import is_number
from keelman.gateway.ohara.wire.keys import ObjectKey, key_of

CLASS, TASKS, TOPICS, TOPIC_KEYS = "connector.class", "tasks.max", "topics", "topicKeys"
CONNECTOR_KEY, WORKER_KEY, COLUMNS, TAGS = "connectorKey", "workerClusterKey", "columns", "tags"
PARTITIONER = "producer.override.partitioner.class"
CONVERTERS = ("key.converter", "value.converter", "header.converter")
BYTES_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
OHARA_PARTITIONER = "oharastream.ohara.kafka.RowDefaultPartitioner"
OHARA_CLASSES = "oharastream."
"""Ohara's own connectors, which turn rows into bytes themselves."""
INTERNAL = (CONNECTOR_KEY, TOPICS)
"""Settings in answers that are derived from other settings; their values in a request are not kept."""


def kafka_name(key: ObjectKey) -> str:
    """Returns the name of a connector or topic with this key in Kafka."""
    return f"{key.group}-{key.name}"


def topic_keys(settings: Mapping[str, Any]) -> list[ObjectKey]:
    """Returns the keys of a connector's topics."""
    return [key_of(topic_key, TOPIC_KEYS) for topic_key in settings.get(TOPIC_KEYS, ())]


def kafka_config(key: ObjectKey, settings: Mapping[str, Any], topics: Iterable[str]) -> dict[str, str]:
    """Returns the configuration of a connector for Connect, without its name. Empty lists are left out.

    `topics` are the Kafka names of its topics.
    """
    config = {name: text for name, value in settings.items() if name != "name" and (text := config_text(name, value))}
    config |= {"group": key.group, CONNECTOR_KEY: json_text(key.json)}
    if names := ",".join(dict.fromkeys(topics)):
        config[TOPICS] = names
    return config


def config_text(name: str, value: Any) -> str:
    """Returns a setting's text in a configuration; empty for a setting that is left out. Ohara's partitioner is left
    out: for rows without a key it chooses like Kafka's own."""
    text = plain_text(value)
    return "" if (name, text) == (PARTITIONER, OHARA_PARTITIONER) else text


def plain_text(value: Any) -> str:
    """Returns a setting's value in Connect's form: a list of plain values joined by commas, other lists and objects as
    JSON. Empty for an empty list, which no configuration contains."""
    if isinstance(value, str):
        listed = _listed(value)
        return value if listed is None else _joined(listed, value)
    if isinstance(value, list):
        return _joined(value, json_text(value))
    return json_text(value)


def json_text(value: Any) -> str:
    """Returns a value as JSON without spaces."""
    return orjson.dumps(value).decode()


def _listed(text: str) -> list[Any] | None:
    """Parses a text as a JSON list; returns None if it is none."""
    if not text.startswith("["):
        return None
    try:
        tree = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return tree if isinstance(tree, list) else None


def _joined(values: Iterable[Any], other: str) -> str:
    """Returns plain values joined by commas; `other` if any value is not plain."""
    texts = [value if isinstance(value, str) else json_text(value) for value in values]
    plain = all(isinstance(value, (str, bool)) or is_number(value) for value in values)
    return ",".join(texts) if plain else other


def is_ohara_class(name: str) -> bool:
    """Tells whether a connector class is one of Ohara's own, by its name."""
    return name.startswith(OHARA_CLASSES)

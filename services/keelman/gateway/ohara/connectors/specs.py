"""Translates a connector's settings into our connector definition that stores them, and back. Pure.

Connect gets the definition's configuration. The definition's `extra` holds the settings that differ from their texts in
the configuration, the defaults of the connector's class, and the keys that were generated and not sent.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import orjson
from google.protobuf.struct_pb2 import Struct

from keelman.api.connect.v1.connector_definition_pb2 import ConnectorDefinition, ConnectorDefinitionSpec
from keelman.gateway.ohara.connectors.class_settings import Json, defaults, is_ohara
from keelman.gateway.ohara.definitions.config import (
    BYTES_CONVERTER,
    CLASS,
    CONNECTOR_KEY,
    CONVERTERS,
    INTERNAL,
    TASKS,
    TOPICS,
    WORKER_KEY,
    config_text,
    is_ohara_class,
    kafka_config,
    kafka_name,
)
from keelman.gateway.ohara.definitions.connector import CONNECTOR
from keelman.gateway.ohara.state.structs import struct_of, value_of
from keelman.gateway.ohara.wire.keys import API, ObjectKey
from keelman.gateway.ohara.wire.setting_def import Necessary
from keelman.gateway.ohara.wire.values import Settings, default_of

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
SIMPLE_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
WORKERS_OWN = {"key.converter": JSON_CONVERTER, "value.converter": JSON_CONVERTER, "header.converter": SIMPLE_HEADERS}
"""The converters of connectors that name none, as workers of this API are configured."""
KEPT, FILLED, MADE = "settings", "filled", "made"
"""The fields of a definition's `extra`."""
ONE_TOPIC = "topic"
"""Connect's own file source takes one topic, under this key."""
_NAMES = ("group", "name")


@dataclass(frozen=True, slots=True)
class ConnectorSettings:
    """A connector's settings as sent, and the description of its class, if that is known."""

    settings: Settings
    info: Json | None = None
    topics: Sequence[str] = ()
    """The Kafka names of its topics."""
    filled: Mapping[str, Any] = field(default_factory=dict)
    """The defaults of its class that were known before; unused if `info` is known, which has its own."""


def spec_of(key: ObjectKey, connector_settings: ConnectorSettings, worker_cluster: str) -> ConnectorDefinitionSpec:
    """Returns the spec of a connector's definition."""
    settings = {k: v for k, v in connector_settings.settings.items() if k not in (*INTERNAL, *_NAMES)}
    filled = dict(connector_settings.filled) if connector_settings.info is None else defaults(connector_settings.info)
    settings = {k: v for k, v in settings.items() if not (k in filled and filled[k] == v)}
    derived = _made(connector_settings, settings)
    config = kafka_config(key, settings, connector_settings.topics) | derived
    remaining = {k: v for k, v in settings.items() if not isinstance(v, str) or config.get(k) != v}
    return ConnectorDefinitionSpec(
        worker_cluster=worker_cluster,
        connector=kafka_name(key),
        config=config,
        origin=key.origin,
        extra=struct_of({KEPT: remaining, FILLED: filled, MADE: sorted(derived)}),
    )


def settings_of(key: ObjectKey, definition: ConnectorDefinition, worker: ObjectKey) -> Settings:
    """Returns a connector's settings as sent; values that were changed outside this API come from the configuration."""
    return _settings(key, definition, worker, _extra(definition))


def _settings(key: ObjectKey, definition: ConnectorDefinition, worker: ObjectKey, extra: Mapping[str, Any]) -> Settings:
    spec = definition.spec
    stored, derived = extra.get(KEPT, {}), extra.get(MADE, [])
    settings: Settings = {
        name: text for name, text in spec.config.items() if text and name not in (*INTERNAL, *_NAMES, *derived, *stored)
    }
    for name, value in stored.items():
        text = spec.config.get(name, "")
        settings[name] = value if config_text(name, value) == text else _parsed(value, text)
    settings = copy.deepcopy(_defaults()) | settings
    if isinstance(tasks := settings[TASKS], str):
        settings[TASKS] = int(tasks) if tasks.isascii() and tasks.isdecimal() else 1
    return settings | {WORKER_KEY: worker.json} | key.json


def filled_of(definition: ConnectorDefinition) -> dict[str, Any]:
    """Returns the defaults of the class that were known when the definition was written."""
    filled: dict[str, Any] = _extra(definition).get(FILLED, {})
    return filled


def _extra(definition: ConnectorDefinition) -> dict[str, Any]:
    """Returns this API's `extra` of a definition; empty if another API owns it. Callers must not change it."""
    if definition.spec.origin.api not in ("", API):
        return {}
    return _read_extra(definition.spec.extra.SerializeToString(deterministic=True))


@lru_cache(maxsize=4096)
def _read_extra(message: bytes) -> dict[str, Any]:
    """Parses an `extra`, cached since it is read often; returns an empty dict for an unknown form."""
    extra = value_of(Struct.FromString(message))
    is_ours = isinstance(extra.get(KEPT), dict) and isinstance(extra.get(FILLED), dict)
    return extra if is_ours and isinstance(extra.get(MADE), list) else {}


def answer_of(key: ObjectKey, definition: ConnectorDefinition, worker: ObjectKey) -> Json:
    """Returns all settings of a connector for an answer, with its class's defaults and the derived settings."""
    config, extra = definition.spec.config, _extra(definition)
    filled = extra.get(FILLED, {})
    own = {key: config.get(key) or filled.get(key) or WORKERS_OWN[key] for key in CONVERTERS}
    topics = [name for name in config.get(TOPICS, "").split(",") if name]
    answer = {**filled, **_settings(key, definition, worker, extra), **own}
    return answer | {CONNECTOR_KEY: key.json, TOPICS: topics}


def _made(connector_settings: ConnectorSettings, settings: Mapping[str, Any]) -> dict[str, str]:
    """Returns the keys of a configuration that the class needs and that were not sent."""
    name, info = settings[CLASS], connector_settings.info
    if is_ohara_class(name) or (info is not None and is_ohara(info)):
        return {key: BYTES_CONVERTER for key in CONVERTERS if key not in settings}
    if info is not None and connector_settings.topics and ONE_TOPIC not in settings and _needs(info, ONE_TOPIC):
        return {ONE_TOPIC: connector_settings.topics[0]}
    return {}


def _needs(info: Json, key: str) -> bool:
    return any(
        definition["key"] == key and definition["necessary"] == Necessary.REQUIRED.value
        for definition in info["settingDefinitions"]
    )


@cache
def _defaults() -> Settings:
    """Returns the defaults of all connectors: a definition created outside this API sets few of them."""
    rows = (
        (setting.key, default_of(setting))
        for setting in CONNECTOR
        if setting.necessary is Necessary.OPTIONAL and not setting.internal
    )
    return {key: default for key, default in rows if default is not None}


def _parsed(former: Any, text: str) -> Any:
    """Parses a configuration's text as a value of the former value's type; returns the text if it is none."""
    if isinstance(former, list) and not text.startswith("["):
        return [part for part in text.split(",") if part]
    try:
        tree = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return tree if isinstance(tree, type(former)) else text

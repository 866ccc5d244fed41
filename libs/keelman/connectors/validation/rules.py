"""Judges for `validate` what goes beyond single keys: a sink's and a source's keys together, in Connect's words; the
keys of a connector's own converters and of the clients whose properties it overrides."""

from __future__ import annotations

import re
from collections.abc import Mapping

from keelman.connect import contract
from keelman.connect.config.client_definitions import Client, client_keys
from keelman.connect.config.connector_keys import BOUNDARY, DEAD_LETTERS, OFFSETS, SUPPORT, WORKER_SUPPORT
from keelman.connect.config.definition import ConfigValue, Type, parse_type
from keelman.connect.config.info import Info, prefixed_infos, value_info
from keelman.connect.config.override_policies import refused
from keelman.connect.config.plugin_keys import version_problem
from keelman.connect.config.plugin_kinds import Plugins, PluginType
from keelman.connect.config.types import trim
from keelman.connect.java.bounded_match import SlowPattern
from keelman.connect.java.regex import JavaPattern, PatternError
from keelman.connect.java.text import hash_order, java_text
from keelman.connect.plugin import Connector, Direction
from keelman.connectors import registry
from keelman.kafka.properties.faults import client_faults
from keelman.model.keys import under

Config = Mapping[str, str | None]
GROUP = "consumer.override.group.id"
Values = dict[str, ConfigValue]
_STEP_KEY = re.compile(r"(transforms|predicates)\..+\.type|(key|value|header)\.converter")


def override_infos(direction: Direction, config: Config, worker: Mapping[str, str]) -> list[Info]:
    """The overridden properties of the clients that the connector uses, and which of them the worker's policy refuses.

    Raises ConfigValueError for a value that is not of its property's type.
    """
    return [info for client in _clients(direction, config, worker) for info in _overrides(client, config, worker)]


def _clients(direction: Direction, config: Config, worker: Mapping[str, str]) -> list[Client]:
    """In the order in which Connect names them."""
    if direction is Direction.SINK:
        dead = bool((config.get(DEAD_LETTERS) or "").strip())
        return ["producer", "consumer", "admin"] if dead else ["consumer"]
    if worker.get(WORKER_SUPPORT, "enabled").strip().lower() == "enabled" or (config.get(OFFSETS) or "").strip():
        return ["producer", "consumer", "admin"]  # the connector's offsets are its own clients' to read and to write
    admin = any(key.startswith("topic.creation.") for key in config)
    return ["producer", "admin"] if admin else ["producer"]


def _overrides(client: Client, config: Config, worker: Mapping[str, str]) -> list[Info]:
    prefix, keys = f"{client}.override.", client_keys(client)
    overrides = under(prefix, config)
    values = []
    for name in hash_order(overrides):
        value = parse_type(name, overrides[name], keys[name].type) if name in keys else overrides[name]
        problem = refused(worker, name)
        values.append(ConfigValue(name, value, errors=[problem] if problem else []))
    return prefixed_infos(keys, values, prefix)


def add_client_faults(configs: list[Info], config: Config, worker: Mapping[str, str]) -> None:
    """Adds errors of clients' properties, under any prefix, that Connect would not report, or only later: unusable
    properties, login modules and token URLs that are not allowed."""
    by_name = {info["value"]["name"]: info["value"] for info in configs}
    for key, message in client_faults(config, worker).items():
        if key not in by_name:
            by_name[key] = value_info(ConfigValue(key, None), None)
            configs.append({"definition": None, "value": by_name[key]})
        by_name[key]["errors"] = [*by_name[key]["errors"], message]


def converter_infos(plugins: Plugins, config: Config, values: dict[str, ConfigValue]) -> tuple[list[Info], list[str]]:
    """Returns the keys of converters that the connector itself names, with their groups. Adds a converter's errors to
    `values`, and then leaves its keys out."""
    infos: list[Info] = []
    groups: list[str] = []
    for role in ("header", "key", "value"):
        name, kind = f"{role}.converter", PluginType.HEADER_CONVERTER if role == "header" else PluginType.CONVERTER
        class_name = _usable(plugins, name, config, values)
        if class_name is None:
            continue
        definition = plugins.definition(class_name, kind, config.get(f"{name}.plugin.version"))
        own = under(f"{name}.", config)
        checked = definition.validate({"converter.type": role, **own}, plugins.find)
        ordered = [checked[key] for key in hash_order(checked)]
        groups += [key.group for key in map(definition.keys.get, hash_order(checked)) if key and key.group]
        infos += prefixed_infos(definition.keys, ordered, f"{name}.")
    return infos, groups


def _usable(plugins: Plugins, name: str, config: Config, values: dict[str, ConfigValue]) -> str | None:
    """The converter's class, None when the connector names none or something is wrong with it."""
    chosen, version = values[name], values[f"{name}.plugin.version"]
    class_text = config.get(name)
    if class_text is None or chosen.errors or version.errors:
        return None
    class_name = plugins.find(class_text)
    if (
        class_name is None or class_text != class_text.strip()
    ):  # Connect finds a class by its trimmed name, but does not load it
        chosen.errors.append(f"Failed to load class {class_text}: {class_text}")
        return None
    problem = version_problem(plugins, class_name, config.get(f"{name}.plugin.version"))
    if problem:
        chosen.errors.append(problem)
        version.errors.append(problem)
        return None
    return class_name


def check_sink(config: Config, worker: Mapping[str, str], values: Values) -> None:
    """Topics or a pattern of topics, no topic of dead letters among them, and no group that is the workers' own."""
    topics, pattern = trim(config.get("topics") or ""), trim(config.get("topics.regex") or "")
    if topics and pattern:
        _add(
            values,
            "topics and topics.regex are mutually exclusive options, but both are set.",
            "topics",
            "topics.regex",
        )
    if not topics and not pattern:
        _add(values, "Must configure one of topics or topics.regex", "topics", "topics.regex")
    dead = trim(config.get(DEAD_LETTERS) or "")
    named = parse_type("topics", topics, Type.LIST)
    if dead and dead in named:
        whole = f"The DLQ topic '{dead}' may not be included in the list of topics ('topics={java_text(named)}')"
        _add(values, f"{whole} consumed by the connector", "topics")
    elif dead and not topics and pattern:
        _check_pattern(pattern, dead, values)
    workers = worker.get("group.id", "")
    if GROUP in config:
        value = values.setdefault(GROUP, ConfigValue(GROUP, config[GROUP]))
        if config[GROUP] == workers:
            value.errors.append(f"Consumer group {workers} conflicts with Connect worker group {workers}")
    elif workers and workers == f"connect-{values['name'].value}":
        text = f"Consumer group for sink connector named {values['name'].value} conflicts with Connect worker group"
        _add(values, f"{text} {workers}", "name")


def check_source(connector: type[Connector], config: Config, worker: Mapping[str, str], values: Values) -> None:
    """Checks exactly-once delivery where it is required, and transactions that the connector itself must end."""
    present = {key: value for key, value in config.items() if value is not None}
    support = worker.get(WORKER_SUPPORT, "enabled").strip().lower()
    if _chosen(values, SUPPORT) == "required":
        if support != "enabled":
            _add(values, "This worker does not have exactly-once source support enabled.", SUPPORT)
        if not contract.SUPPORTS_EXACTLY_ONCE.of(connector.supports_exactly_once, present):
            text = "The connector does not support exactly-once semantics with the provided configuration."
            _add(values, text, SUPPORT)
    own_boundary = _chosen(values, BOUNDARY) == "connector"
    if own_boundary and not contract.TRANSACTION_BOUNDARY.of(connector.transaction_boundary_connector, present):
        text = (
            "The connector does not support connector-defined transaction boundaries with the given configuration. "
            "Please reconfigure it to use a different transaction boundary definition."
        )
        _add(values, text, BOUNDARY)
    if connector.reads_data_sets and support == "disabled":
        name = config.get("connector.class") or ""
        text = f"{name} delivers exactly once only, and this worker has {WORKER_SUPPORT}=disabled."
        _add(values, text, "connector.class")


def check_steps(connector: type[Connector], config: Config, values: Values) -> None:
    """Converters, transforms and predicates of Java plugins where they cannot be had."""
    if connector.converts:
        return
    by_spark = connector.reads_data_sets or connector.data_sink.__func__ is not Connector.data_sink.__func__  # type: ignore[attr-defined]
    for key, value in config.items():
        if value is None or key not in values or not _STEP_KEY.fullmatch(key):
            continue
        full = registry.full_name(value)
        if full is None or not registry.is_step(full) or not (by_spark or key == "header.converter"):
            continue
        whose = (
            "connectors whose records Spark reads or writes" if by_spark else "headers, unless the connector is Java's"
        )
        text = f"Class {full} of a Java plugin is not for {whose}: expected a class that comes with keelman"
        _add(values, f"Invalid value {value} for configuration {key}: {text}", key)


def _chosen(values: Values, key: str) -> str:
    """A value in lower case; empty when it is wrong already."""
    value = values[key]
    return "" if value.errors or value.value is None else str(value.value).lower()


def _check_pattern(pattern: str, dead: str, values: Values) -> None:
    """Checks that a pattern of topics does not match the topic of dead letters."""
    try:
        if JavaPattern(pattern).matches(dead):
            whole = f"The DLQ topic '{dead}' may not be matched by the regex for the topics ('topics.regex={pattern}')"
            _add(values, f"{whole} consumed by the connector", "topics.regex")
    except PatternError:  # reported by the key's own rule
        return
    except SlowPattern as error:
        _add(values, str(error), "topics.regex")


def _add(values: Values, text: str, *keys: str) -> None:
    for key in keys:
        values[key].errors.append(text)

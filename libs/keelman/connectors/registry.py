"""Finds connectors by name and validates their configurations as Connect does. Opens no client and reads no data."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from keelman.connect.config_def import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    Importance,
    Type,
    at_least,
    clean_name,
    non_empty,
    one_of,
    one_of_any_case,
    unique,
)
from keelman.connect.converters import converter_for
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.plugin import Connector, Direction
from keelman.engine.bulk import DEFAULT_LEAST, LEAST_KEY, MOST_SLOTS, SLOTS_KEY
from keelman.model.errors import KeelmanError, NotFound

# Module and class of each; a module is loaded when first asked for.
_SHIPPED = (
    ("keelman.connectors.file_sink", "FileStreamSink"),
    ("keelman.connectors.file_source", "FileStreamSource"),
    ("keelman.connectors.kafka_sink", "KafkaSink"),
    ("keelman.connectors.mirror_source", "MirrorSource"),
    ("keelman.connectors.mock", "MockSink"),
    ("keelman.connectors.mock", "MockSource"),
    ("keelman.connectors.spark_sink", "SparkSink"),
    ("keelman.connectors.spark_source", "SparkSource"),
    ("keelman.connectors.verifiable", "VerifiableSink"),
    ("keelman.connectors.verifiable", "VerifiableSource"),
)
EXACTLY_ONCE = "exactly.once.source.support"
_HEADER_CONVERTERS = tuple(
    f"{package}.{name}"
    for package, names in {
        "org.apache.kafka.connect.storage": ("SimpleHeaderConverter", "StringConverter"),
        "org.apache.kafka.connect.converters": ("ByteArrayConverter",),
        "org.apache.kafka.connect.json": ("JsonConverter",),
    }.items()
    for name in names
)


@dataclass(frozen=True, slots=True)
class ConfigError:
    """What is wrong with one key: the value as given, None when missing, and Connect's text."""

    key: str
    value: str | None
    message: str


_added: dict[str, Callable[[], type[Connector]]] = {}


def add(name: str, load: Callable[[], type[Connector]]) -> None:
    """Has `find_connector` find one more connector: `load` imports it and may raise ConnectError. For plugins."""
    _added[name] = load


def all_connectors() -> tuple[type[Connector], ...]:
    """Every connector there is, by full Java name; of plugins those that can be loaded."""
    found = [_load(*where) for where in _SHIPPED]
    for load in _added.values():
        with suppress(ConnectError, KeelmanError):
            found.append(load())
    return tuple(sorted(dict.fromkeys(found), key=lambda one: one.names[0]))


def find_connector(class_name: str) -> type[Connector]:
    """The connector by full, simple or short name, ours before a plugin's. Raises NotFound with Connect's message, and
    what a plugin's loading raises.

    Modules are loaded one after the other until the name is found: those that need a client come last.
    """
    wanted = class_name.strip()
    for where in _SHIPPED:
        connector = _load(*where)
        if wanted in connector.names:
            return connector
    if wanted in _added:
        return _added[wanted]()
    known = all_connectors()
    described = ", ".join(
        f"PluginDesc{{klass=class {c.names[0]}, name='{c.names[0]}', version='{c.version}', "
        f"type={c.direction.value}, typeName='{c.direction.value}'}}"
        for c in known
    )
    raise NotFound(
        f"Failed to find any class that implements Connector and which name matches {class_name}, "
        f"available connectors are: {described}",
        reason="CONNECTOR_CLASS_UNKNOWN",
        metadata={"class": class_name},
    )


def _load(module: str, name: str) -> type[Connector]:
    return cast("type[Connector]", getattr(importlib.import_module(module), name))


def common_config_def() -> ConfigDef:
    """The keys of every connector."""
    high, medium, low = Importance.HIGH, Importance.MEDIUM, Importance.LOW
    tolerance = one_of("none", "all")
    text, number, flag = Type.STRING, Type.LONG, Type.BOOLEAN
    return ConfigDef(
        ConfigKey("name", text, REQUIRED, high, "Name of the connector, unique in its cluster.", clean_name),
        ConfigKey("connector.class", text, REQUIRED, high, "Full, simple or short name of the connector's class."),
        ConfigKey("tasks.max", Type.INT, 1, high, "Most tasks that the connector may have.", at_least(1)),
        ConfigKey("tasks.max.enforce", flag, True, low, "Whether more tasks than tasks.max are an error."),
        ConfigKey("key.converter", Type.CLASS, None, low, "Converter of keys; the worker's when absent."),
        ConfigKey("value.converter", Type.CLASS, None, low, "Converter of values; the worker's when absent."),
        ConfigKey("header.converter", Type.CLASS, None, low, "Converter of headers; the worker's when absent."),
        ConfigKey("transforms", Type.LIST, [], low, "Aliases of the transforms.", unique("alias")),
        ConfigKey("predicates", Type.LIST, [], low, "Aliases of the predicates.", unique("alias")),
        ConfigKey("config.action.reload", text, "restart", low, "When a secret changes.", one_of("none", "restart")),
        ConfigKey("errors.retry.timeout", number, 0, medium, "Milliseconds to try again; -1 without end."),
        ConfigKey("errors.retry.delay.max.ms", number, 60000, medium, "Longest pause between two tries."),
        ConfigKey("errors.tolerance", text, "none", medium, "Whether a bad record fails the task.", tolerance),
        ConfigKey("errors.log.enable", flag, False, medium, "Log every error."),
        ConfigKey("errors.log.include.messages", flag, False, medium, "Log the record with its error."),
        ConfigKey("keelman.limit.records.per.second", Type.DOUBLE, 0, low, "Most records a second; 0 for all.", _limit),
        ConfigKey("keelman.limit.bytes.per.second", Type.DOUBLE, 0, low, "Most bytes a second; 0 for all.", _limit),
        ConfigKey(
            "keelman.commit.interval.ms", number, 500, low, "Longest time between two commits.", _commit_interval
        ),
        ConfigKey(
            "keelman.park.after.ms",
            number,
            10_000,
            low,
            "Idle time after which a task is parked; -1 never.",
            at_least(-1),
        ),
    )


def sink_config_def() -> ConfigDef:
    """The keys of every sink."""
    return ConfigDef(
        ConfigKey("topics", Type.LIST, [], Importance.HIGH, "Topics to read, separated by commas."),
        ConfigKey("topics.regex", Type.STRING, "", Importance.HIGH, "Java pattern of the topics to read.", _pattern),
        ConfigKey("errors.deadletterqueue.topic.name", Type.STRING, "", Importance.MEDIUM, "Topic for bad records."),
    )


def source_config_def() -> ConfigDef:
    """The keys of every source."""
    low, medium, text = Importance.LOW, Importance.MEDIUM, Type.STRING
    # In the order in which a Java set of them is printed.
    support, boundary = one_of_any_case("REQUIRED", "REQUESTED"), one_of_any_case("INTERVAL", "POLL", "CONNECTOR")
    return ConfigDef(
        ConfigKey("exactly.once.support", text, "requested", medium, "required fails without it.", support),
        ConfigKey("transaction.boundary", text, "poll", medium, "When a transaction ends.", boundary),
        ConfigKey(
            "transaction.boundary.interval.ms",
            Type.LONG,
            None,
            low,
            "Milliseconds between commits with the boundary interval; the worker's offset.flush.interval.ms if unset.",
            _interval,
        ),
        ConfigKey("topic.creation.groups", Type.LIST, [], low, "Groups of new topics.", unique("alias")),
        ConfigKey("offsets.storage.topic", text, None, low, "The connector's own offset topic.", non_empty),
        ConfigKey(SLOTS_KEY, Type.INT, 1, low, "Most slots that a task's backlog is split over; 1: none.", _slots),
        ConfigKey(LEAST_KEY, Type.LONG, DEFAULT_LEAST, low, "Least records of a backlog worth splitting.", at_least(1)),
    )


def validate_connector(config: Mapping[str, str], worker_config: Mapping[str, str]) -> list[ConfigError]:
    """All that is wrong with a configuration; empty when a task could start with it.

    An unknown class is an error of `connector.class` with the message of `find_connector`, and ends the validation, for
    nothing more can be known. Unknown keys are accepted.
    """
    definition = common_config_def()
    class_name = config.get("connector.class", "").strip()
    try:
        connector = find_connector(class_name) if class_name else None
    except NotFound as error:
        return [ConfigError("connector.class", class_name, error.message)]
    if connector is not None:
        sink = connector.direction is Direction.SINK
        definition = definition + (sink_config_def() if sink else source_config_def()) + connector.config_def()
    found = definition.errors(config)
    found += _converter_errors(config, worker_config)
    if connector is not None and connector.direction is Direction.SINK:
        found += _topic_errors(config)
    if connector is not None and connector.direction is Direction.SOURCE:
        found += _exactly_once_errors(connector, config, worker_config)
    if config.get("transforms", "").strip():
        whole = f"Invalid value {config['transforms']} for configuration transforms: no transforms are known yet"
        found.append(ConfigValueError("transforms", config["transforms"], whole=whole))
    return [ConfigError(e.key, config.get(e.key), str(e)) for e in found]


def _converter_errors(config: Mapping[str, str], worker: Mapping[str, str]) -> list[ConfigValueError]:
    found = []
    for role in ("key", "value"):
        try:
            converter_for("key" if role == "key" else "value", config, worker)
        except ConfigValueError as error:
            found.append(error)
    header = config.get("header.converter", "").strip()
    if header and header not in _HEADER_CONVERTERS and header not in {n.rpartition(".")[2] for n in _HEADER_CONVERTERS}:
        found.append(ConfigValueError("header.converter", header, f"Class {header} could not be found."))
    return found


def _topic_errors(config: Mapping[str, str]) -> list[ConfigValueError]:
    topics, pattern = config.get("topics", "").strip(), config.get("topics.regex", "").strip()
    if topics and pattern:
        whole = "topics and topics.regex are mutually exclusive options, but both are set."
        return [ConfigValueError(key, config[key], whole=whole) for key in ("topics", "topics.regex")]
    if not topics and not pattern:
        whole = "Must configure one of topics or topics.regex"
        return [ConfigValueError(key, None, whole=whole) for key in ("topics", "topics.regex")]
    dead = config.get("errors.deadletterqueue.topic.name", "").strip()
    names = {name.strip() for name in topics.split(",")}
    if dead and dead in names:
        whole = (
            f"The DLQ topic '{dead}' may not be included in the list of topics ('{topics}') consumed by the connector"
        )
        return [ConfigValueError("topics", topics, whole=whole)]
    return []


def _exactly_once_errors(
    connector: type[Connector], config: Mapping[str, str], worker: Mapping[str, str]
) -> list[ConfigValueError]:
    found = []
    support, boundary = (config.get(k, "").strip() for k in ("exactly.once.support", "transaction.boundary"))
    if support.lower() == "required":
        wholes = []
        if worker.get(EXACTLY_ONCE, "enabled").strip().lower() != "enabled":
            wholes.append("This worker does not have exactly-once source support enabled.")
        if not connector.supports_exactly_once(config):
            wholes.append("The connector does not support exactly-once semantics with the provided configuration.")
        found += [ConfigValueError("exactly.once.support", support, whole=whole) for whole in wholes]
    if boundary.lower() == "connector" and not connector.transaction_boundary_connector(config):
        whole = (
            "The connector does not support connector-defined transaction boundaries with the given configuration. "
            "Please reconfigure it to use a different transaction boundary definition."
        )
        found.append(ConfigValueError("transaction.boundary", boundary, whole=whole))
    if connector.reads_data_sets and worker.get(EXACTLY_ONCE, "enabled").strip().lower() == "disabled":
        name = config.get("connector.class", "")
        whole = f"{name} delivers exactly once only, and this worker has {EXACTLY_ONCE}=disabled."
        found.append(ConfigValueError("connector.class", name, whole=whole))
    return found


def _interval(name: str, value: int | None) -> None:
    if value is not None:
        at_least(0)(name, value)


def _limit(name: str, value: float) -> None:
    if not math.isfinite(value):
        raise ConfigValueError(name, value, "Value must be a finite number, at least 0")
    at_least(0)(name, value)


def _commit_interval(name: str, value: int) -> None:
    if not 1 <= value <= 600_000:
        raise ConfigValueError(name, value, "Value must be a number of milliseconds between 1 and 600000")


def _slots(name: str, value: int) -> None:
    if not 1 <= value <= MOST_SLOTS:
        raise ConfigValueError(name, value, f"Value must be a whole number, at least 1 and at most {MOST_SLOTS}")


def _pattern(name: str, value: str | None) -> None:
    try:
        re.compile(value or "")
    except re.error:
        raise ConfigValueError(name, value, "Invalid regex") from None

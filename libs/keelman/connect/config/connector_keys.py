"""Defines the keys that every connector, sink and source has beside its own; ours are in copying_keys, life_keys.

Names, types, defaults, groups and order are those of Apache Kafka Connect 4.3 (tests/recorded/worker/validate.json).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from keelman.connect.config.definition import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    Importance,
    Type,
    Width,
    at_least,
    clean_name,
    non_empty,
    one_of,
    one_of_any_case,
    unique,
)
from keelman.connect.config.plugin_keys import (
    CLASS,
    ClassRecommender,
    ConnectorVersions,
    VersionRecommender,
    converter_rule,
    version_rule,
)
from keelman.connect.config.plugin_kinds import Plugins, PluginType
from keelman.connect.config.rules import names, refuse
from keelman.connect.java.regex import JavaPattern, PatternError

ROLES = ("key", "value", "header")
VERSION = "connector.plugin.version"
DEAD_LETTERS, OFFSETS = "errors.deadletterqueue.topic.name", "offsets.storage.topic"
SUPPORT, BOUNDARY = "exactly.once.support", "transaction.boundary"
WORKER_SUPPORT = "exactly.once.source.support"
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_TEXT, _INT, _LONG, _FLAG, _LIST, _CLASS = Type.STRING, Type.INT, Type.LONG, Type.BOOLEAN, Type.LIST, Type.CLASS
_COMMON: dict[str, Any] = {"group": "Common", "width": Width.SHORT}
_WIDE: dict[str, Any] = {"group": "Common", "width": Width.MEDIUM}
_WIDEST: dict[str, Any] = {"group": "Common", "width": Width.LONG}
_ERRORS: dict[str, Any] = {"group": "Error Handling", "width": Width.MEDIUM}
_ERROR_FLAGS: dict[str, Any] = {"group": "Error Handling", "width": Width.SHORT}
_ONCE: dict[str, Any] = {"group": "Exactly Once Support", "width": Width.SHORT}


class ConverterDefault(NamedTuple):
    """The converter of a connector without one of its own: the worker's class, and its version."""

    class_name: str | None = None
    version: str | None = None


def common_keys(
    plugins: Plugins | None = None,
    version: str | None = None,
    converters: tuple[ConverterDefault, ...] = (ConverterDefault(),) * 3,
) -> ConfigDef:
    """Returns the keys of every connector; `converters` has a default for each of ROLES. Without `plugins` nothing is
    recommended and every class counts as a converter."""
    return ConfigDef(*numbered(1, _own_keys(plugins, version, converters)), *numbered(1, _error_keys()))


def _own_keys(
    plugins: Plugins | None, version: str | None, converters: tuple[ConverterDefault, ...]
) -> tuple[ConfigKey, ...]:
    text = {"validator": clean_name, **_WIDE}
    wide = {"validator": version_rule, "recommender": ConnectorVersions(plugins), **_WIDE}
    action = {"validator": one_of("none", "restart"), **_WIDE}
    unlike = {"group": "Transforms", "validator": unique("transformation aliases"), "width": Width.LONG}
    tests = {"group": "Predicates", "validator": unique("predicate aliases"), "width": Width.LONG}
    return (
        _key(
            "name",
            _TEXT,
            REQUIRED,
            _HIGH,
            "Name of the connector, unique in its cluster.",
            title="Connector name",
            **text,
        ),
        _key(
            CLASS,
            _TEXT,
            REQUIRED,
            _HIGH,
            "Full, simple or short name of its class.",
            title="Connector class",
            **_WIDEST,
        ),
        _key(
            VERSION,
            _TEXT,
            version,
            _MEDIUM,
            "Version of the class, or a range of them.",
            title="Connector version",
            **wide,
        ),
        _key(
            "tasks.max", _INT, 1, _HIGH, "Most tasks it may have.", title="Tasks max", validator=at_least(1), **_COMMON
        ),
        _key(
            "tasks.max.enforce",
            _FLAG,
            True,
            _LOW,
            "Whether more tasks are an error.",
            title="Enforce tasks max",
            **_COMMON,
        ),
        *(
            key
            for role, converter in zip(ROLES, converters, strict=True)
            for key in _converter_keys(plugins, role, converter)
        ),
        _key("transforms", _LIST, [], _LOW, "Aliases of what changes each record.", title="Transforms", **unlike),
        _key("predicates", _LIST, [], _LOW, "Aliases of what transforms may be bound to.", title="Predicates", **tests),
        _key(
            "config.action.reload",
            _TEXT,
            "restart",
            _LOW,
            "What follows a new secret.",
            title="Reload Action",
            **action,
        ),
    )


def _error_keys() -> tuple[ConfigKey, ...]:
    again = "Longest time to try again, in ms; -1 without end."
    tolerance = {"validator": one_of("none", "all"), **_ERROR_FLAGS}
    return (
        _key("errors.retry.timeout", _LONG, 0, _MEDIUM, again, title="Retry Timeout for Errors", **_ERRORS),
        _key(
            "errors.retry.delay.max.ms",
            _LONG,
            60000,
            _MEDIUM,
            "Longest pause between two tries.",
            title="Maximum Delay Between Retries for Errors",
            **_ERRORS,
        ),
        _key(
            "errors.tolerance",
            _TEXT,
            "none",
            _MEDIUM,
            "all: bad records are left out.",
            title="Error Tolerance",
            **tolerance,
        ),
        _key("errors.log.enable", _FLAG, False, _MEDIUM, "Log each error.", title="Log Errors", **_ERROR_FLAGS),
        _key(
            "errors.log.include.messages",
            _FLAG,
            False,
            _MEDIUM,
            "Log the record with its error.",
            title="Log Error Details",
            **_ERROR_FLAGS,
        ),
    )


def _converter_keys(plugins: Plugins | None, role: str, default: ConverterDefault) -> tuple[ConfigKey, ConfigKey]:
    kind = PluginType.HEADER_CONVERTER if role == "header" else PluginType.CONVERTER
    name, title = f"{role}.converter", f"{role.capitalize()} converter"
    doc = f"Converter of {role}s; the worker's when absent."
    which = f"Version of the {role} converter, or a range of them."
    more = {"validator": converter_rule(plugins, kind), "recommender": ClassRecommender(plugins, kind), **_COMMON}
    other = {"validator": version_rule, "recommender": VersionRecommender(plugins, kind, name), **_COMMON}
    return (
        _key(name, _CLASS, default.class_name, _LOW, doc, title=f"{title} class", **more),
        _key(f"{name}.plugin.version", _TEXT, default.version, _LOW, which, title=f"{title} version", **other),
    )


def sink_keys() -> ConfigDef:
    """Returns the keys of every sink."""
    topics = {"validator": names, "order": 4, **_WIDEST}
    pattern = {"validator": _pattern, "order": 4, **_WIDEST}
    title = "Dead Letter Queue Topic"
    dead = (
        _key(
            DEAD_LETTERS,
            _TEXT,
            "",
            _MEDIUM,
            "Topic for records that cannot be copied.",
            title=f"{title} Name",
            **_ERRORS,
        ),
        _key(
            "errors.deadletterqueue.topic.replication.factor",
            Type.SHORT,
            3,
            _MEDIUM,
            "Replicas of that topic when it is made.",
            title=f"{title} Replication Factor",
            **_ERRORS,
        ),
        _key(
            "errors.deadletterqueue.context.headers.enable",
            _FLAG,
            False,
            _MEDIUM,
            "Whether headers name the place and the cause of the failure.",
            title="Enable Error Context Headers",
            **_ERRORS,
        ),
    )
    return ConfigDef(
        _key("topics", _LIST, [], _HIGH, "Topics to read, separated by commas.", title="Topics", **topics),
        _key("topics.regex", _TEXT, "", _HIGH, "Java pattern of the topics to read.", title="Topics regex", **pattern),
        *numbered(6, dead),
    )


def source_keys() -> ConfigDef:
    """Returns the keys of every source."""
    groups = {"group": "Topic Creation", "validator": unique("topic creation groups"), "width": Width.LONG}
    # In Java's order when it prints a set of them.
    support = {"validator": one_of_any_case("REQUIRED", "REQUESTED"), **_ONCE}
    boundary = {"validator": one_of_any_case("INTERVAL", "POLL", "CONNECTOR"), **_ONCE}
    doc = "Time between commits with the boundary interval; the worker's offset.flush.interval.ms when absent."
    interval = {"validator": _at_least_0_or_none, **_ONCE}
    offsets = {"group": "offsets.topic", "validator": non_empty, "width": Width.LONG, "order": 1}
    rows = (
        _key(
            "topic.creation.groups", _LIST, [], _LOW, "Groups of new topics.", title="Topic Creation Groups", **groups
        ),
        _key(
            SUPPORT, _TEXT, "requested", _MEDIUM, "required: fail without it.", title="Exactly once support", **support
        ),
        _key(BOUNDARY, _TEXT, "poll", _MEDIUM, "When a transaction ends.", title="Transaction Boundary", **boundary),
        _key(f"{BOUNDARY}.interval.ms", _LONG, None, _LOW, doc, title="Transaction boundary interval", **interval),
    )
    own = _key(OFFSETS, _TEXT, None, _LOW, "The connector's own offset topic.", title="Offsets topic", **offsets)
    return ConfigDef(*numbered(1, rows), own)


def _key(
    name: str, kind: Type, default: Any, importance: Importance, doc: str, *, title: str = "", **rest: Any
) -> ConfigKey:
    return ConfigKey(name, kind, default, importance, doc, display_name=title, **rest)


def numbered(first: int, keys: tuple[ConfigKey, ...]) -> list[ConfigKey]:
    """Returns the keys with their places in their group."""
    return [replace(key, order=first + place) for place, key in enumerate(keys)]


def _at_least_0_or_none(name: str, value: float | None) -> None:
    if value is not None:
        at_least(0)(name, value)


def _pattern(name: str, value: str | None) -> None:
    try:
        JavaPattern(value or "")
    except PatternError as error:
        raise refuse(name, value, f"Invalid regex: {error}") from None

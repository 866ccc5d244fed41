"""What Connect asks of a sink's and of a source's keys together, in its own words."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect import answers
from keelman.connect.config.connector_keys import BOUNDARY, DEAD_LETTERS, SUPPORT, WORKER_SUPPORT
from keelman.connect.config.definition import ConfigValue, Type, parse_type
from keelman.connect.config.types import trim
from keelman.connect.java.regex import JavaPattern, PatternError
from keelman.connect.java.text import java_text
from keelman.connect.plugin import Connector

GROUP = "consumer.override.group.id"

Config = Mapping[str, str | None]
Values = dict[str, ConfigValue]


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
    elif dead and not topics and pattern and _matches(pattern, dead):
        whole = f"The DLQ topic '{dead}' may not be matched by the regex for the topics ('topics.regex={pattern}')"
        _add(values, f"{whole} consumed by the connector", "topics.regex")
    workers = worker.get("group.id", "")
    if GROUP in config:
        value = values.setdefault(GROUP, ConfigValue(GROUP, config[GROUP]))
        if config[GROUP] == workers:
            value.errors.append(f"Consumer group {workers} conflicts with Connect worker group {workers}")
    elif workers and workers == f"connect-{values['name'].value}":
        text = f"Consumer group for sink connector named {values['name'].value} conflicts with Connect worker group"
        _add(values, f"{text} {workers}", "name")


def check_source(connector: type[Connector], config: Config, worker: Mapping[str, str], values: Values) -> None:
    """Exactly-once delivery where it is required, and transactions that the connector itself is to end."""
    given = {key: value for key, value in config.items() if value is not None}
    support = worker.get(WORKER_SUPPORT, "enabled").strip().lower()
    if _chosen(values, SUPPORT) == "required":
        if support != "enabled":
            _add(values, "This worker does not have exactly-once source support enabled.", SUPPORT)
        if not answers.SUPPORTS_EXACTLY_ONCE.of(connector.supports_exactly_once, given):
            text = "The connector does not support exactly-once semantics with the provided configuration."
            _add(values, text, SUPPORT)
    own_boundary = _chosen(values, BOUNDARY) == "connector"
    if own_boundary and not answers.TRANSACTION_BOUNDARY.of(connector.transaction_boundary_connector, given):
        text = (
            "The connector does not support connector-defined transaction boundaries with the given configuration. "
            "Please reconfigure it to use a different transaction boundary definition."
        )
        _add(values, text, BOUNDARY)
    if connector.reads_data_sets and support == "disabled":
        name = config.get("connector.class") or ""
        text = f"{name} delivers exactly once only, and this worker has {WORKER_SUPPORT}=disabled."
        _add(values, text, "connector.class")


def _chosen(values: Values, key: str) -> str:
    """A value in lower case; empty when it is wrong already."""
    found = values[key]
    return "" if found.errors or found.value is None else str(found.value).lower()


def _matches(pattern: str, topic: str) -> bool:
    try:
        return JavaPattern(pattern).matches(topic)
    except PatternError:  # told of by the key's own rule
        return False


def _add(values: Values, text: str, *keys: str) -> None:
    for key in keys:
        values[key].errors.append(text)

"""Subject strategies: the name under which a registry keeps the schemas of a topic's keys or values.

The strategies are Confluent's. A configuration names them by their classes, with or without the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keelman.connect.config.rules import Rule, refuse
from keelman.connect.errors import DataError

PACKAGE = "io.confluent.kafka.serializers.subject."
TOPIC_NAME = PACKAGE + "TopicNameStrategy"
RECORD_NAME = PACKAGE + "RecordNameStrategy"
TOPIC_RECORD_NAME = PACKAGE + "TopicRecordNameStrategy"

Strategy = Callable[[str, bool, str | None], str]
"""Returns the subject for a topic, whether it is about keys, and the schema's full name (None without a name). Raises
DataError if the strategy needs a name."""


def _of_topic(topic: str, is_key: bool, _name: str | None) -> str:
    return f"{topic}-{'key' if is_key else 'value'}"


def _of_record(topic: str, is_key: bool, name: str | None) -> str:
    if name is None:
        role = "key" if is_key else "value"
        raise DataError(
            f"In configuration {role}.subject.name.strategy = RecordNameStrategy, the message {role} must only be "
            f"a record schema (topic {topic})"
        )
    return name


def _of_both(topic: str, is_key: bool, name: str | None) -> str:
    return f"{topic}-{_of_record(topic, is_key, name)}"


_STRATEGIES: dict[str, Strategy] = {TOPIC_NAME: _of_topic, RECORD_NAME: _of_record, TOPIC_RECORD_NAME: _of_both}


def strategy(class_name: str) -> Strategy:
    """Returns the strategy of a class, which `check` has accepted."""
    return _STRATEGIES[_full(class_name)]


def by_name(class_name: str) -> bool:
    """Whether the subject depends on the name of the schema."""
    return _full(class_name) != TOPIC_NAME


def _full(class_name: str) -> str:
    return class_name if "." in class_name else PACKAGE + class_name


def _check(key: str, value: Any) -> None:
    if value is None or _full(str(value)) not in _STRATEGIES:
        raise refuse(key, value, f"Class must be one of: {', '.join(_STRATEGIES)}")


check = Rule(_check, f"[{', '.join(_STRATEGIES)}]")
"""The rule for a configuration's value."""

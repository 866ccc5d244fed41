"""Decides how a source's new topics are created, by `topic.creation.*` of its configuration, as in Connect (KIP-158,
https://cwiki.apache.org/confluence/display/KAFKA/KIP-158).

Connect's results are recorded: tests/recorded/worker/topic_creation.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Type, parse_type
from keelman.connect.config.rules import refuse
from keelman.connect.java.regex import JavaPattern, PatternError
from keelman.connect.topic_plan import TopicPlan
from keelman.model.keys import under

PREFIX = "topic.creation."
GROUPS = PREFIX + "groups"
ENABLE = PREFIX + "enable"
"""A key of the worker."""
DEFAULT = "default"
_DEFAULTS = f"{PREFIX}{DEFAULT}."
OWN_KEYS = ("include", "exclude", "replication.factor", "partitions")


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """One group: its topics, and how they are created. The default group, the last, is for all topics."""

    name: str
    include: JavaPattern | None
    exclude: JavaPattern | None
    plan: TopicPlan

    def matches(self, topic: str) -> bool:
        """Whether the topic's whole name matches the included pattern and not the excluded one."""
        if self.name == DEFAULT:
            return True
        if self.exclude is not None and self.exclude.matches(topic):
            return False
        return self.include is not None and self.include.matches(topic)


class TopicCreation:
    """The groups of one connector, in the order in which they are tried; none when it sets no `topic.creation.*`."""

    def __init__(self, config: Mapping[str, str]) -> None:
        """Raises ConfigValueError with Connect's text."""
        self.groups: tuple[TopicGroup, ...] = ()
        self.without_effect: tuple[str, ...] = ()
        """Keys that seem to choose topics but do not: patterns of the default group, groups not listed."""
        if not any(key.startswith(PREFIX) for key in config):
            return
        default = ConfigDef(*_sizes().embedded(f"{PREFIX}{DEFAULT}.", "", 0)).parse(config)
        names = [name for name in dict.fromkeys(_LISTED.parse(config)[GROUPS]) if name != DEFAULT]
        self.groups = tuple(_group(config, name, default) for name in (*names, DEFAULT))
        self.without_effect = tuple(_idle(config, names))

    def plan(self, topic: str) -> TopicPlan | None:
        """Returns the plan for a topic: that of the first group that matches. None without `topic.creation.*`."""
        return next((group.plan for group in self.groups if group.matches(topic)), None)


def creates_topics(worker: Mapping[str, str]) -> bool:
    """Returns the worker's `topic.creation.enable`; true by default. Raises ConfigValueError."""
    return bool(parse_type(ENABLE, worker.get(ENABLE, "").strip() or "true", Type.BOOLEAN))


def _group(config: Mapping[str, str], name: str, default: Mapping[str, Any]) -> TopicGroup:
    prefix = f"{PREFIX}{name}."
    keys = _sizes(default[_DEFAULTS + "replication.factor"], default[_DEFAULTS + "partitions"])
    patterns = () if name == DEFAULT else (_pattern("include"), _pattern("exclude"))
    parsed = ConfigDef(*(ConfigDef(*patterns) + keys).embedded(prefix, "", 0)).parse(config)
    own = {key: value for key, value in under(prefix, config).items() if key not in OWN_KEYS}
    plan = TopicPlan(parsed[prefix + "partitions"], parsed[prefix + "replication.factor"], own)
    include, exclude = (_joined(parsed.get(prefix + key)) for key in ("include", "exclude"))
    return TopicGroup(name, include, exclude, plan)


def _sizes(replicas: Any = REQUIRED, partitions: Any = REQUIRED) -> ConfigDef:
    return ConfigDef(
        ConfigKey("replication.factor", Type.SHORT, replicas, validator=_replicas, order=1),
        ConfigKey("partitions", Type.INT, partitions, validator=_partitions, order=2),
    )


def _pattern(name: str) -> ConfigKey:
    return ConfigKey(name, Type.LIST, [], validator=_patterns)


def _joined(patterns: Sequence[str] | None) -> JavaPattern | None:
    return JavaPattern("|".join(patterns)) if patterns else None


def _patterns(name: str, value: Sequence[str]) -> None:
    for pattern in value:
        try:
            JavaPattern(pattern)
        except PatternError as error:
            raise refuse(name, value, f"Syntax error in regular expression: {error}") from None


def _replicas(name: str, value: int) -> None:
    if value < 1 and value != -1:
        whole = "must be positive and not larger than the number of brokers in the Kafka cluster"
        raise refuse(name, value, f"Replication factor {whole}, or -1 to use the broker's default")


def _partitions(name: str, value: int) -> None:
    if value < 1 and value != -1:
        raise refuse(name, value, "Number of partitions must be positive, or -1 to use the broker's default")


def _idle(config: Mapping[str, str], names: Sequence[str]) -> Iterator[str]:
    prefixes = tuple(f"{PREFIX}{name}." for name in (*names, DEFAULT))
    patterns = tuple(_DEFAULTS + key for key in ("include", "exclude"))
    for key in sorted(config):
        if key in patterns or (key.startswith(PREFIX) and key not in (GROUPS, ENABLE) and not key.startswith(prefixes)):
            yield key


_LISTED = ConfigDef(ConfigKey(GROUPS, Type.LIST, []))

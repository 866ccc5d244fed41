"""MirrorMaker 2's keys with its defaults, and the client properties that they hold for the two clusters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance, Type, one_of
from keelman.connect.errors import ConfigValueError
from keelman.connectors.mirror.policy import DEFAULT_POLICY, IDENTITY_POLICY, matcher
from keelman.engine.clients import client_settings
from keelman.model.keys import under

Side = Literal["source", "target"]

MIRROR = "org.apache.kafka.connect.mirror"
TOPICS_EXCLUDE = ["mm2.*\\.internal", ".*\\.replica", "__.*"]
PROPERTIES_EXCLUDE = [
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms",
    "message.timestamp.type",
    "unclean.leader.election.enable",
    "min.insync.replicas",
]
_HIGH, _LOW = Importance.HIGH, Importance.LOW
_TEXT, _LIST, _LONG, _FLAG, _CLASS = Type.STRING, Type.LIST, Type.LONG, Type.BOOLEAN, Type.CLASS


def _patterns(name: str, value: Any) -> None:
    try:
        matcher(value or ())
    except ValueError as error:
        raise ConfigValueError(name, ",".join(value), f"Invalid regex {error}") from None


def _policy(name: str, value: Any) -> None:
    one_of(DEFAULT_POLICY, IDENTITY_POLICY)(name, value)


def common_keys() -> ConfigDef:
    """The keys that MirrorMaker 2's three connectors share."""
    return ConfigDef(
        ConfigKey("enabled", _FLAG, True, _LOW, "Whether to replicate source->target."),
        ConfigKey("source.cluster.alias", _TEXT, REQUIRED, _HIGH, "Alias of source cluster"),
        ConfigKey(
            "target.cluster.alias", _TEXT, "target", _HIGH, "Alias of target cluster. Used in metrics reporting."
        ),
        ConfigKey("admin.timeout.ms", _LONG, 60_000, _LOW, "Timeout for administrative tasks."),
        ConfigKey(
            "replication.policy.class",
            _CLASS,
            DEFAULT_POLICY,
            _LOW,
            "Class which defines the remote topic naming convention.",
            _policy,
        ),
        ConfigKey(
            "replication.policy.separator", _TEXT, ".", _LOW, "Separator used in remote topic naming convention."
        ),
        ConfigKey(
            "replication.policy.internal.topic.separator.enabled",
            _FLAG,
            True,
            _LOW,
            "Whether the separator also stands in the names of internal topics; they are named with dots otherwise.",
        ),
    )


@cache
def source_keys() -> ConfigDef:
    """All keys of the source connector; whatever begins with `source.` or `target.` is a client's property."""
    return common_keys() + ConfigDef(
        ConfigKey("topics", _LIST, [".*"], _HIGH, "Topics to replicate. Supports names and regexes.", _patterns),
        ConfigKey(
            "topics.exclude",
            _LIST,
            TOPICS_EXCLUDE,
            _HIGH,
            "Excluded topics, names and regexes. Excludes take precedence over includes.",
            _patterns,
        ),
        ConfigKey(
            "config.properties.exclude",
            _LIST,
            PROPERTIES_EXCLUDE,
            _HIGH,
            "Topic config properties that should not be replicated, names and regexes.",
            _patterns,
        ),
        ConfigKey(
            "use.defaults.from",
            _TEXT,
            "target",
            _LOW,
            "Whose defaults a copy has for properties that the source topic does not set.",
            one_of("source", "target"),
        ),
        ConfigKey("consumer.poll.timeout.ms", _LONG, 1000, _LOW, "Timeout when polling source cluster."),
        ConfigKey("refresh.topics.enabled", _FLAG, True, _LOW, "Whether to look for new topics and partitions."),
        ConfigKey("refresh.topics.interval.seconds", _LONG, 600, _LOW, "Frequency of topic refresh."),
        ConfigKey("sync.topic.configs.enabled", _FLAG, True, _LOW, "Whether copies are configured like their topics."),
        ConfigKey("sync.topic.configs.interval.seconds", _LONG, 600, _LOW, "Frequency of topic config sync."),
        ConfigKey("sync.topic.acls.enabled", _FLAG, True, _LOW, "Whether copies have the ACLs of their topics."),
        ConfigKey("sync.topic.acls.interval.seconds", _LONG, 600, _LOW, "Frequency of topic ACL sync."),
        ConfigKey("replication.factor", Type.INT, 2, _LOW, "Replication factor for newly created remote topics."),
        ConfigKey(
            "offset-syncs.topic.replication.factor", Type.SHORT, 3, _LOW, "Replication factor for offset-syncs topic."
        ),
        ConfigKey(
            "offset.lag.max", _LONG, 100, _LOW, "How many records of a partition may pass before its offsets are noted."
        ),
        ConfigKey(
            "offset-syncs.topic.location",
            _TEXT,
            "source",
            _LOW,
            "The location (source/target) of the offset-syncs topic.",
            one_of("source", "target"),
        ),
        ConfigKey("emit.offset-syncs.enabled", _FLAG, True, _LOW, "Whether to note offsets in the offset-syncs topic."),
        ConfigKey("heartbeats.replication.enabled", _FLAG, True, _LOW, "Whether heartbeats are always replicated."),
    )


def client_properties(config: Mapping[str, str], side: Side, kind: str) -> dict[str, str]:
    """A client's properties under their Java names: the cluster's, then `<kind>.`, then `<side>.<kind>.`."""
    properties: dict[str, str] = {}
    for prefix in (f"{side}.cluster.", f"{kind}.", f"{side}.{kind}."):
        properties |= under(prefix, config)
    properties.pop("alias", None)
    return properties


def reader_properties(config: Mapping[str, str]) -> dict[str, str]:
    """Java's properties for reading from the source cluster: committed records only, unless configured otherwise.

    Raises ConfigValueError, as the next four do, for a cluster without brokers.
    """
    return {"isolation.level": "read_committed", **_reachable(config, "source", "consumer")}


def consumer_settings(config: Mapping[str, str]) -> dict[str, Any]:
    """librdkafka's settings for the same."""
    return client_settings(reader_properties(config), "consumer")


def admin_properties(config: Mapping[str, str], side: Side) -> dict[str, str]:
    """Java's properties for an admin client of either cluster."""
    return _reachable(config, side, "admin")


def admin_settings(config: Mapping[str, str], side: Side) -> dict[str, Any]:
    """librdkafka's settings for the same."""
    return client_settings(admin_properties(config, side), "admin")


def producer_settings(config: Mapping[str, str], side: Side) -> dict[str, str]:
    """Java's properties for a producer of offset syncs."""
    properties = _reachable(config, side, "producer")
    client_settings(properties, "producer")  # raises for illegal properties
    return properties


def _reachable(config: Mapping[str, str], side: Side, kind: str) -> dict[str, str]:
    java = client_properties(config, side, kind)
    if not java.get("bootstrap.servers", "").strip():
        raise ConfigValueError(f"{side}.cluster.bootstrap.servers", None, "Must be host:port of brokers")
    return java

"""Finds where a topic differs from its spec. Pure."""

from __future__ import annotations

from keelman.kafka.topic_configs import same_value
from keelman.model.topic import TopicSpec
from keelman.state.topics.broker_views import SeenTopic

MOVING = frozenset(("follower.replication.throttled.replicas", "leader.replication.throttled.replicas"))
"""Keys that tools set while they move replicas, and unset then."""


def config_changes(spec: TopicSpec, topic: SeenTopic) -> tuple[dict[str, str], list[str]]:
    """Returns the keys to set in a topic's configuration, with their values, and the keys to reset to the brokers'
    default."""
    config = topic.config or {}
    to_set = {
        key: value
        for key, value in sorted(spec.config.items())
        if key not in config or not same_value(key, config[key].value, value)
    }
    return to_set, [key for key in topic.own_config if key not in spec.config and key not in MOVING]


def differences(spec: TopicSpec, topic: SeenTopic) -> list[str]:
    """Returns where a topic differs from its spec, for people."""
    texts: list[str] = []
    if spec.partitions and len(topic.partitions) != spec.partitions:
        texts.append(f"partitions: {len(topic.partitions)}, specified {spec.partitions}")
    if spec.replication_factor and topic.replicas != spec.replication_factor:
        texts.append(f"replication_factor: {topic.replicas}, specified {spec.replication_factor}")
    if topic.config is not None:
        to_set, to_unset = config_changes(spec, topic)
        for key, value in to_set.items():
            had = repr(topic.config[key].value) if key in topic.config else "not known to the brokers"
            texts.append(f"config.{key}: {had}, specified {value!r}")
        texts += [f"config.{key}: {topic.config[key].value!r}, not specified" for key in to_unset]
    return texts

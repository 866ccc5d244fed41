"""Settings of topics: their form in Kafka, and the answer after another client changed the topic in Kafka."""

import pytest

from keelman.api.connect.v1.topic_pb2 import Topic, TopicSpec
from keelman.gateway.ohara.definitions.topic import TOPIC
from keelman.gateway.ohara.topics.settings import config_of, milliseconds, settings_of, spec_of
from keelman.gateway.ohara.wire.keys import ObjectKey
from keelman.gateway.ohara.wire.values import created

KEY, BROKER = ObjectKey("g", "t"), ObjectKey("default", "bk")
SENT = {"group": "g", "name": "t", "brokerClusterKey": "bk"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("604800000 milliseconds", 604_800_000),
        ("7 days", 604_800_000),
        ("1.5h", 5_400_000),
        ("2 minutes", 120_000),
        ("10s", 10_000),
        ("3 ms", 3),
        ("5000 micros", 5),
        ("1 d", 86_400_000),
    ],
)
def test_durations_are_milliseconds_in_kafka(text: str, expected: int) -> None:
    assert milliseconds(text) == expected


def test_a_topic_is_kept_with_its_settings_and_answered_as_sent() -> None:
    document = created(TOPIC, SENT | {"numberOfPartitions": 3, "tags": {"a": 1}, "own": ["x"]})
    topic = Topic(name="oh-1", spec=spec_of(KEY, document, "oh-bk"))
    assert (topic.spec.topic, topic.spec.partitions, topic.spec.replication_factor) == ("g-t", 3, 1)
    assert dict(topic.spec.config) == {"segment.bytes": "1073741824", "segment.ms": "604800000"}
    assert settings_of(KEY, topic, BROKER) == document


def test_newer_clients_name_times_and_policies() -> None:
    sent = {"segment.time": "1 day", "retention.time": "2 days", "cleanup.policy": "compact"}
    document = created(TOPIC, SENT | sent | {"min.cleanable.dirty.ratio": 0.25})
    assert config_of(document) == {
        "segment.bytes": "1073741824",
        "segment.ms": "86400000",
        "retention.ms": "172800000",
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.25",
    }
    assert settings_of(KEY, Topic(spec=spec_of(KEY, document, "b")), BROKER) == document


def test_what_was_changed_elsewhere_is_answered_as_it_is() -> None:
    topic = Topic(spec=spec_of(KEY, created(TOPIC, SENT), "b"))
    topic.spec.partitions = 8
    topic.spec.config["segment.bytes"] = "2048"
    settings = settings_of(KEY, topic, BROKER)
    assert (settings["numberOfPartitions"], settings["segment.bytes"]) == (8, 2048)


def test_a_topic_that_was_made_elsewhere_has_all_settings() -> None:
    topic = Topic(name="t", spec=TopicSpec(broker_cluster="bk", topic="Data", labels={"team": "blue"}))
    topic.status.brokers.partitions.add(partition=0).replicas.add(node_id=1)
    topic.status.brokers.partitions.add(partition=1).replicas.add(node_id=1)
    settings = settings_of(ObjectKey("default", "t"), topic, BROKER)
    assert (settings["numberOfPartitions"], settings["numberOfReplications"], settings["tags"]) == (
        2,
        1,
        {"team": "blue"},
    )

"""Topics: their legal specs, the differences between spec and brokers, and their states."""

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from keelman.kafka.topic_brokers import TopicConfigValue
from keelman.kafka.topic_configs import TOPIC_CONFIGS, same_value, value_problem
from keelman.model.annotations import Annotations, Origin
from keelman.model.cluster import (
    BrokerCluster,
    ClusterGoal,
    ExternalBrokers,
    ManagedBrokers,
    WorkerCluster,
    WorkerClusterSpec,
)
from keelman.model.errors import FailedPrecondition, InvalidArgument, NotFound
from keelman.model.topic import NOT_APPLIED, Topic, TopicApplied, TopicGoal, TopicSpec, TopicState, checked_topic
from keelman.state.resources.snapshot import Snapshot
from keelman.state.topics.broker_views import NOT_SEEN, Seen, SeenPartition, SeenTopic
from keelman.state.topics.checks import check, check_change, config_violations
from keelman.state.topics.differences import config_changes, differences
from keelman.state.topics.states import state_of
from support.state.snapshots import snapshot_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORIGIN = Origin("ohara", "default", "t")


def topic(name: str = "t", *, applied: TopicApplied = NOT_APPLIED, **spec) -> Topic:
    topic_spec = TopicSpec(**({"broker_cluster": "managed", "topic": name} | spec))
    return Topic(name, f"uid-{name}", NOW, NOW, 1, "1", applied.goal, topic_spec, applied)


def snapshot(*topics: Topic) -> Snapshot:
    brokers = {
        "managed": ManagedBrokers(("n1", "n2")),
        "external": ExternalBrokers("b:9092"),
        "going": ExternalBrokers("c:9092"),
    }
    clusters = {
        name: BrokerCluster(
            name, name, NOW, NOW, 1, "1", ClusterGoal.DELETED if name == "going" else ClusterGoal.RUNNING, spec
        )
        for name, spec in brokers.items()
    }
    wc = WorkerCluster("demo", "u", NOW, NOW, 1, "1", ClusterGoal.RUNNING, WorkerClusterSpec("managed"))
    snapshot = snapshot_of(broker_clusters=clusters, worker_clusters={"demo": wc})
    for single_topic in topics:
        snapshot.put(single_topic)
    return snapshot


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a b", "ä", "a/b", "x" * 250, "__consumer_offsets", "__cluster_metadata"]
)
def test_names_that_kafka_does_not_take(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"spec\.topic: .* is not legal: 1 to 249 letters"):
        checked_topic("spec.topic", name)


@pytest.mark.parametrize("name", ["a", "A.b_C-9", "x" * 249, "__mine"])
def test_names_that_kafka_takes(name: str) -> None:
    assert checked_topic("spec.topic", name) == name


@pytest.mark.parametrize(
    ("spec", "kind", "text"),
    [
        ({"partitions": -1}, InvalidArgument, r"spec.partitions: -1 is not legal: 0 \(as many"),
        ({"partitions": 10_001}, InvalidArgument, "spec.partitions: 10001 .* 1 to 10000"),
        (
            {"replication_factor": 3},
            InvalidArgument,
            r"spec.replication_factor: 3 .*: at most 2, the number of brokers",
        ),
        ({"broker_cluster": ""}, InvalidArgument, "spec.broker_cluster: '' is not legal"),
        ({"broker_cluster": "nosuch"}, NotFound, "no broker cluster is named 'nosuch'"),
        ({"broker_cluster": "going"}, FailedPrecondition, "'going' is being deleted"),
        (
            {"topic": "there"},
            FailedPrecondition,
            "topic resource 'there' has topic 'there' of broker cluster 'managed'",
        ),
        ({"topic": "demo.connect-offsets"}, FailedPrecondition, "worker cluster 'demo' keeps its own records in"),
        ({"config": {"retention.mss": "1"}}, InvalidArgument, "spec.config: .* did you mean 'retention.ms'"),
        ({"config": {"mine": "1"}}, InvalidArgument, "spec.config: 'mine' is not legal: one of cleanup.policy, "),
        ({"config": {"segment.bytes": "1"}}, InvalidArgument, "spec.config.segment.bytes: '1' .* of 1048576 to "),
        ({"annotations": Annotations(origin=ORIGIN)}, FailedPrecondition, "is the origin of topic 'there'"),
    ],
)
def test_what_is_refused(spec: dict, kind: type, text: str) -> None:
    there = topic("there", annotations=Annotations(origin=ORIGIN))
    with pytest.raises(kind, match=text):
        check("t", topic(**spec).spec, snapshot(there))


def test_the_same_topic_of_other_brokers_is_another() -> None:
    check("t", topic(topic="there", broker_cluster="external", replication_factor=9).spec, snapshot(topic("there")))


def test_brokers_of_another_version_know_keys_and_bounds_of_their_own() -> None:
    assert not config_violations(
        {"their.own.key": "x", "segment.bytes": "14", "compression.type": "new"}, managed=False
    )
    texts = [
        config_violation.description
        for config_violation in config_violations({"retntion.ms": "1", "flush.ms": "soon"}, managed=False)
    ]
    assert len(texts) == 2
    assert "spec.config.flush.ms: 'soon' is not legal: a whole number of 0 to" in texts[0]
    assert "did you mean 'retention.ms'" in texts[1]


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("cleanup.policy", "compact, delete", "compact;delete"),
        ("cleanup.policy", "delete", ""),
        ("min.cleanable.dirty.ratio", "0.25", "1.5"),
        ("min.cleanable.dirty.ratio", "1", "nan"),
        ("preallocate", "true", "yes"),
        ("retention.ms", "-1", "-2"),
        ("compression.type", "zstd", "zip"),
        ("leader.replication.throttled.replicas", "0:1,2:3", "0-1"),
        ("leader.replication.throttled.replicas", "*", "all"),
        ("min.insync.replicas", "1", "0"),
        ("max.message.bytes", "0", "1e3"),
        ("message.timestamp.type", "LogAppendTime", "logappendtime"),
    ],
)
def test_values_are_judged_by_their_keys(key: str, good: str, bad: str) -> None:
    assert value_problem(key, good) == ""
    assert value_problem(key, bad)
    assert key in TOPIC_CONFIGS


def test_values_that_mean_the_same() -> None:
    assert same_value("retention.ms", "+5", "05")
    assert same_value("min.cleanable.dirty.ratio", "0.50", "0.5")
    assert same_value("cleanup.policy", "delete,compact", "compact, delete")
    assert not same_value("retention.ms", "5", "50")
    assert not same_value("nobodys", "5", "05")


def on_brokers(partitions: int = 3, replicas: int = 1, **own: str) -> SeenTopic:
    config = {"retention.ms": TopicConfigValue("604800000", own=False), "flush.ms": TopicConfigValue("9", own=False)}
    config |= {key.replace("_", "."): TopicConfigValue(value, own=True) for key, value in own.items()}
    parts = tuple(SeenPartition(n, 1, tuple(range(replicas)), (0,)) for n in range(partitions))
    return SeenTopic("id", parts, config)


def test_differences_name_what_is_there_and_what_was_asked_for() -> None:
    spec = topic(partitions=3, replication_factor=1, config={"retention.ms": "604800000"}).spec
    assert differences(spec, on_brokers()) == []
    assert differences(topic().spec, on_brokers(9, 2)) == [], "values that are not set are the brokers' defaults"
    assert differences(spec, on_brokers(2, 3, flush_ms="8", retention_ms="1")) == [
        "partitions: 2, specified 3",
        "replication_factor: 3, specified 1",
        "config.retention.ms: '1', specified '604800000'",
        "config.flush.ms: '8', not specified",
    ]
    assert config_changes(spec, on_brokers(flush_ms="8", retention_ms="1")) == (
        {"retention.ms": "604800000"},
        ["flush.ms"],
    )
    moving = on_brokers(leader_replication_throttled_replicas="0:1")
    assert differences(spec, moving) == [], "replicas are being moved"
    assert differences(spec, dataclasses.replace(moving, config=None)) == [], "no caller may see it"


APPLIED = TopicApplied("op-1", goal=TopicGoal.PRESENT, generation=1)


@pytest.mark.parametrize(
    ("applied", "seen", "state"),
    [
        (NOT_APPLIED, NOT_SEEN, TopicState.ABSENT),
        (dataclasses.replace(APPLIED, ended=False, problem="waits"), NOT_SEEN, TopicState.APPLYING),
        (dataclasses.replace(APPLIED, failed=True, problem="no"), NOT_SEEN, TopicState.FAILED),
        (APPLIED, None, TopicState.PRESENT),
        (APPLIED, NOT_SEEN, TopicState.UNKNOWN),
        (APPLIED, Seen(NOW, "", on_brokers()), TopicState.PRESENT),
        (APPLIED, Seen(NOW + timedelta(seconds=1), ""), TopicState.MISSING),
        (APPLIED, Seen(NOW - timedelta(seconds=1), ""), TopicState.PRESENT),
    ],
)
def test_where_a_topic_stands(applied: TopicApplied, seen: Seen | None, state: TopicState) -> None:
    assert state_of(topic(applied=applied), seen)[0] is state


def test_what_of_a_topic_can_be_changed() -> None:
    def changed(old: Topic, have: int = 0, **spec) -> None:
        check_change(old, dataclasses.replace(old.spec, **spec), have)

    absent, present = topic(partitions=3), topic(partitions=3, applied=APPLIED)
    changed(absent, partitions=1, replication_factor=2)
    changed(present, partitions=4, config={"flush.ms": "1"})
    with pytest.raises(InvalidArgument, match=r"spec\.partitions: 4 is not legal: 5 or more"):
        changed(present, 5, partitions=4)
    with pytest.raises(InvalidArgument, match=r"spec\.partitions: 2 is not legal: 3 or more"):
        changed(present, partitions=2)
    with pytest.raises(
        InvalidArgument, match=r"spec\.replication_factor: 2 .*cannot be changed while the brokers have"
    ):
        changed(present, replication_factor=2)
    for field, value in (("topic", "x"), ("broker_cluster", "x")):
        with pytest.raises(InvalidArgument, match=rf"spec\.{field}: 'x' .* it cannot be changed"):
            changed(absent, **{field: value})
    with pytest.raises(InvalidArgument, match=r"spec\.origin"):
        changed(absent, annotations=Annotations(origin=ORIGIN))

"""The mirror's tasks, client properties and offset syncs, without a broker."""

import struct
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from keelman.connect.errors import ConfigValueError, ConnectError, RetriableConnectError
from keelman.connect.records import TopicPartition
from keelman.connect.watches import TopicWatch
from keelman.connectors.mirror import offsets as mirror_offsets
from keelman.connectors.mirror import source as mirror_source
from keelman.connectors.mirror.config import admin_settings, consumer_settings, producer_settings, reader_properties
from keelman.connectors.mirror.policy import DEFAULT_POLICY, IDENTITY_POLICY
from keelman.connectors.mirror.source import ASSIGNED, MirrorSource, decoded
from keelman.connectors.mirror.syncs import PartitionState, sync_key, sync_value
from keelman.connectors.mirror.topics import MirrorTopics
from keelman.kafka.security.jaas import PLAIN
from keelman.model.errors import InvalidArgument

CONFIG = {
    "name": "m",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "there:9092",
    "target.cluster.bootstrap.servers": "here:9092",
}


def test_partitions_are_dealt_out_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    topic_partitions = [
        TopicPartition(topic, number) for topic, count in (("t0", 8), ("t1", 2), ("t2", 2)) for number in range(count)
    ]
    monkeypatch.setattr(MirrorTopics, "partitions", lambda _self: topic_partitions)
    tasks = MirrorSource.task_configs(CONFIG, 3)
    assert [task[ASSIGNED] for task in tasks] == [
        "t0-0,t0-3,t0-6,t1-1",
        "t0-1,t0-4,t0-7,t2-0",
        "t0-2,t0-5,t1-0,t2-1",
    ]
    assert [task["task.index"] for task in tasks] == ["0", "1", "2"]
    assert len(MirrorSource.task_configs(CONFIG, 50)) == len(topic_partitions)
    assert MirrorSource.task_configs({**CONFIG, "enabled": "false"}, 3) == []
    topic_partitions.clear()
    assert MirrorSource.task_configs(CONFIG, 3) == []


def test_an_assigned_partition_is_read_from_its_last_dash() -> None:
    assert decoded("us-west.orders-2-13") == TopicPartition("us-west.orders-2", 13)
    for wrong in ("orders", "-3", "orders-x"):
        with pytest.raises(ConnectError, match="not a partition"):
            decoded(wrong)


def test_an_offset_that_is_no_number_fails_the_task() -> None:
    with pytest.raises(ConnectError, match="not a number"):
        MirrorSource.open_reader({**CONFIG, ASSIGNED: "t-0"}, lambda _partition: {"offset": "7"})


def test_a_task_rests_behind_its_last_records_and_where_it_would_begin() -> None:
    task, present = {**CONFIG, ASSIGNED: "t-0,t-1"}, {0: 6}

    def offset(partition: Mapping[str, Any]) -> dict[str, Any] | None:
        committed = present.get(partition["partition"])
        return None if committed is None else {"offset": committed}

    watch = MirrorSource.resting(task, offset)
    assert isinstance(watch, TopicWatch)
    assert watch.positions == {TopicPartition("t", 0): 7, TopicPartition("t", 1): 0}
    assert watch.properties == reader_properties(task)
    assert MirrorSource.resting({**task, "source.consumer.auto.offset.reset": "latest"}, offset) is None
    present[1] = 0
    assert MirrorSource.resting({**task, "source.consumer.auto.offset.reset": "latest"}, offset) is not None
    present.clear()
    assert MirrorSource.resting(task, offset) is None, "it has never copied anything"


def test_client_properties_come_from_the_cluster_then_the_kind_then_both() -> None:
    config = {
        **CONFIG,
        "source.cluster.security.protocol": "SASL_SSL",
        "source.cluster.sasl.mechanism": "PLAIN",
        "source.cluster.sasl.jaas.config": f'{PLAIN} required username="u" password="p";',
        "consumer.fetch.min.bytes": "1",
        "source.consumer.fetch.min.bytes": "7",
        "source.admin.client.id": "looks",
        "target.producer.linger.ms": "3",
    }
    consumer = consumer_settings(config)
    assert consumer["bootstrap.servers"] == "there:9092"
    assert consumer["security.protocol"] == "SASL_SSL"
    assert consumer["sasl.username"] == "u"
    assert consumer["fetch.min.bytes"] == "7"
    assert admin_settings(config, "source")["client.id"] == "looks"
    assert admin_settings(config, "target") == {"bootstrap.servers": "here:9092"}
    assert producer_settings(config, "target") == {"bootstrap.servers": "here:9092", "linger.ms": "3"}


def test_the_reader_has_javas_names_and_reads_what_is_committed() -> None:
    config = {**CONFIG, "source.consumer.fetch.max.bytes": "7", "source.cluster.security.protocol": "SSL"}
    assert reader_properties(config) == {
        "bootstrap.servers": "there:9092",
        "isolation.level": "read_committed",
        "fetch.max.bytes": "7",
        "security.protocol": "SSL",
    }
    assert reader_properties({**CONFIG, "consumer.isolation.level": "x"})["isolation.level"] == "x"


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ("auto.offset.reset", "by chance", ConfigValueError),
        ("fetch.max.bytes", "much", InvalidArgument),
        ("security.protocol", "SECRET", InvalidArgument),
    ],
)
def test_a_property_that_is_not_legal_is_named(key: str, value: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=key):
        MirrorSource.open_reader({**CONFIG, ASSIGNED: "t-0", f"source.consumer.{key}": value}, lambda _partition: None)


def test_exactly_once_unless_uncommitted_records_are_asked_for() -> None:
    assert MirrorSource.supports_exactly_once(CONFIG)
    assert MirrorSource.supports_exactly_once({}), "whatever else is missing"
    for key in ("consumer.isolation.level", "source.consumer.isolation.level"):
        assert not MirrorSource.supports_exactly_once({**CONFIG, key: "read_uncommitted"})


def test_the_shortest_interval_that_is_on_refreshes() -> None:
    assert MirrorSource.refresh_seconds(CONFIG) == 600
    assert MirrorSource.refresh_seconds({**CONFIG, "refresh.topics.interval.seconds": "5"}) == 5
    off = {f"{kind}.enabled": "false" for kind in ("refresh.topics", "sync.topic.configs", "sync.topic.acls")}
    assert MirrorSource.refresh_seconds({**CONFIG, **off}) is None


def test_without_a_refresh_of_topics_those_of_the_tasks_alone_are_tended(monkeypatch: pytest.MonkeyPatch) -> None:
    tended: list[object] = []
    monkeypatch.setattr(MirrorTopics, "tend", lambda self: tended.append(self.only))
    tasks = [{**CONFIG, ASSIGNED: "t0-0,t1-1"}, {**CONFIG, ASSIGNED: "t0-1,us-west.t-0"}]
    assert MirrorSource.tend_again(CONFIG, tasks) is False
    assert tended == [], "it is called as at first"
    stored = {**CONFIG, "refresh.topics.enabled": "false"}
    assert MirrorSource.tend_again(stored, tasks) is True
    assert MirrorSource.tend_again(stored, []) is True
    assert tended == [{"t0", "t1", "us-west.t"}, set()]
    MirrorSource.tend(stored)
    assert tended[2:] == [None], "as it begins it takes up all that there is"


def test_old_names_of_keys_still_count() -> None:
    parsed = mirror_source._parsed({**CONFIG, "topics.blacklist": "x"})
    assert parsed["topics.exclude"] == ["x"]
    assert mirror_source._parsed({**CONFIG, "topics.blacklist": "x", "topics.exclude": "y"})["topics.exclude"] == ["y"]


def test_syncs_are_laid_out_as_upstream() -> None:
    assert sync_key(TopicPartition("orders", 258)) == b"\x00\x06orders\x00\x00\x01\x02"
    assert sync_key(TopicPartition("ä", 0)) == b"\x00\x02\xc3\xa4\x00\x00\x00\x00"
    assert sync_value(1, 513) == struct.pack(">qq", 1, 513)


def test_a_sync_is_due_at_first_then_by_lag_gap_or_a_shorter_copy() -> None:
    state = PartitionState(100)
    assert state.due(50, skipped=False)
    assert not state.due(51, skipped=False)
    assert not state.due(150, skipped=False)
    assert state.due(151, skipped=False)
    assert not state.due(152, skipped=False)
    assert state.due(153, skipped=True)
    assert not state.due(154, skipped=False)
    assert state.due(10, skipped=False)
    always = PartitionState(0)
    assert always.due(0, skipped=False)
    assert always.due(1, skipped=False)


def test_a_source_cluster_that_does_not_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_offsets, "ASK_SECONDS", 0.2)
    with pytest.raises(RetriableConnectError, match="where its partitions end"):
        mirror_offsets.backlogs({}, {"bootstrap.servers": "127.0.0.1:1"}, {TopicPartition("t", 0): None})


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_cluster_without_brokers_is_named(side: Literal["source", "target"]) -> None:
    other = {"source.cluster.alias": "a", "target.cluster.alias": "b"}
    for settings in (lambda: admin_settings(other, side), lambda: producer_settings(other, side)):
        with pytest.raises(ConfigValueError, match=rf"configuration {side}\.cluster\.bootstrap\.servers: .*host:port"):
            settings()
    with pytest.raises(ConfigValueError, match=r"source\.cluster\.bootstrap\.servers"):
        consumer_settings(other)


def test_a_cluster_is_not_mirrored_into_itself_under_the_same_names() -> None:
    config = {
        "connector.class": "MirrorSourceConnector",
        "name": "m",
        "source.cluster.alias": "a",
        "source.cluster.bootstrap.servers": "one:9092, two:9092",
        "target.cluster.bootstrap.servers": "TWO:9092",
        "replication.policy.class": IDENTITY_POLICY,
    }
    (refused,) = MirrorSource.validate(config)
    assert (refused.key, "copied to themselves" in str(refused)) == ("replication.policy.class", True)
    for other in (
        {"replication.policy.class": DEFAULT_POLICY},
        {"target.cluster.bootstrap.servers": "three:9092"},
        {"producer.override.bootstrap.servers": "three:9092"},
        {"transforms": "rename"},
    ):
        assert MirrorSource.validate({**config, **other}) == ()

"""The parts of a sink that need no broker."""

import pytest
from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect.errors import ConfigValueError
from keelman.connect.plugin import KeptOffset
from keelman.connect.policy.topics import InternalTopics
from keelman.connect.records import Column, TopicPartition
from keelman.connectors.file.appending import lines
from keelman.connectors.kafka_sink import KafkaSink
from keelman.engine.failure import RunFailure
from keelman.engine.sink.batch import origin
from keelman.engine.sink.consumer import subscription
from keelman.engine.sink.consumer.consumer import lapse_seconds, sink_consumer_properties, watch_properties
from keelman.engine.sink.consumer.place import outdated
from keelman.engine.sink.positions.positions import Positions
from keelman.engine.sink.target import TargetCluster, target_name
from keelman.kafka.properties.connector_clients import sink_member
from support.certificates import Authority

WORKER = {
    "bootstrap.servers": "a:1",
    "security.protocol": "SSL",
    "ssl.truststore.certificates": Authority().pem,
    "ssl.truststore.type": "PEM",
    "consumer.max.poll.records": "5",
    "consumer.security.protocol": "PLAINTEXT",
    "group.id": "workers",
}


def message(topic: str, partition: int, offset: int, timestamp: tuple[int, int] = (1, 7), epoch: int = -1) -> Message:
    headers: list[tuple[str, bytes]] = [("h", b"1")]
    return Message(
        topic=topic, partition=partition, offset=offset, timestamp=timestamp, headers=headers, leader_epoch=epoch
    )


def test_where_records_came_from() -> None:
    actual_origin = origin([message("t", 1, 5), message("u", 0, 9, (0, 0))])
    assert (actual_origin.topics, actual_origin.partitions, actual_origin.offsets) == (["t", "u"], [1, 0], [5, 9])
    assert actual_origin.timestamps_ms == [7, None]
    assert actual_origin.headers == [[("h", b"1")], [("h", b"1")]]


def test_positions_follow_the_last_message_of_each_partition_and_the_ends() -> None:
    positions = Positions()
    assert positions.topics == []  # without records a topic is not in use, whichever partitions are assigned
    t0, t1, u0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
    for partition, start in ((t0, 3), (t1, None), (u0, None)):
        positions.begin(partition, None, start)
    written = [message("t", 0, 3), message("u", 0, 0), message("t", 0, 4), message("t", 1, 8)]
    positions.advance(positions.last_of_each(written))
    assert positions.kept() == {
        t0: KeptOffset(5, (None,)),
        t1: KeptOffset(9, (None,)),
        u0: KeptOffset(1, (None,)),
    }
    assert positions.reached(t1, 10)
    assert not positions.reached(t1, 10)
    assert not positions.reached(TopicPartition("not ours", 0), 10)
    assert positions.topics == ["t", "u"]
    positions.in_flight = 1
    positions.answered(None, [ClientPartition("t", 1, 10)])
    assert positions.in_flight == 0
    assert positions.kept()[t1].offset == 10
    ahead = [message("t", 0, 5), message("t", 1, 10), message("t", 0, 6)]
    positions.check(ahead, positions.last_of_each(ahead))
    positions.forget()
    assert not positions
    assert positions.kept() == {}


@pytest.mark.parametrize(
    "read",
    [
        [message("t", 1, 9)],
        [message("t", 0, 5), message("t", 1, 3), message("t", 0, 6)],
        [
            message("t", 1, 9),
            message("t", 1, 10),
            message("t", 1, 11, epoch=4),
        ],  # up to the new leader's last record
    ],
)
def test_a_consumer_that_goes_back_is_noticed(read: list[Message]) -> None:
    positions = Positions()
    for number, start in ((0, 5), (1, 10)):
        positions.begin(TopicPartition("t", number), None, start, "id", 3)
    with pytest.raises(RunFailure, match=r"partition 1 of topic t went back to \d from 10"):
        positions.check(read, positions.last_of_each(read))


def test_a_place_is_outdated_with_something_unwanted_or_when_nobody_has_what_is_wanted() -> None:
    a0, a1, b0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
    assert not outdated({a0}, {a0, a1}, {a0, a1})
    assert not outdated(set(), {a0}, {a0, b0})
    assert outdated({a0}, {a0, a1}, {a0})
    assert outdated({a0}, {b0}, {a0, b0})
    assert not outdated({a0}, {b0}, None)


def test_a_member_is_of_its_worker_cluster_and_a_standalone_workers_of_none() -> None:
    assert sink_member({"group.id": "workers"}, "out", 3) == "workers-out-3"
    assert sink_member({}, "out", 0) == "out-0"


def test_the_group_waits_for_longer_than_a_writer_can_be_a_zombie() -> None:
    def session(zombie_seconds: float, **config: str) -> object:
        properties = sink_consumer_properties(
            WORKER, config, "c", 0, read_committed=True, zombie_seconds=zombie_seconds
        )
        return properties["session.timeout.ms"]

    assert session(0) == 10_000
    assert session(20) == 30_000
    assert session(20, **{"consumer.override.session.timeout.ms": "20000"}) == "20000"


@pytest.mark.parametrize("key", ["session.timeout.ms", "max.poll.interval.ms"])
def test_a_wait_of_the_group_that_is_shorter_than_a_zombie_is_refused(key: str) -> None:
    def refused(worker: dict[str, str], config: dict[str, str]) -> str:
        with pytest.raises(ConfigValueError) as caught:
            sink_consumer_properties(worker, config, "c", 0, read_committed=True, zombie_seconds=20)
        return str(caught.value)

    of_connector = refused(WORKER, {f"consumer.override.{key}": "19999"})
    assert of_connector.startswith(
        f"Invalid value 19999 for configuration consumer.override.{key}: Value must be at least 20000"
    )
    of_worker = refused({**WORKER, f"consumer.{key}": "6000"}, {})
    assert of_worker.startswith(f"Invalid value 6000 for configuration consumer.{key}: Value must be at least 20000")


def test_a_task_lapses_by_the_shorter_wait_and_polls_are_never_due_before_the_session_ends() -> None:
    def made(zombie_seconds: float, **config: str) -> dict[str, object]:
        return sink_consumer_properties(WORKER, config, "c", 0, read_committed=True, zombie_seconds=zombie_seconds)

    assert lapse_seconds(made(20)) == 30
    assert lapse_seconds(made(20, **{"consumer.override.max.poll.interval.ms": "20000"})) == 30
    long = made(400)
    assert (long["session.timeout.ms"], long["max.poll.interval.ms"]) == (600_000, 600_000)


def test_a_watch_knows_how_to_reach_the_cluster_and_nothing_else() -> None:
    config = {"consumer.override.bootstrap.servers": "b:2", "consumer.override.fetch.min.bytes": "7", "topics": "t"}
    assert watch_properties(WORKER, config) == {
        "bootstrap.servers": "b:2",
        "security.protocol": "PLAINTEXT",
        "ssl.truststore.certificates": WORKER["ssl.truststore.certificates"],
        "ssl.truststore.type": "PEM",
    }


def test_the_target_is_the_workers_cluster_or_one_of_its_own() -> None:
    own = TargetCluster({"producer.override.linger.ms": "7"}, WORKER)
    assert (own.producer["bootstrap.servers"], own.producer["security.protocol"]) == ("a:1", "SSL")
    assert own.producer["linger.ms"] == "7"
    fields = {"target.cluster.bootstrap.servers": "t:9", "target.cluster.compression.type": "zstd"}
    other = TargetCluster({**fields, "target.cluster.producer.linger.ms": "3"}, WORKER)
    assert other.producer == {"bootstrap.servers": "t:9", "compression.type": "zstd", "linger.ms": "3"}
    assert other.admin == {"bootstrap.servers": "t:9"}
    assert other.reader["bootstrap.servers"] == "t:9"
    assert target_name("copy-of-${topic}.v1", "a.b") == "copy-of-a.b.v1"


def test_keys_of_the_kafka_sink() -> None:
    with pytest.raises(ConfigValueError, match='Missing required configuration "topic"'):
        KafkaSink.config_def().parse({})
    with pytest.raises(ConfigValueError, match="must be one of: same, by-key"):
        KafkaSink.config_def().parse({"topic": "t", "partitions": "random"})


def test_lines_of_a_file() -> None:
    assert lines(Column([b"a", None, b"", b"\xc3\xbc"], utf8=True)) == b"a\nnull\n\n\xc3\xbc\n"
    assert lines(Column([b"a\xff"], utf8=True)) == "a\N{REPLACEMENT CHARACTER}\n".encode()
    assert lines(Column([1.0, True, b"\xff"])) == b"1.0\ntrue\n\xff\n"
    assert lines(Column([])) == b""


def test_a_sink_whose_brokers_are_away_does_not_know_that_all_topics_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "ANSWER_SECONDS", 0.2)
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
    assert not subscription.Subscription({"topics": "t"}).complete(consumer)
    consumer.close()


def test_a_pattern_never_means_internal_topics() -> None:
    internal = InternalTopics({"status.storage.topic": "mine", "keelman.policy.topics.denied": "others-*"})
    subscribed = subscription.Subscription({"topics.regex": ".*"}, is_internal=internal.has)
    topics = ["a", "mine", "others-status", "demo.connect-configs", "keelman.events.node.v1", "__x", "__debezium-x"]
    assert subscribed.names(topics) == ["__debezium-x", "a"]

"""A mirror from a broker to itself: every record unchanged, once, through kills; its topics, syncs and ends."""

import struct
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from keelman.api.copy.v1 import ticket_pb2
from keelman.connectors.mirror.source import MirrorSource
from support.copying.harness import Run, dies_at, hosted, ticket
from support.kafka.topics import create_topic, messages
from support.waiting import until

pytestmark = pytest.mark.component

# Recent times: a broker deletes records that are older than its retention, half a minute after its start.
BORN_MS = round(time.time() * 1000) - 3_600_000
Record = tuple[int, bytes | None, bytes | None, int, Any]
DEATHS = [
    ("record in an open transaction", 2),
    ("offsets in an open transaction", 2),
    ("record in an open transaction", 5),
    ("transaction committed", 2),
]


def mirror(bootstrap: str, name: str, **more: str) -> dict[str, str]:
    """A mirror of topic `name` to `<name>-there.<name>`, with a syncs topic of its own."""
    return {
        "name": f"{name}-connector",
        "connector.class": "MirrorSource",
        "source.cluster.alias": f"{name}-there",
        "target.cluster.alias": f"{name}-here",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "topics": name,
        "heartbeats.replication.enabled": "false",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "keelman.commit.interval.ms": "1",
        **more,
    }


def alter(admin: AdminClient, topic: str, key: str, text: str | None) -> None:
    operation = AlterConfigOpType.DELETE if text is None else AlterConfigOpType.SET
    entry = ConfigEntry(key, text, incremental_operation=operation)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(300)


def task(config: dict[str, str]) -> dict[str, str]:
    MirrorSource.tend(config)
    return MirrorSource.task_configs(config, 1)[0]


def fill(bootstrap: str, topic: str, count: int, partitions: int) -> None:
    """Numbered records in transactions, every fourth of them aborted: some without key, value or headers."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"fill-{topic}"})
    producer.init_transactions(30)
    for part in range(12):
        producer.begin_transaction()
        for number in range(part * count // 12, (part + 1) * count // 12):
            headers = [("a", b"%d" % number), ("a", None), ("b", b"")] if number % 3 == 0 else None
            key = b"%d" % number if number % 2 == 0 else None
            value = None if number % 5 == 0 and key is not None else b"%09d" % number
            stamp = BORN_MS + number
            producer.produce(topic, value, key, number % partitions, timestamp=stamp, headers=headers)
            producer.poll(0)
        if part % 4 == 3:
            producer.flush(300)
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def records(bootstrap: str, topic: str) -> dict[tuple[int, int], Record]:
    """All committed records of a topic by partition and offset."""
    return {
        (m.partition(), m.offset()): (m.partition(), m.key(), m.value(), m.timestamp()[1], m.headers())
        for m in messages(bootstrap, topic)
    }


def in_order(actual_records: dict[tuple[int, int], Record]) -> list[Record]:
    return [actual_records[place] for place in sorted(actual_records)]


def syncs(bootstrap: str, name: str) -> list[tuple[int, int, int]]:
    """Partition, upstream and downstream offset of every sync."""
    actual_syncs = []
    for _partition, key, value, _stamp, _headers in in_order(
        records(bootstrap, f"mm2-offset-syncs.{name}-here.internal")
    ):
        assert key is not None and value is not None and key[:-4] == struct.pack(">h", len(name)) + name.encode()  # noqa: PT018
        actual_syncs.append((struct.unpack(">i", key[-4:])[0], *struct.unpack(">qq", value)))
    return actual_syncs


def test_every_record_arrives_as_it_was_and_once_through_kills(bootstrap: str, name: str, tmp_path: Path) -> None:
    create_topic(bootstrap, name, 3)
    fill(bootstrap, name, 24_000, 3)
    read_before = records(bootstrap, name)
    assert len(read_before) == 18_000
    few = {"max.partition.fetch.bytes": "20000", "fetch.max.bytes": "20000"}  # so that it takes many reads
    config = task(mirror(bootstrap, name, **{f"source.consumer.{key}": value for key, value in few.items()}))
    remote, log = f"{name}-there.{name}", tmp_path / "log"
    for point in DEATHS:
        dies_at(bootstrap, config, log, point)
    assert 0 < len(records(bootstrap, remote)) < len(read_before)
    try:
        with hosted(bootstrap, config, log) as last:
            until(lambda: len(records(bootstrap, remote)) >= len(read_before), "the copy is whole")
            last.terminate()
            assert last.wait(60) == 0
    except AssertionError:
        print(log.read_text())
        raise
    taken = records(bootstrap, remote)
    assert in_order(taken) == in_order(read_before)
    synced = syncs(bootstrap, name)
    assert {partition for partition, _, _ in synced} == {0, 1, 2}
    for partition, upstream, downstream in synced:
        assert read_before[partition, upstream] == taken[partition, downstream]


def test_at_least_once_carries_the_same_and_tells_offsets(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 2)
    fill(bootstrap, name, 1_200, 2)
    read_before = records(bootstrap, name)
    config = task(mirror(bootstrap, name, **{"offset-syncs.topic.location": "target"}))
    run = Run(ticket(bootstrap, config, delivery=ticket_pb2.DELIVERY_GUARANTEE_AT_LEAST_ONCE, transactional_id=""))
    run.until_records(len(read_before))
    run.drain()
    taken = records(bootstrap, f"{name}-there.{name}")
    assert in_order(taken) == in_order(read_before)
    there = records(bootstrap, f"mm2-offset-syncs.{name}-there.internal")
    offsets = [struct.unpack(">qq", value) for _, _, value, _, _ in there.values() if value is not None]
    partitions = [struct.unpack(">i", key[-4:])[0] for _, key, _, _, _ in there.values() if key is not None]
    assert set(partitions) == {0, 1}
    for partition, (upstream, downstream) in zip(partitions, offsets, strict=True):
        assert read_before[partition, upstream] == taken[partition, downstream]


def test_a_record_that_the_copys_topic_refuses_fails_the_task(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name)
    create_topic(bootstrap, f"{name}-there.{name}", **{"max.message.bytes": "1000"})
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    producer.produce(name, b"x" * 5000)
    assert producer.flush(300) == 0
    config = mirror(bootstrap, name, **{"sync.topic.configs.enabled": "false"})
    run = Run(ticket(bootstrap, task(config)))
    failed = run.until_state("FAILED")
    assert failed.reason == "TASK_FAILED", failed
    assert "MESSAGE_TOO_LARGE" in failed.message


def test_copies_topics_are_made_grown_and_configured_like_their_topics(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 2, **{"retention.ms": "7654321", "message.timestamp.type": "LogAppendTime"})
    config = mirror(bootstrap, name)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    remote = f"{name}-there.{name}"

    def partitions() -> int:
        topic = admin.list_topics(timeout=300).topics.get(remote)
        return 0 if topic is None else len(topic.partitions)

    def value(key: str) -> tuple[str, bool]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, remote)
        entry = admin.describe_configs([resource])[resource].result(300)[key]
        return entry.value, entry.is_default

    MirrorSource.tend(config)
    until(lambda: partitions() == 2, "the copy is made")
    assert value("retention.ms") == ("7654321", False)
    assert value("message.timestamp.type")[0] == "CreateTime", "an excluded property was copied"
    alter(admin, name, "retention.ms", None)
    alter(admin, name, "cleanup.policy", "compact")
    admin.create_partitions([NewPartitions(name, 5)])[name].result(300)
    until(lambda: len(MirrorSource.task_configs(config, 9)) == 5, "the topic has grown")
    MirrorSource.tend(config)
    until(lambda: partitions() == 5, "the copy has grown")
    until(lambda: value("retention.ms")[1] and value("cleanup.policy") == ("compact", False), "configured")


def test_a_mirror_is_settled_until_there_is_something_to_do(bootstrap: str, name: str) -> None:
    """One look for several mirrors finds any change, and `tend` and `task_configs` handle it once and for all."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    create_topic(bootstrap, f"{name}-a", 2)
    create_topic(bootstrap, f"{name}-b", 1)
    single_mirror, other = mirror(bootstrap, f"{name}-a", topics=f"{name}-a,{name}-a2"), mirror(bootstrap, f"{name}-b")
    nowhere = {**single_mirror, "target.cluster.bootstrap.servers": "127.0.0.1:1", "admin.timeout.ms": "100"}
    unnamed = {key: value for key, value in single_mirror.items() if key != "source.cluster.bootstrap.servers"}

    def tasks(config: dict[str, str]) -> list[dict[str, str]]:
        MirrorSource.tend(config)
        return MirrorSource.task_configs(config, 9)

    has = tasks(single_mirror), tasks(other)

    def settled() -> list[bool]:
        return MirrorSource.settled([(nowhere, has[0]), (single_mirror, has[0]), (unnamed, has[0]), (other, has[1])])

    def changed(what: str) -> None:
        """Waits until the first mirror has something to do, then until it has done that."""
        nonlocal has
        until(lambda: settled() == [False, False, False, True], f"{what} is seen")
        has = tasks(single_mirror), has[1]
        until(lambda: settled() == [False, True, False, True], f"{what} is done")

    until(lambda: settled() == [False, True, False, True], "both are settled")
    assert MirrorSource.settled([(single_mirror, has[0][:1]), (single_mirror, []), (other, has[0])]) == [False] * 3, (
        "other partitions"
    )
    alter(admin, f"{name}-a", "retention.ms", "7654321")
    changed("a setting")
    admin.create_partitions([NewPartitions(f"{name}-a", 3)])
    changed("a partition")
    create_topic(bootstrap, f"{name}-a2", 1)
    changed("a topic")
    remote = f"{name}-a-there.{name}-a2"
    admin.delete_topics([remote])[remote].result(300)
    changed("a copy that is gone")


def test_without_a_refresh_of_topics_a_mirror_tends_what_it_has(bootstrap: str, name: str) -> None:
    """`refresh.topics.enabled=false`: no new topic, partition or copy until a restart, but configurations always."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    first, second, gone = topics = [f"{name}-{number}" for number in range(3)]
    create_topic(bootstrap, first, 2)
    create_topic(bootstrap, gone, 1)
    config = mirror(bootstrap, name, topics=",".join(topics), **{"refresh.topics.enabled": "false"})
    MirrorSource.tend(config)
    tasks = MirrorSource.task_configs(config, 9)
    assert len(tasks) == 3

    def copies() -> dict[str, int]:
        present_topics = admin.list_topics(timeout=300).topics
        return {
            topic: len(present_topics[remote].partitions)
            for topic in topics
            if (remote := f"{name}-there.{topic}") in present_topics
        }

    def settled() -> bool:
        return MirrorSource.settled([(config, tasks)])[0]

    def retention(topic: str) -> str:
        resource = ConfigResource(ConfigResource.Type.TOPIC, f"{name}-there.{topic}")
        return str(admin.describe_configs([resource])[resource].result(300)["retention.ms"].value)

    until(lambda: copies() == {first: 2, gone: 1} and settled(), "its copies are made")
    create_topic(bootstrap, second, 1, **{"retention.ms": "7654321"})
    admin.create_partitions([NewPartitions(first, 5)])[first].result(300)
    admin.delete_topics([f"{name}-there.{gone}"])[f"{name}-there.{gone}"].result(300)
    until(lambda: len(MirrorSource.task_configs(config, 9)) == 7, "there is more to mirror")
    until(lambda: copies() == {first: 2}, "and a copy less")
    assert settled(), "nothing of it is to be taken up"
    alter(admin, first, "retention.ms", "7654321")
    until(lambda: not settled(), "a setting is seen")
    assert MirrorSource.tend_again(config, tasks)
    until(lambda: retention(first) == "7654321", "the setting is brought in line")
    until(settled, "that was all")
    assert copies() == {first: 2}
    MirrorSource.tend(config)
    until(lambda: copies() == {first: 5, second: 1, gone: 1}, "it begins anew")


def test_the_watch_stands_at_the_ends_and_deleted_records_are_passed_over(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 2)
    fill(bootstrap, name, 1_200, 2)
    config = task(mirror(bootstrap, name))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    first = TopicPartition(name, 0, 500)
    admin.delete_records([first])[first].result(300)
    reader = MirrorSource.open_reader(config, lambda partition: {"offset": 10} if partition["partition"] == 0 else None)
    read = {0: 0, 1: 0}
    try:
        assert reader.watch() is None
        deadline = time.monotonic() + 300
        while (watch := reader.watch()) is None:
            assert time.monotonic() < deadline, f"no end after {read}"
            batch = reader.read()
            for packed in batch.packed if batch is not None else ():
                read[packed.partition] += packed.records
            for number in batch.partitions or () if batch is not None else ():
                read[number or 0] += 1
        assert read == {number: sum(1 for at in records(bootstrap, name) if at[0] == number) for number in (0, 1)}
        assert reader.left() == 0
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})
        ends = {n: consumer.get_watermark_offsets(TopicPartition(name, n), timeout=300)[1] for n in (0, 1)}
        consumer.close()
        assert {name.partition: position for name, position in watch.positions.items()} == ends
        assert watch.properties["bootstrap.servers"] == bootstrap
    finally:
        reader.close()

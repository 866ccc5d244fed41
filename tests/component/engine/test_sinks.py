"""Sinks against a real broker: topics to topics exactly once, a full disk, limits, parking, members that leave."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer

from keelman.api.copy.v1 import ticket_pb2
from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.kafka.clients import low_level_client
from keelman.kafka.groups.protocol import DescribedGroup, GroupClient
from keelman.kafka.groups.static_members import remove_static_members
from support.copying.harness import Run, copied_to_the_end, dies_at, hosted, ticket
from support.copying.orders import limit_to
from support.kafka.topics import create_topic, messages
from support.partitioner import partition_for
from support.waiting import until

pytestmark = pytest.mark.component

AT_LEAST_ONCE = ticket_pb2.DELIVERY_GUARANTEE_AT_LEAST_ONCE


def kafka_sink(name: str, **more: str) -> dict[str, str]:
    return {"name": f"{name}-out", "connector.class": "KafkaSink", "topics": name, "topic": "to-${topic}", **more}


def file_sink(name: str, path: Path, **more: str) -> dict[str, str]:
    return {"name": f"{name}-out", "connector.class": "FileStreamSink", "file": str(path), "topics": name, **more}


def produce(bootstrap: str, topic: str, numbers: range, partitions: int = 1, *, abort: bool = False) -> None:
    """Writes numbered records with keys in one transaction; number n goes to partition n modulo `partitions`."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"test-{topic}"})
    producer.init_transactions(60)
    producer.begin_transaction()
    if topic not in producer.list_topics(timeout=300).topics:
        create_topic(bootstrap, topic, partitions)
    for number in numbers:
        producer.produce(topic, b"%040d" % number, b"k%d" % number, partition=number % partitions)
        if number % 10_000 == 0:
            producer.flush(300)
    if abort:
        producer.flush(300)
        producer.abort_transaction(30)
    else:
        producer.commit_transaction(30)


def numbers_by_partition(messages: list[Message]) -> dict[int, list[int]]:
    numbers: dict[int, list[int]] = {}
    for message in messages:
        numbers.setdefault(message.partition(), []).append(int(message.value()))
    return numbers


def all_read(update: RunUpdate) -> bool:
    return bool(update.progress.offsets) and update.progress.HasField("lag") and update.progress.lag == 0


def test_a_record_is_copied_whole_and_missing_topics_are_made_like_their_sources(
    bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    create_topic(bootstrap, name, 3, **{"retention.ms": "-1"})  # of 2020: brokers delete records older than a week
    create_topic(bootstrap, f"{name}b", 2)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    headers = [("one", b"1"), ("none", None), ("one", b"again")]
    producer.produce(name, b'{"not": "read"', b"\xff\x00", partition=2, timestamp=1_600_000_000_123, headers=headers)
    producer.produce(name, None, None, partition=1, timestamp=1_600_000_000_456)
    producer.produce(f"{name}b", b"other", b"key", partition=1)
    assert producer.flush(300) == 0
    json_converter = "org.apache.kafka.connect.json.JsonConverter"
    config = kafka_sink(name, topics=f"{name},{name}b", **{"value.converter": json_converter})
    runs(ticket(bootstrap, {**config, "topic.creation.default.retention.ms": "-1"})).copied(3)
    ms = {m.partition(): m for m in messages(bootstrap, f"to-{name}")}
    assert sorted(ms) == [1, 2]
    whole = ms[2]
    assert (whole.key(), whole.value(), whole.timestamp()) == (b"\xff\x00", b'{"not": "read"', (1, 1_600_000_000_123))
    assert whole.headers() == headers
    assert (ms[1].key(), ms[1].value(), ms[1].headers()) == (None, None, None)
    (other,) = messages(bootstrap, f"to-{name}b")
    assert (other.partition(), other.value()) == (1, b"other")
    topics = producer.list_topics(timeout=300).topics
    assert (len(topics[f"to-{name}"].partitions), len(topics[f"to-{name}b"].partitions)) == (3, 2)


def test_by_key_into_one_topic_with_javas_partitions(bootstrap: str, name: str, runs: Callable[..., Run]) -> None:
    produce(bootstrap, name, range(50), 4)
    create_topic(bootstrap, f"{name}-all", 2)
    runs(ticket(bootstrap, kafka_sink(name, topic=f"{name}-all", partitions="by-key"))).copied(50)
    partitions = {m.key(): m.partition() for m in messages(bootstrap, f"{name}-all")}
    assert partitions == {b"k%d" % n: partition_for(b"k%d" % n, 2) for n in range(50)}


def test_a_topic_is_not_copied_to_itself(bootstrap: str, name: str, runs: Callable[..., Run]) -> None:
    produce(bootstrap, name, range(3))
    run = runs(ticket(bootstrap, kafka_sink(name, topic="${topic}")))
    failed = run.until_state("FAILED")
    assert (failed.reason, failed.retriable) == ("TASK_FAILED", False)
    assert failed.message == f"topic {name} would be copied to itself: `topic` must give another name"


DEATHS = [
    ("record in an open transaction", 2),
    ("offsets in an open transaction", 2),
    ("transaction committed", 2),
    ("group told", 1),
    ("offsets in an open transaction", 1),
]


def test_every_record_once_through_crashes_at_every_step(bootstrap: str, name: str, tmp_path: Path) -> None:
    total, log = 100_000, tmp_path / "log"
    produce(bootstrap, name, range(total // 2), 2)
    produce(bootstrap, name, range(total, total + 100), 2, abort=True)
    produce(bootstrap, name, range(total // 2, total), 2)
    config = kafka_sink(name, **{"keelman.commit.interval.ms": "20"})
    for death in DEATHS:
        dies_at(bootstrap, config, log, death)
    copied_to_the_end(bootstrap, config, log)
    actual_messages = messages(bootstrap, f"to-{name}")
    assert numbers_by_partition(actual_messages) == {0: list(range(0, total, 2)), 1: list(range(1, total, 2))}
    aborted = len(messages(bootstrap, f"to-{name}", "read_uncommitted")) - total
    assert aborted > 0, "no crash left an aborted record, so this test showed nothing"


def test_tasks_that_come_and_go_share_the_partitions_and_copy_all_once(
    bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    config = kafka_sink(name, **{"keelman.commit.interval.ms": "50"})
    come_and_go(bootstrap, name, runs, config, lambda again: again.until(all_read))


def come_and_go(
    bootstrap: str, name: str, runs: Callable[..., Run], config: dict[str, str], settled: Callable[[Run], object]
) -> None:
    """Tasks of a KafkaSink come and go, and all records are copied once.

    `settled` waits until the present records are copied, before more come; its argument is the task that came last.
    """
    produce(bootstrap, name, range(20_000), 4)
    slow = ticket_pb2.Limits(records_per_second=1_000)
    first = runs(ticket(bootstrap, config, limits=slow))
    first.until_records(1)
    second = runs(ticket(bootstrap, config, task=1))
    second.until_records(1)
    first.loop.control.cut("TEST")
    first.until_state("ENDED")
    again = runs(ticket(bootstrap, config))
    settled(again)
    produce(bootstrap, name, range(20_000, 20_100), 4)
    # Each of the two copies its own records: neither is drained before the other has done so.
    until(lambda: len(messages(bootstrap, f"to-{name}")) >= 20_100, "both copy what came")
    second.drain()
    again.drain()
    numbers = numbers_by_partition(messages(bootstrap, f"to-{name}"))
    assert numbers == {p: list(range(p, 20_100, 4)) for p in range(4)}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "keelman-test", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("delivery", [ticket_pb2.DELIVERY_GUARANTEE_EXACTLY_ONCE, AT_LEAST_ONCE])
def test_a_full_disk_loses_tears_and_doubles_nothing(
    bootstrap: str, name: str, small_disk: Path, runs: Callable[..., Run], delivery: int
) -> None:
    produce(bootstrap, name, range(60_000))
    taken = small_disk / "taken"
    config = file_sink(name, taken, **{"keelman.commit.interval.ms": "1"})
    for _ in range(3):
        run = runs(ticket(bootstrap, config, delivery=delivery))
        failed = run.until_state("FAILED")
        assert (failed.reason, failed.retriable) == ("TASK_FAILED", True)
        assert "No space left on device" in failed.message
        assert run.loop.join(300)
        assert taken.stat().st_size % 41 == 0, "half a line is in the file"
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    run = runs(ticket(bootstrap, config, delivery=delivery))
    run.until(all_read)
    run.drain()
    numbers = list(map(int, taken.read_bytes().splitlines()))
    if delivery == AT_LEAST_ONCE:
        assert sorted(set(numbers)) == list(range(60_000))
    else:
        assert numbers == list(range(60_000))


def test_without_a_file_it_prints(bootstrap: str, name: str, tmp_path: Path) -> None:
    produce(bootstrap, name, range(3))
    log = tmp_path / "log"
    config = file_sink(name, tmp_path)
    del config["file"]
    with hosted(bootstrap, config, log, fields={"delivery": AT_LEAST_ONCE}):
        until(lambda: all(b"\n%040d\n" % n in b"\n" + log.read_bytes() for n in range(3)), "three lines")


def test_a_limit_holds_and_changes_while_it_runs(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    produce(bootstrap, name, range(100_000))
    limits = ticket_pb2.Limits(records_per_second=2_000)
    started = time.monotonic()
    run = runs(ticket(bootstrap, file_sink(name, tmp_path / "taken"), limits=limits))
    update = run.until_records(4_000)
    seconds = time.monotonic() - started
    assert update.progress.records <= 2_000 * (seconds + 0.5)
    run.loop.control.apply(limit_to(size=1))  # a wait without end, during which the group must not lose the member
    before = run.until(lambda u: u.progress.records_per_second == 0)
    run.loop.control.apply(limit_to())
    run.until_records(100_000)
    assert before.progress.records < 100_000
    run.drain()
    assert (tmp_path / "taken").read_bytes() == b"".join(b"%040d\n" % n for n in range(100_000))


def test_an_end_that_comes_with_the_last_records_is_reached(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    """The transaction's marker follows the last record. So slow that the client has its end when that is read."""
    produce(bootstrap, name, range(195))
    slow = ticket_pb2.Limits(records_per_second=100)  # ten at a time, so there is room in the last read
    run = runs(ticket(bootstrap, file_sink(name, tmp_path / "taken"), limits=slow))
    run.until(lambda u: all_read(u) and u.progress.records == 195)
    run.drain()


def test_an_idle_sink_offers_a_watch_and_takes_it_back(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    produce(bootstrap, name, range(10), 2)
    config = file_sink(name, tmp_path / "taken", **{"keelman.park.after.ms": "2000"})
    run = runs(ticket(bootstrap, config, worker_config={"consumer.security.protocol": "PLAINTEXT"}))
    watch = run.until(lambda u: u.HasField("watch")).watch.topics
    assert dict(watch.client_properties) == {"bootstrap.servers": bootstrap, "security.protocol": "PLAINTEXT"}
    assert {(p.topic, p.partition): p.offset for p in watch.positions} == {(name, 0): 6, (name, 1): 6}  # and a marker
    seen = len(run.seen)
    produce(bootstrap, name, range(10, 12), 2)
    run.seen = run.seen[seen:]
    assert run.until(lambda u: not u.HasField("watch") and u.progress.records == 12)
    run.drain()


async def test_a_drained_sinks_member_leaves_at_once(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    properties = {"bootstrap.servers": bootstrap}
    produce(bootstrap, name, range(3))
    runs(ticket(bootstrap, file_sink(name, tmp_path / "taken"))).copied(3)
    group = f"connect-{name}-out"

    async def described() -> DescribedGroup:
        async with low_level_client(properties, client_id="observer", timeout_ms=30_000) as client:
            return await GroupClient(client, group, session_ms=0, rebalance_ms=0).describe()

    assert (await described()).state == "Stable"
    await remove_static_members(properties, group, [f"test-workers-{name}-out-0", f"test-workers-{name}-out-1"])
    left = await described()
    assert (left.state, left.members) == ("Empty", ())


def test_a_topic_of_the_list_that_is_made_later_is_read_within_seconds(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    produce(bootstrap, name, range(1))
    config = file_sink(name, tmp_path / "taken", topics=f"{name},{name}-later", **{"keelman.park.after.ms": "-1"})
    run = runs(ticket(bootstrap, config))
    run.until_records(1)
    produce(bootstrap, f"{name}-later", range(1))
    run.until_records(2)
    run.drain()


@pytest.mark.parametrize("age", [{}, {"consumer.override.metadata.max.age.ms": "500"}])
def test_new_topics_of_a_pattern_are_found_as_soon_as_metadata_may_be_old(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run], age: dict[str, str]
) -> None:
    """Two topics, one after the other: each is waited for from the last look on."""
    config = file_sink(name, tmp_path / "taken", topics="", **{"topics.regex": f"{name}-[0-9]"}, **age)
    run = runs(ticket(bootstrap, config))
    produce(bootstrap, f"{name}-1", range(1))
    run.until_records(1)
    begun = time.monotonic()
    for number in (2, 3):
        produce(bootstrap, f"{name}-{number}", range(1))
        run.until_records(number)
    assert time.monotonic() - begun < (15 if age else 25)
    run.drain()


def test_sinks_of_one_name_in_two_worker_clusters_each_copy_their_own_topic(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    produce(bootstrap, name, range(3))
    produce(bootstrap, f"{name}b", range(10, 13))
    copies = []
    for cluster, topic in (("first", name), ("second", f"{name}b")):
        config = file_sink(name, tmp_path / cluster, topics=topic, **{"keelman.park.after.ms": "-1"})
        copies.append(runs(ticket(bootstrap, config, worker_config={"group.id": cluster})))
        copies[-1].until_records(3)
    produce(bootstrap, name, range(3, 6))
    copies[0].until_records(6)
    for copy in copies:
        copy.drain()
    taken = [[int(line) for line in (tmp_path / cluster).read_text().split()] for cluster in ("first", "second")]
    assert taken == [list(range(6)), [10, 11, 12]]


def test_a_sink_that_comes_back_with_another_topic_reads_that_one(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    produce(bootstrap, name, range(3))
    produce(bootstrap, f"{name}b", range(10, 13))
    runs(ticket(bootstrap, file_sink(name, tmp_path / "taken"))).copied(3)
    produce(bootstrap, name, range(3, 6))
    runs(ticket(bootstrap, file_sink(name, tmp_path / "taken", topics=f"{name}b"))).copied(3)
    assert [int(line) for line in (tmp_path / "taken").read_text().split()] == [0, 1, 2, 10, 11, 12]

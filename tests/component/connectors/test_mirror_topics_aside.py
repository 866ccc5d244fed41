"""A mirror whose target rejects one of its topics continues with the others, and retries that one."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
)

from keelman.api.copy.v1 import ticket_pb2
from keelman.connectors.mirror.source import ASSIGNED, MirrorSource
from keelman.engine import topics_aside
from keelman.engine.records import size
from support.brokers.secure_broker import SecureBroker
from support.copying.harness import (
    OFFSET_PARTITIONS,
    OFFSET_TOPIC,
    Run,
    copied_to_the_end,
    dies_at,
    hosted,
    latest,
    ticket,
)
from support.kafka.limited_user import allow_all, allow_only, limited
from support.kafka.topics import create_topic, messages
from support.waiting import until

pytestmark = pytest.mark.component


def mirror(bootstrap: str, name: str, *topics: str, **more: str) -> dict[str, str]:
    """A mirror of these topics, whose copies are `<name>.<topic>`."""
    return {
        "name": f"{name}-connector",
        "connector.class": "MirrorSource",
        "source.cluster.alias": name,
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "topics": ",".join(topics),
        "emit.offset-syncs.enabled": "false",
        "replication.factor": "1",
        "keelman.commit.interval.ms": "50",
        **more,
    }


def write(
    bootstrap: str, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None, **settings: object
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 8_000_000, **settings})
    for value in values:
        producer.produce(topic, value, key, partition=partition)
    assert producer.flush(300) == 0


def values(bootstrap: str, topic: str) -> list[bytes | None]:
    return [m.value() for m in messages(bootstrap, topic)]


def tasks(config: dict[str, str]) -> dict[str, str]:
    return {**config, **MirrorSource.task_configs(config, 1)[0]}


def alter(bootstrap: str, topic: str, **settings: str) -> None:
    change = AlterConfigOpType.SET
    entries = [ConfigEntry(k.replace("_", "."), v, incremental_operation=change) for k, v in settings.items()]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(300)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic set aside is retried within half a second, and not within a minute."""
    monkeypatch.setattr(topics_aside, "FIRST_SECONDS", 0.1)
    monkeypatch.setattr(topics_aside, "MOST_SECONDS", 0.5)
    monkeypatch.setattr(size, "AGAIN_SECONDS", 0.1)


def set_aside(topic: str) -> Callable[..., bool]:
    return lambda update: dict(update.progress.set_aside) == {topic: 1}


def test_a_topic_whose_copy_cannot_be_made_waits_by_name(bootstrap: str, name: str, runs: Callable[..., Run]) -> None:
    good, bad = name, f"{name}-".ljust(245, "x")  # its copy's name would be longer than a topic's may be
    for topic in (good, bad):
        create_topic(bootstrap, topic, 1)
    write(bootstrap, bad, b"bad 1", b"bad 2")
    write(bootstrap, good, b"good 1")
    config = tasks(mirror(bootstrap, name, good, bad))
    assert config[ASSIGNED].count(",") == 1
    run = runs(ticket(bootstrap, config))
    update = run.until(set_aside(bad))
    assert update.message.startswith(f"topic {bad} is set aside: Unable to create topic")
    for number in range(2, 5):
        write(bootstrap, good, b"good %d" % number)
    run.until_records(4)
    assert values(bootstrap, f"{name}.{good}") == [b"good %d" % n for n in range(1, 5)]
    ended = run.drain()
    assert not [key for key in ended.progress.offsets if bad in key], "nothing of it is passed over"
    short = {**config, "transforms": "r", "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter"}
    short |= {"transforms.r.regex": "(.{200}).*", "transforms.r.replacement": "$1"}
    runs(ticket(bootstrap, short)).copied(2)
    assert values(bootstrap, f"{name}.{bad}"[:200]) == [b"bad 1", b"bad 2"]


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_a_record_that_is_too_large_for_its_copy_waits_by_name_and_comes_back(
    bootstrap: str, name: str, runs: Callable[..., Run], compression: str
) -> None:
    good, bad = f"{name}-good", f"{name}-bad"
    for topic in (good, bad, f"{name}.{bad}"):
        create_topic(bootstrap, topic, 1)
    alter(bootstrap, f"{name}.{bad}", max_message_bytes="2000")
    big = random.Random(7).randbytes(10_000)  # which no codec makes smaller
    write(bootstrap, bad, b"before", big, b"behind", **{"compression.type": compression})
    write(bootstrap, good, b"good 1")
    run = runs(ticket(bootstrap, tasks(mirror(bootstrap, name, good, bad, **{"sync.topic.configs.enabled": "false"}))))
    update = run.until(set_aside(bad))
    assert "larger than" in update.message
    write(bootstrap, good, b"good 2")
    until(lambda: values(bootstrap, f"{name}.{good}") == [b"good 1", b"good 2"], "the good one goes on")
    alter(bootstrap, f"{name}.{bad}", max_message_bytes="1000000")
    run.until(lambda u: u.progress.records >= 5 and not u.progress.set_aside)
    assert values(bootstrap, f"{name}.{bad}") == [b"before", big, b"behind"]
    run.drain()


def test_what_was_set_aside_comes_whole_and_once_through_kills(bootstrap: str, name: str, tmp_path: Path) -> None:
    good, bad = f"{name}-good", f"{name}-bad"
    for topic in (good, bad, f"{name}.{bad}"):
        create_topic(bootstrap, topic, 1)
    alter(bootstrap, f"{name}.{bad}", max_message_bytes="2000")
    small = [b"%040d" % number for number in range(2_000)]
    big = random.Random(7).randbytes(10_000)
    write(bootstrap, bad, *small[:1000], big, *small[1000:])
    write(bootstrap, good, *small)
    config = tasks(mirror(bootstrap, name, good, bad, **{"sync.topic.configs.enabled": "false"}))
    log = tmp_path / "log"
    dies_at(bootstrap, config, log, ("record in an open transaction", 1))
    dies_at(bootstrap, config, log, ("offsets in an open transaction", 1))
    write(bootstrap, good, b"more")
    with hosted(bootstrap, config, log) as process:
        until(lambda: values(bootstrap, f"{name}.{good}") == [*small, b"more"], "the good one is copied")
        until(lambda: "is set aside" in latest(log).get("message", ""), "the bad one is named")
        process.kill()
    alter(bootstrap, f"{name}.{bad}", max_message_bytes="1000000")
    dies_at(bootstrap, config, log, ("transaction committed", 1))
    copied_to_the_end(bootstrap, config, tmp_path / "end")
    assert values(bootstrap, f"{name}.{good}") == [*small, b"more"]
    assert values(bootstrap, f"{name}.{bad}") == [*small[:1000], big, *small[1000:]]


@pytest.mark.parametrize("delivery", ["EXACTLY_ONCE", "AT_LEAST_ONCE"])
def test_a_copy_with_fewer_partitions_waits_by_name_until_it_has_grown(
    bootstrap: str, name: str, runs: Callable[..., Run], delivery: str
) -> None:
    good, bad = f"{name}-good", f"{name}-bad"
    create_topic(bootstrap, good, 1)
    create_topic(bootstrap, bad, 2)
    create_topic(bootstrap, f"{name}.{bad}", 1)
    write(bootstrap, bad, b"bad", partition=1)
    write(bootstrap, good, b"good")
    of = {"delivery": ticket_pb2.DeliveryGuarantee.Value(f"DELIVERY_GUARANTEE_{delivery}")}
    run = runs(ticket(bootstrap, tasks(mirror(bootstrap, name, good, bad)), **of))
    update = run.until(lambda u: dict(u.progress.set_aside) == {bad: 2})
    assert f"topic {name}.{bad} has 1 partitions, and a record names partition 1" in update.message
    until(lambda: values(bootstrap, f"{name}.{good}") == [b"good"], "the good one is copied")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(f"{name}.{bad}", 2)])[f"{name}.{bad}"].result(300)
    run.until(lambda u: u.progress.records >= 2 and not u.progress.set_aside)
    assert values(bootstrap, f"{name}.{bad}") == [b"bad"]
    run.drain()


@pytest.fixture(scope="module")
def open_bootstrap(broker: SecureBroker) -> str:
    """The listener without access rules, at a broker with access rules; a topic for offsets exists there."""
    bootstrap = broker.at("PLAINTEXT")
    create_topic(bootstrap, OFFSET_TOPIC, OFFSET_PARTITIONS, **{"cleanup.policy": "compact"})
    return bootstrap


def test_a_copy_that_may_not_be_written_waits_by_name_until_it_may(
    broker: SecureBroker, open_bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    good, bad = f"{name}-good", f"{name}-bad"
    for topic in (good, bad, f"{name}.{bad}"):
        create_topic(open_bootstrap, topic, 1)
    allow_only(open_bootstrap, f"{name}.{bad}", AclOperation.DESCRIBE)
    write(open_bootstrap, bad, b"bad")
    write(open_bootstrap, good, b"good")
    producer = {f"producer.override.{key}": value for key, value in limited(broker).items()}
    run = runs(ticket(open_bootstrap, tasks(mirror(open_bootstrap, name, good, bad, **producer))))
    update = run.until(set_aside(bad))
    assert "TOPIC_AUTHORIZATION_FAILED" in update.message
    until(lambda: values(open_bootstrap, f"{name}.{good}") == [b"good"], "the good one is copied")
    allow_all(open_bootstrap, f"{name}.{bad}")
    run.until(lambda u: u.progress.records >= 2 and not u.progress.set_aside)
    assert values(open_bootstrap, f"{name}.{bad}") == [b"bad"]
    run.drain()


def source_as_limited_user(broker: SecureBroker) -> dict[str, str]:
    return {f"source.cluster.{key}": value for key, value in limited(broker).items()}


READ_REFUSED = (AclOperation.DESCRIBE, "TOPIC_AUTHORIZATION_FAILED")
DESCRIBE_REFUSED = (AclOperation.ALTER_CONFIGS, "may not be read")


@pytest.mark.parametrize("rule", [READ_REFUSED, DESCRIBE_REFUSED], ids=["read", "describe"])
def test_a_topic_that_may_not_be_read_waits_by_name_until_it_may(
    broker: SecureBroker, open_bootstrap: str, runs: Callable[..., Run], rule: tuple[AclOperation, str], name: str
) -> None:
    allowed, says = rule
    good, bad = f"{name}-good", f"{name}-bad"
    create_topic(open_bootstrap, good, 1)
    create_topic(open_bootstrap, bad, 2)
    write(open_bootstrap, bad, b"bad")
    write(open_bootstrap, good, b"good 1")
    config = tasks(mirror(open_bootstrap, name, good, bad, **source_as_limited_user(broker)))
    allow_only(open_bootstrap, bad, allowed)
    run = runs(ticket(open_bootstrap, config))
    update = run.until(lambda u: dict(u.progress.set_aside) == {bad: 2})
    assert f"topic {bad} is set aside" in update.message
    assert says in update.message
    write(open_bootstrap, good, b"good 2")
    until(lambda: values(open_bootstrap, f"{name}.{good}") == [b"good 1", b"good 2"], "the good one is copied")
    allow_all(open_bootstrap, bad)
    run.until(lambda u: u.progress.records >= 3 and not u.progress.set_aside)
    assert values(open_bootstrap, f"{name}.{bad}") == [b"bad"]
    run.drain()


def test_a_topic_whose_configuration_may_not_be_known_waits_by_name_until_it_may(
    broker: SecureBroker, open_bootstrap: str, runs: Callable[..., Run], name: str
) -> None:
    """Its copy is not created without the configuration."""
    good, bad = f"{name}-good", f"{name}-bad"
    create_topic(open_bootstrap, good, 1)
    create_topic(open_bootstrap, bad, 1, **{"cleanup.policy": "compact"})
    write(open_bootstrap, bad, b"bad", key=b"k")
    write(open_bootstrap, good, b"good")
    config = tasks(mirror(open_bootstrap, name, good, bad, **source_as_limited_user(broker)))
    allow_only(open_bootstrap, bad, AclOperation.READ)
    MirrorSource.tend(config)  # it creates the other's copy
    run = runs(ticket(open_bootstrap, config))
    update = run.until(set_aside(bad))
    assert f"DESCRIBE_CONFIGS on {bad}" in update.message
    until(lambda: values(open_bootstrap, f"{name}.{good}") == [b"good"], "the good one is copied")
    allow_all(open_bootstrap, bad)
    run.until(lambda u: u.progress.records >= 2 and not u.progress.set_aside)
    assert values(open_bootstrap, f"{name}.{bad}") == [b"bad"]
    run.drain()


def test_a_topic_that_may_be_read_no_more_is_taken_up_where_it_was_left(
    broker: SecureBroker, open_bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    good, bad = f"{name}-good", f"{name}-bad"
    for topic in (good, bad):
        create_topic(open_bootstrap, topic, 1)
        write(open_bootstrap, topic, b"1")
    run = runs(ticket(open_bootstrap, tasks(mirror(open_bootstrap, name, good, bad, **source_as_limited_user(broker)))))
    run.until_records(2)
    allow_only(open_bootstrap, bad, AclOperation.DESCRIBE)
    run.until(set_aside(bad))
    for topic in (good, bad):
        write(open_bootstrap, topic, b"2")
    run.until_records(3)
    allow_all(open_bootstrap, bad)
    run.until(lambda u: u.progress.records >= 4 and not u.progress.set_aside)
    assert values(open_bootstrap, f"{name}.{bad}") == values(open_bootstrap, f"{name}.{good}") == [b"1", b"2"]
    allow_only(open_bootstrap, good, AclOperation.DESCRIBE)
    allow_only(open_bootstrap, bad, AclOperation.DESCRIBE)
    failed = run.until_state("FAILED")  # there is nothing more to copy
    assert (failed.reason, failed.retriable) == ("NOT_ALLOWED", False)


def test_a_topic_that_its_source_deletes_keeps_nothing_of_the_others(
    bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    good, gone = f"{name}-good", f"{name}-gone"
    for topic in (good, gone):
        create_topic(bootstrap, topic, 1)
        write(bootstrap, topic, b"one")
    run = runs(ticket(bootstrap, tasks(mirror(bootstrap, name, good, gone, f"{name}-never"))))
    run.until_records(2)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([gone])[gone].result(300)
    write(bootstrap, good, b"two")
    run.until_records(3)
    run.until(lambda u: gone in u.message)
    assert values(bootstrap, f"{name}.{good}") == [b"one", b"two"]
    run.drain()


def test_a_task_whose_only_topic_is_refused_fails_as_ever(bootstrap: str, name: str, runs: Callable[..., Run]) -> None:
    bad = f"{name}-".ljust(245, "x")
    create_topic(bootstrap, bad, 1)
    write(bootstrap, bad, b"bad")
    failed = runs(ticket(bootstrap, tasks(mirror(bootstrap, name, bad)))).until_state("FAILED")
    assert (failed.reason, failed.retriable) == ("TASK_FAILED", False)
    assert "Unable to create topic" in failed.message

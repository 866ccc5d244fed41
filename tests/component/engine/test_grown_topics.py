"""Kafka sinks whose target lacks their topics or partitions: topics that grow, and those that cannot."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, NewPartitions

from keelman.api.copy.v1 import ticket_pb2
from support.brokers.secure_broker import SecureBroker
from support.copying.harness import Run, ticket
from support.kafka.limited_user import allow_all, allow_only, limited
from support.kafka.topics import create_topic, messages
from support.waiting import until

pytestmark = pytest.mark.component


def sink(name: str, **more: str) -> dict[str, str]:
    soon = {"consumer.override.metadata.max.age.ms": "500", "keelman.commit.interval.ms": "100"}
    return {
        "name": f"{name}-out",
        "connector.class": "KafkaSink",
        "topics": name,
        "topic": "to-${topic}",
        **soon,
        **more,
    }


def write(bootstrap: str, topic: str, partition: int, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(300) == 0


def grow(bootstrap: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(300)
    until(lambda: len(admin.list_topics(topic, 60).topics[topic].partitions) == partitions, f"{topic} has grown")


def copied(bootstrap: str, topic: str) -> dict[int, list[bytes | None]]:
    answer: dict[int, list[bytes | None]] = {}
    for message in messages(bootstrap, topic):
        answer.setdefault(message.partition(), []).append(message.value())
    return answer


def committed(bootstrap: str, group: str, topic: str) -> int:
    """The group's offset; negative if there is none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        return consumer.committed([TopicPartition(topic, 0)], 30)[0].offset
    finally:
        consumer.close()


def test_a_target_grows_with_its_topic(bootstrap: str, name: str, runs: Callable[..., Run]) -> None:
    create_topic(bootstrap, name, 1)
    write(bootstrap, name, 0, b"one")
    run = runs(ticket(bootstrap, sink(name)))
    run.until_records(1)
    grow(bootstrap, name, 3)
    write(bootstrap, name, 2, b"two")
    run.until_records(2)
    assert copied(bootstrap, f"to-{name}") == {0: [b"one"], 2: [b"two"]}
    run.drain()
    grow(bootstrap, name, 4)
    write(bootstrap, name, 3, b"three")
    runs(ticket(bootstrap, sink(name))).copied(1)
    assert copied(bootstrap, f"to-{name}")[3] == [b"three"]


def test_a_partition_that_its_target_cannot_have_waits_by_name_while_the_others_go_on(
    broker: SecureBroker, name: str, runs: Callable[..., Run]
) -> None:
    bootstrap = broker.at("PLAINTEXT")
    create_topic(bootstrap, name, 1)
    create_topic(bootstrap, f"to-{name}", 1)
    allow_only(bootstrap, f"to-{name}", AclOperation.WRITE)
    write(bootstrap, name, 0, b"one")
    config = sink(name, **{f"target.cluster.{key}": value for key, value in limited(broker).items()})
    run = runs(ticket(bootstrap, config))
    run.until_records(1)
    grow(bootstrap, name, 2)
    write(bootstrap, name, 1, b"lost?", b"lost??")
    update = run.until(lambda u: u.progress.set_aside)
    assert dict(update.progress.set_aside) == {name: 1}
    assert update.message.startswith(f"topic {name} is set aside: partition 1: topic to-{name} has 1 partition")
    write(bootstrap, name, 0, b"two")
    until(lambda: copied(bootstrap, f"to-{name}").get(0) == [b"one", b"two"], "the other partition goes on")
    assert run.drain().progress.records == 2
    again = runs(ticket(bootstrap, config))
    again.until(lambda u: u.progress.set_aside)
    grow(bootstrap, f"to-{name}", 2)
    again.until(lambda u: not u.progress.set_aside and u.progress.records >= 2)
    again.drain()
    assert copied(bootstrap, f"to-{name}") == {0: [b"one", b"two"], 1: [b"lost?", b"lost??"]}


@pytest.mark.parametrize("delivery", ["EXACTLY_ONCE", "AT_LEAST_ONCE"])
def test_a_topic_that_cannot_be_made_waits_by_name_while_the_others_go_on(
    bootstrap: str, name: str, runs: Callable[..., Run], delivery: str
) -> None:
    long = name.ljust(248, "x")  # with to- in front of it, longer than topics' names may be
    create_topic(bootstrap, name, 1)
    create_topic(bootstrap, long, 1)
    write(bootstrap, long, 0, b"waits")
    write(bootstrap, name, 0, b"one")
    of = {"delivery": ticket_pb2.DeliveryGuarantee.Value(f"DELIVERY_GUARANTEE_{delivery}")}
    run = runs(ticket(bootstrap, sink(name, topics=f"{name},{long}"), **of))
    update = run.until(lambda u: u.progress.set_aside)
    assert dict(update.progress.set_aside) == {long: 1}
    until(lambda: copied(bootstrap, f"to-{name}") == {0: [b"one"]}, "the other topic is copied")
    run.drain()
    assert committed(bootstrap, f"connect-{name}-out", long) <= 0, "nothing of it is passed over"


def test_a_topic_that_may_not_be_written_waits_by_name_until_it_may(
    broker: SecureBroker, name: str, runs: Callable[..., Run]
) -> None:
    bootstrap, shut = broker.at("PLAINTEXT"), f"{name}-shut"
    for topic in (name, shut, f"to-{shut}"):
        create_topic(bootstrap, topic, 1)
        if not topic.startswith("to-"):
            write(bootstrap, topic, 0, topic.encode())
    allow_only(bootstrap, f"to-{shut}", AclOperation.DESCRIBE)
    target = {f"target.cluster.{key}": value for key, value in limited(broker).items()}
    run = runs(ticket(bootstrap, sink(name, topics=f"{name},{shut}", **target)))
    update = run.until(lambda u: dict(u.progress.set_aside) == {shut: 1})
    assert f"TOPIC_AUTHORIZATION_FAILED: to-{shut}" in update.message
    until(lambda: copied(bootstrap, f"to-{name}") == {0: [name.encode()]}, "the other topic is copied")
    allow_all(bootstrap, f"to-{shut}")
    run.until(lambda u: u.progress.records >= 2 and not u.progress.set_aside)
    assert copied(bootstrap, f"to-{shut}") == {0: [shut.encode()]}
    run.drain()

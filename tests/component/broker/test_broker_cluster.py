"""Three real brokers: leaders move, are lost and come back, a replica freezes, an unclean election cuts a log."""

from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from support.brokers.broker_cluster import BrokerCluster, running_cluster
from support.brokers.cluster_parts import GROUPS
from support.kafka.topics import commit
from support.waiting import until

pytestmark = pytest.mark.component

IN_ORDER, UNCLEAN = "in-order", "unclean"


def write(cluster: BrokerCluster, topic: str, *values: bytes) -> None:
    once = {"acks": "all", "linger.ms": 0, "enable.idempotence": True}  # also if a broker answers too late
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **once})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(300) == 0


def read(cluster: BrokerCluster, topic: str, count: int) -> list[bytes | None]:
    """Reads with a group, so that a coordinator is needed too."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "readers", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        results: list[bytes | None] = []

        def is_read() -> bool:
            results.extend(
                message.value() for message in consumer.consume(count - len(results), 1.0) if message.error() is None
            )
            return len(results) >= count

        until(is_read, f"{count} records of {topic} are read")
    finally:
        consumer.close()
    commit(cluster.bootstrap, "readers", topic, len(results))
    return results


@pytest.mark.slow
async def test_three_brokers_move_lose_and_get_back_their_leaders(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, unclean_leader_election_enable="false") as cluster:
        javas = [psutil.Process(cluster.pid(node)) for node in cluster.brokers]
        await cluster.create(IN_ORDER, [1, 2, 3])
        write(cluster, IN_ORDER, b"one")
        await cluster.elect(IN_ORDER)  # a busy machine may have moved it
        await cluster.led_by(IN_ORDER, 0, 1)
        await cluster.move_leader(IN_ORDER, 0, 2)
        write(cluster, IN_ORDER, b"two")

        await cluster.kill(2)
        await cluster.given_up(2)
        await cluster.led_by(IN_ORDER, 0, 1, 3)
        write(cluster, IN_ORDER, b"three")  # two replicas in sync are enough
        assert read(cluster, IN_ORDER, 3) == [b"one", b"two", b"three"]
        assert await cluster.coordinator_of("readers") in (1, 3)
        await cluster.restart(2)
        await cluster.whole()
        assert len((await cluster.led(GROUPS)).replicas) == 3

        # Broker 1 is frozen and misses the tail, which only 3 has; then 3 is lost.
        await cluster.create(UNCLEAN, [3, 1], min_insync_replicas="1")
        write(cluster, UNCLEAN, b"kept")
        cluster.freeze(1)
        await cluster.in_sync(UNCLEAN, 0, {3})
        write(cluster, UNCLEAN, b"lost")
        for partition in range(await cluster.partitions(GROUPS)):
            await cluster.in_sync(GROUPS, partition, {2, 3})  # or it has no leader without 3
        await cluster.kill(3)
        cluster.thaw(1)
        await cluster.given_up(3)
        await cluster.elect(UNCLEAN, unclean=True)
        await cluster.led_by(UNCLEAN, 0, 1)
        write(cluster, UNCLEAN, b"after")
        assert read(cluster, UNCLEAN, 2) == [b"kept", b"after"]
        await cluster.restart(3)
        await cluster.whole()
        javas += [psutil.Process(cluster.pid(node)) for node in cluster.brokers]
    assert not [java for java in javas if java.is_running()], "nothing of them is left"

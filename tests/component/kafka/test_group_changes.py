"""Committed offsets of a group without members are written again as they are, so that brokers do not forget them."""

import pytest
from confluent_kafka import Consumer, TopicPartition

from keelman.kafka.groups.changes import GroupChanges
from support.copying.harness import create_topic

pytestmark = pytest.mark.component


COMMITS = "__consumer_offsets"


def written(consumer: Consumer) -> int:
    """How much all groups have committed."""
    partitions = consumer.list_topics(COMMITS, timeout=60).topics[COMMITS].partitions
    return sum(consumer.get_watermark_offsets(TopicPartition(COMMITS, n), timeout=60)[1] for n in partitions)


async def test_offsets_are_written_again_as_they_are(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 2)
    changes, nobody = (
        GroupChanges({"bootstrap.servers": bootstrap}, group, client_id="test") for group in (name, f"{name}-nobody")
    )
    await changes.commit({(name, 1): 1})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    try:
        noted = TopicPartition(name, 1, 2, metadata="noted", leader_epoch=3)
        consumer.commit(offsets=[noted], asynchronous=False)
        before = written(consumer)
        assert (await changes.write_again(), await nobody.write_again()) == (1, 0)
        assert written(consumer) > before
        (kept,) = consumer.committed([TopicPartition(name, 1)], timeout=60)
        assert (kept.offset, kept.metadata, kept.leader_epoch) == (2, "noted", 3)
    finally:
        consumer.close()

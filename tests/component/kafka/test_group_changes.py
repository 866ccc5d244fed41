"""Committed offsets of a group without members are written again as they are, so that brokers do not forget them."""

import pytest
from confluent_kafka import Consumer, TopicPartition

from keelman.kafka.groups.changes import GroupChanges
from support.kafka.topics import create_topic, messages

pytestmark = pytest.mark.component


COMMITS = "__consumer_offsets"


def written(bootstrap: str, group: str) -> int:
    """How many offsets a group has committed, by the topic in which brokers keep them: a key is a version, 0 or 1 for
    an offset, then the group's name behind its length."""
    begins = [version.to_bytes(2) + len(group).to_bytes(2) + group.encode() for version in (0, 1)]
    keys = (m.key() for m in messages(bootstrap, COMMITS, "read_uncommitted", stays_open=True) if m.value() is not None)
    return sum(key is not None and key.startswith(tuple(begins)) for key in keys)


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
        before = written(bootstrap, name)
        assert (await changes.write_again(), await nobody.write_again()) == (1, 0)
        assert written(bootstrap, name) == before + 1
        (kept,) = consumer.committed([TopicPartition(name, 1)], timeout=60)
        assert (kept.offset, kept.metadata, kept.leader_epoch) == (2, "noted", 3)
    finally:
        consumer.close()

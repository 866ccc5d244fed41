"""Topics as users inspect them, on a real broker: their sizes, and their last committed records."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from keelman.kafka.broker_client import BrokerClient
from keelman.kafka.browsing import BrowsedTopic, last_records, list_topics
from keelman.model.errors import NotFound, Unavailable
from support.kafka.topics import create_topic

pytestmark = pytest.mark.component


async def test_topics_are_listed_with_their_sizes(bootstrap: str) -> None:
    create_topic(bootstrap, "browsed", 3)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce("browsed", str(number), partition=number % 3)
    producer.flush(300)
    properties = {"bootstrap.servers": bootstrap}
    assert await list_topics(properties, "browsed") == [BrowsedTopic("browsed", 3, 1, 10)]
    names = [topic.name for topic in await list_topics(properties)]
    assert "browsed" in names
    assert names == sorted(names)
    assert not {"__consumer_offsets", "__transaction_state"}.intersection(names)


async def test_the_leaders_of_all_topics_are_asked_for_at_once(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request after another would take minutes for a thousand topics."""
    for number in range(3):
        create_topic(bootstrap, f"browsed-together-{number}")
    one_by_one: list[str] = []
    add = BrokerClient.add_topic

    def noted(client: BrokerClient, topic: str) -> object:
        one_by_one.append(topic)
        return add(client, topic)

    monkeypatch.setattr(BrokerClient, "add_topic", noted)
    assert {f"browsed-together-{n}" for n in range(3)} <= {
        topic.name for topic in await list_topics({"bootstrap.servers": bootstrap})
    }
    assert one_by_one == []


async def test_the_last_records_are_the_last_committed_ones(bootstrap: str) -> None:
    """If markers and aborted records take the last offsets, it looks further back."""
    create_topic(bootstrap, "peeked", 1)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "peeked"})
    producer.init_transactions(30)
    for number in range(4):
        producer.begin_transaction()
        producer.produce("peeked", f"v{number}", f"k{number}", headers=[("n", b"\xff"), ("none", None)])
        producer.commit_transaction(30)
    producer.begin_transaction()
    for _ in range(20):
        producer.produce("peeked", "aborted")
    producer.flush(300)
    producer.abort_transaction(30)
    actual_last_records = await last_records({"bootstrap.servers": bootstrap}, "peeked", 3)
    assert [
        (actual_last_record.key, actual_last_record.value, actual_last_record.offset)
        for actual_last_record in actual_last_records
    ] == [
        (b"k1", b"v1", 2),
        (b"k2", b"v2", 4),
        (b"k3", b"v3", 6),
    ]
    assert actual_last_records[0].headers == (("n", b"\xff"), ("none", None))
    assert len(await last_records({"bootstrap.servers": bootstrap}, "peeked", 100)) == 4


async def test_a_topic_that_is_not_there_is_not_made(bootstrap: str) -> None:
    properties = {"bootstrap.servers": bootstrap}
    for look in (last_records(properties, "nosuch", 1), list_topics(properties, "nosuch")):
        with pytest.raises(NotFound, match="no topic 'nosuch'"):
            await look
    assert "nosuch" not in [topic.name for topic in await list_topics(properties)]


async def test_brokers_that_are_away_are_said_to_be() -> None:
    with pytest.raises(Unavailable, match=r"no broker answers at 127\.0\.0\.1:1"):
        await list_topics({"bootstrap.servers": "127.0.0.1:1"})

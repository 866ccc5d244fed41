"""Commits that go out with the answer to their last batch, by a real broker."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from aiokafka.admin import NewTopic

from keelman.kafka.clients import admin_client
from support.brokers.kafka_proxy import END_TXN, KafkaProxy
from support.kafka.producers import batch, open_producer, transaction_version, visible

pytestmark = pytest.mark.component
NUMBERS = itertools.count()


@pytest.fixture
async def topic(kafka: KafkaProxy) -> str:
    """A topic with two partitions."""
    name = f"early{next(NUMBERS)}"
    async with admin_client({"bootstrap.servers": kafka.address}, client_id="test") as admin:
        await admin.create_topics([NewTopic(name, 2, 1)])
    return name


@pytest.mark.parametrize("version", [2, 0])
async def test_a_commit_goes_out_as_soon_as_all_is_delivered(kafka: KafkaProxy, topic: str, version: int) -> None:
    """Before the caller that waits for the delivery continues.

    With an epoch for each transaction only: otherwise a commit is never repeated.
    """
    allowed: list[int] = []
    older = contextlib.nullcontext() if version == 2 else transaction_version(kafka.address, version)
    async with older, open_producer(kafka.address, f"tx-{topic}") as producer:
        for turn in range(2):
            producer.send(topic, 0, batch(f"a{turn}"), 1)
            producer.send(topic, 1, batch(f"b{turn}"), 1)
            await producer.flush()  # the coordinator's connection is there from the first commit on
            before = kafka.counts.get(END_TXN, 0)
            producer.send(topic, 0, batch(f"c{turn}"), 1)
            producer.ship()
            producer.commit_when_delivered(lambda turn=turn: allowed.append(turn))
            await producer.flush()
            assert producer.is_ending == (version == 2)
            await producer.end(commit=True)
            assert not producer.is_ending
            assert kafka.counts[END_TXN] - before == 1
    assert allowed == ([0, 1] if version == 2 else [])
    assert await visible(kafka.address, topic) == ["a0", "c0", "a1", "c1"]


async def test_a_commit_that_is_not_allowed_any_more_does_not_go_out(kafka: KafkaProxy, topic: str) -> None:
    def cut() -> None:
        raise InterruptedError

    async with open_producer(kafka.address, f"tx-{topic}") as producer:
        producer.send(topic, 0, batch("first"), 1)
        await producer.end(commit=True)
        producer.send(topic, 0, batch("second"), 1)
        producer.ship()
        producer.commit_when_delivered(cut)
        before = kafka.counts.get(END_TXN, 0)
        await producer.flush()
        assert not producer.is_ending
        assert kafka.counts[END_TXN] == before
        await producer.end(commit=False)
        producer.send(topic, 0, batch("third"), 1)
        producer.ship()
        producer.commit_when_delivered(lambda: None)
        await producer.end(commit=False)  # the commit becomes an abort before it was delivered
        producer.send(topic, 0, batch("fourth"), 1)
        await producer.end(commit=True)
    assert await visible(kafka.address, topic) == ["first", "fourth"]

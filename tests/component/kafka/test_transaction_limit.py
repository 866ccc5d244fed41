"""A broker that permits no transaction to stay open for as long as ours by default."""

from collections.abc import AsyncIterator

import pytest

from keelman.engine.failure import judge
from keelman.kafka.batches.producer import ProduceFailure
from keelman.kafka.fencing import fence_all
from keelman.kafka.writer import FencingWriter
from support.brokers.broker import SHORT_LIVED, running_broker
from support.kafka.producers import open_producer, visible
from support.kafka.topics import create_topic

pytestmark = pytest.mark.component
LIMIT_MS = 4_000


@pytest.fixture(scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    flag = f"{SHORT_LIVED[1]},transaction.max.timeout.ms={LIMIT_MS}"
    async with running_broker(tmp_path_factory.mktemp("broker"), flag) as started:
        yield started


async def test_a_transaction_that_is_too_long_is_refused_with_both_lengths(servers: str) -> None:
    with pytest.raises(ProduceFailure) as refused:
        async with open_producer(servers, "long", transaction_timeout_ms=10_000):
            pass
    verdict = judge(refused.value)
    assert (verdict.reason, verdict.retriable) == ("CONFIG_INVALID", False)
    both = f"transaction.timeout.ms=10000 is more than the brokers' transaction.max.timeout.ms={LIMIT_MS}"
    assert verdict.message.startswith(f"INVALID_TRANSACTION_TIMEOUT: {both}: choose a shorter ")


async def test_a_producer_whose_transactions_are_short_is_fenced_there(servers: str) -> None:
    async with open_producer(servers, "short", transaction_timeout_ms=LIMIT_MS) as producer:
        await fence_all({"bootstrap.servers": servers}, ["short"], client_id="leader", seconds=20)
        before = producer.identity.epoch
    async with open_producer(servers, "short", transaction_timeout_ms=LIMIT_MS) as producer:
        assert producer.identity.epoch == before + 2


async def test_the_leader_of_workers_writes_there(servers: str) -> None:
    create_topic(servers, "configs")
    writer = FencingWriter({"bootstrap.servers": servers}, client_id="leader", transactional_id="workers")
    await writer.write("configs", [(b"k", b"v")])
    await writer.close()
    assert await visible(servers, "configs") == ["v"]

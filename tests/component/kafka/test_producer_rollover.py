"""The end of a producer id's epochs: transaction version 2 uses one for each transaction, so it comes every 32,766.

The coordinator then returns a new producer id in the answer to EndTxn (KIP-890):
https://cwiki.apache.org/confluence/display/KAFKA/KIP-890:+Transactions+Server-Side+Defense
"""

from collections.abc import AsyncIterator

import pytest
from aiokafka.admin import NewTopic

from keelman.kafka.clients import admin_client
from support.brokers.broker import BrokerProcess
from support.brokers.kafka_proxy import END_TXN, Fate, KafkaProxy
from support.kafka.producers import LAST_EPOCH as LAST
from support.kafka.producers import batch, open_producer, visible, within, write_epoch

pytestmark = pytest.mark.component
IDS = ("lost", "late")


@pytest.fixture(scope="module")
async def kafka(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[KafkaProxy]:
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"))
    async with KafkaProxy("127.0.0.1", broker.port) as proxy:
        broker.flags = ("--advertised", proxy.address)
        await broker.start()
        try:
            async with admin_client({"bootstrap.servers": proxy.address}, client_id="test") as admin:
                await admin.create_topics([NewTopic(name, 2, 1) for name in IDS])
            for name in IDS:
                await write_epoch(proxy.address, name, LAST - 3)
            await broker.end()
            await broker.start()
            yield proxy
        finally:
            await broker.end()


@pytest.mark.parametrize("name", IDS)
async def test_a_producer_goes_on_with_the_id_after_its_own(kafka: KafkaProxy, name: str) -> None:
    """The answer with the new id is lost; or the request is late, and arrives during the new id's transaction."""
    held = None
    async with open_producer(kafka.address, name, request_timeout_ms=4000) as producer:
        first = producer.identity
        assert first.epoch == LAST - 2
        for number in range(6):
            if crosses := producer.identity.epoch == LAST:
                fate = Fate.LOSE_ANSWER if name == "lost" else Fate.HOLD
                held = kafka.catch(END_TXN, fate, transactional_id=name)
            for partition in (0, 1):
                producer.send(name, partition, batch(f"a{number}", f"b{number}"), 2)
                producer.send(name, partition, batch(f"c{number}"), 1)
            await within(30, producer.flush())
            if held is not None and not crosses:
                held.release()
                await held.answered()
            await within(30, producer.end(commit=number != 4))
            if crosses:
                assert number == 2
                assert (producer.identity.producer_id == first.producer_id, producer.identity.epoch) == (False, 0)
                assert producer.coordinator_losses == 1
        assert producer.identity.epoch == 3
    for partition in (0, 1):
        seen = await visible(kafka.address, name, partition)
        assert seen == [f"{name}{number}" for number in (0, 1, 2, 3, 5) for name in "abc"]

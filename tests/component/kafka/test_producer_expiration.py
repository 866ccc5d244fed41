"""Brokers that forget idle producers: producer.id.expiration.ms, transactional.id.expiration.ms."""

import asyncio
import json
import signal
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import ClassVar

import pytest

from keelman.kafka.clients import low_level_client
from keelman.kafka.wire.fields import NO_TAGS, compact
from keelman.kafka.wire.requests import WireRequest
from support.brokers.broker import BrokerProcess, proxied_broker
from support.brokers.kafka_proxy import PRODUCE, Fate, KafkaProxy
from support.clock import Clock, may_set
from support.copying.harness import OFFSET_PARTITIONS, OFFSET_TOPIC, committed_offsets, hosted
from support.eventually import eventually
from support.kafka.producers import batch, open_producer, transaction_version, visible, within
from support.kafka.topics import create_topic, messages

pytestmark = pytest.mark.component
SOON = (
    "producer.id.expiration.ms=1200,producer.id.expiration.check.interval.ms=100,"
    "transactional.id.expiration.ms=600000,transaction.remove.expired.transaction.cleanup.interval.ms=200"
)


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Clock:
    """The clock of the broker."""
    if not may_set():
        pytest.skip("no C compiler, to set the broker's clock")
    return Clock(tmp_path_factory.mktemp("clock") / "clock")


@pytest.fixture(scope="module")
async def kafka(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> AsyncIterator[KafkaProxy]:
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"), env=clock.env)
    async with proxied_broker(broker.home, broker, "--properties", SOON) as proxy:
        options = {"cleanup.policy": "compact"}
        await asyncio.to_thread(create_topic, proxy.address, OFFSET_TOPIC, OFFSET_PARTITIONS, **options)
        yield proxy


@dataclass(frozen=True)
class DescribeProducers(WireRequest):
    """DescribeProducers 0, of one partition; the answer as raw bytes.

    https://github.com/apache/kafka/blob/4.3/clients/src/main/resources/common/message/DescribeProducersResponse.json
    """

    API_KEY: ClassVar[int] = 61
    API_VERSION: ClassVar[int] = 0
    topic: str

    def encode(self) -> bytes:
        return b"\2" + compact(self.topic) + b"\2" + struct.pack(">i", 0) + NO_TAGS + NO_TAGS

    class RESPONSE_TYPE:
        @classmethod
        def decode(cls, data: BytesIO) -> bytes:
            return data.read()


async def forgotten(servers: str, topic: str) -> None:
    """Waits until partition 0 has no known producers: an empty list precedes the tags of three levels."""
    async with low_level_client({"bootstrap.servers": servers}, client_id="test", timeout_ms=30_000) as client:

        async def empty() -> bool:
            answer: bytes = await client.send(client.get_random_node(), DescribeProducers(topic))
            return answer.endswith(b"\1" + 3 * NO_TAGS)

        assert not await empty()
        await eventually(empty, what="the producer is forgotten")


@pytest.mark.parametrize("level", [None, 0, 2])
async def test_a_batch_that_is_lost_after_a_pause_is_not_left_out(
    kafka: KafkaProxy, name: str, level: int | None
) -> None:
    """A broker without state of a producer accepts any sequence number as its first."""
    await asyncio.to_thread(create_topic, kafka.address, name)
    async with transaction_version(kafka.address, 2 if level is None else level):
        transactional_id = None if level is None else f"tx-{name}"
        async with open_producer(kafka.address, transactional_id, request_timeout_ms=2000) as producer:
            for value in ("a", "b"):
                producer.send(name, 0, batch(value), 1)
                await producer.flush()
            await producer.end(commit=True)
            await forgotten(kafka.address, name)
            lost = kafka.catch(PRODUCE, Fate.DROP, client_id="producer")
            for value in ("c", "d", "e"):
                producer.send(name, 0, batch(value), 1)
                await asyncio.sleep(0)
            await within(30, producer.flush())
            await producer.end(commit=True)
            await lost.seen()
    assert await visible(kafka.address, name) == ["a", "b", "c", "d", "e"]


async def test_a_source_that_was_idle_for_long_goes_on(
    kafka: KafkaProxy, clock: Clock, name: str, tmp_path: Path
) -> None:
    """The broker deletes the state of its transactional id too: the run fails, and the next one fences again."""
    path, log = tmp_path / "given", tmp_path / "log"
    path.write_bytes(b"a\nb\n")
    await asyncio.to_thread(create_topic, kafka.address, name)
    config = {"name": f"{name}-in", "connector.class": "FileStreamSource", "file": str(path), "topic": name}
    config |= {"keelman.park.after.ms": "600000"}

    async def committed(position: int) -> None:
        def reached() -> bool:
            offsets = dict(committed_offsets(kafka.address, OFFSET_TOPIC, config["name"])).values()
            return position in [json.loads(offset)["position"] for offset in offsets]

        await eventually(lambda: asyncio.to_thread(reached), what=f"{position} is committed")

    def removed() -> bool:
        records = messages(kafka.address, "__transaction_state", "read_uncommitted")
        return any(message.value() is None and config["name"].encode() in message.key() for message in records)

    with hosted(kafka.address, config, log) as process:
        await committed(4)
        clock.set(700)
        await eventually(lambda: asyncio.to_thread(removed), what="the transactional id is removed")
        with path.open("ab") as file:
            file.write(b"c\n")
        await committed(6)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 300) == 0, log.read_text()[-4000:]
    assert "INVALID_PRODUCER_ID_MAPPING" in log.read_text()
    assert await visible(kafka.address, name) == ["a", "b", "c"]

"""The proxies have their configured effects, shown with real clients and a real broker."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import pytest
from aiokafka.admin import NewTopic
from confluent_kafka import Consumer, Producer, TopicPartition

from keelman.kafka.clients import admin_client
from keelman.runtime.processes.ports import free_ports
from support.brokers.kafka_proxy import END_TXN, PRODUCE, Fate, KafkaProxy, of_client
from support.eventually import eventually
from support.proxy import CLEAR, Proxy, Weather

pytestmark = pytest.mark.component
NUMBERS = itertools.count()
T = TypeVar("T")


@pytest.fixture
async def topic(kafka: KafkaProxy) -> str:
    name = f"topic{next(NUMBERS)}"
    async with admin_client({"bootstrap.servers": kafka.address}, client_id="test") as admin:
        await admin.create_topics([NewTopic(name, 1, 1)])
    return name


async def aside(work: Callable[[], T]) -> T:
    """Runs a client's blocking call in a thread: the proxy runs in this loop."""
    return await asyncio.to_thread(work)


def producer(kafka: KafkaProxy, name: str, **more: Any) -> Producer:
    settings = {"bootstrap.servers": kafka.address, "client.id": name, "linger.ms": 0, **more}
    return Producer({**settings, "error_cb": lambda _: None})


def visible(kafka: KafkaProxy, topic: str) -> list[bytes]:
    """All values up to the last stable offset."""
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "look", "client.id": "look"})
    partition = TopicPartition(topic, 0, 0)
    consumer.assign([partition])
    _, end = consumer.get_watermark_offsets(partition, timeout=300)
    actual_visible: list[bytes] = []
    deadline = time.monotonic() + 300
    while consumer.position([partition])[0].offset < end:
        assert time.monotonic() < deadline, f"{topic} was not read to {end}"
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            actual_visible.append(message.value())
        elif message is None and end <= 0:
            break
    consumer.close()
    return actual_visible


async def committed(made_producer: Producer) -> None:
    await aside(lambda: made_producer.commit_transaction(40))


async def test_an_endtxn_that_comes_late_ends_the_next_transaction_of_a_careless_client(
    kafka: KafkaProxy, topic: str
) -> None:
    made_producer = producer(kafka, "late", **{"transactional.id": topic, "socket.timeout.ms": 1000})
    await aside(lambda: made_producer.init_transactions(30))
    held = kafka.catch(END_TXN, transactional_id=topic)
    made_producer.begin_transaction()
    made_producer.produce(topic, b"first")
    await committed(made_producer)  # gave the held one up and repeated it on a new connection
    assert held.answer is None
    made_producer.begin_transaction()
    made_producer.produce(topic, b"second")
    assert await aside(lambda: made_producer.flush(300)) == 0
    assert await aside(lambda: visible(kafka, topic)) == [b"first"]
    held.release()
    assert (await held.answered())[-2:] == b"\0\0", "the broker took it for one of the second transaction"
    await eventually(
        lambda: aside(lambda: b"second" in visible(kafka, topic)), what="the second transaction is committed"
    )


async def test_an_unknown_answer_to_a_commit_is_asked_for_again(kafka: KafkaProxy, topic: str) -> None:
    made_producer = producer(kafka, "unsure", **{"transactional.id": topic})
    await aside(lambda: made_producer.init_transactions(30))
    lost = kafka.catch(END_TXN, Fate.LOSE_ANSWER, transactional_id=topic)
    made_producer.begin_transaction()
    made_producer.produce(topic, b"once")
    await committed(made_producer)
    assert (await lost.answered())[-2:] == b"\0\0"
    # A commit is answered before its marker is written.
    await eventually(lambda: aside(lambda: bool(visible(kafka, topic))), what="it is committed")
    assert await aside(lambda: visible(kafka, topic)) == [b"once"]


@pytest.mark.parametrize("fate", [Fate.DROP, Fate.CUT, Fate.RESET, Fate.LOSE_ANSWER])
async def test_records_arrive_once_through_a_produce_that_is_lost(kafka: KafkaProxy, topic: str, fate: Fate) -> None:
    made_producer = producer(kafka, "idem", **{"enable.idempotence": True, "socket.timeout.ms": 1000})
    caught = kafka.catch(PRODUCE, fate, client_id="idem", nth=2)
    for number in range(5):
        made_producer.produce(topic, b"%d" % number)
        assert await aside(lambda: made_producer.flush(300)) == 0
    assert (await caught.seen()).api_key == PRODUCE
    assert await aside(lambda: visible(kafka, topic)) == [b"0", b"1", b"2", b"3", b"4"]


async def test_only_the_chosen_clients_are_frozen(kafka: KafkaProxy, topic: str) -> None:
    slow, fast = producer(kafka, "slow"), producer(kafka, "fast")
    for item in (slow, fast):
        item.produce(topic, b"before")
        assert await aside(lambda made=item: made.flush(300)) == 0
    kafka.affects, kafka.weather = of_client("slow"), Weather(frozen=True)
    try:
        slow.produce(topic, b"slow")
        fast.produce(topic, b"fast")
        assert await aside(lambda: fast.flush(300)) == 0
        assert len(slow) == 1
    finally:
        kafka.weather = CLEAR
    assert await aside(lambda: slow.flush(300)) == 0
    assert kafka.reset(of_client("slow")) > 0


@contextlib.asynccontextmanager
async def echo() -> AsyncIterator[Proxy]:
    """A proxy before a server that returns its input."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, Proxy("127.0.0.1", server.sockets[0].getsockname()[1]) as proxy:
        yield proxy


async def test_a_link_is_slowed_frozen_cut_reset_and_refused() -> None:
    async with echo() as proxy:
        reader, writer = await asyncio.open_connection(proxy.host, proxy.port)

        async def there_and_back(size: int = 5) -> float:
            begun = time.monotonic()
            writer.write(b"x" * size)
            assert len(await reader.readexactly(size)) == size
            return time.monotonic() - begun

        await there_and_back()
        proxy.weather = Weather(delay_seconds=0.2)
        assert await there_and_back() >= 0.4
        proxy.weather = Weather(bytes_per_second=100_000)
        assert await there_and_back(40_000) >= 0.8
        proxy.weather = Weather(frozen=True)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(there_and_back(), 0.3)
        proxy.weather = CLEAR
        assert await reader.readexactly(5) == b"xxxxx"
        assert proxy.cut() == 1
        assert await reader.read() == b""
        writer.close()
        reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
        await there_and_back()
        assert proxy.reset() == 1
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
        writer.close()
        proxy.refusing = True
        reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
        await eventually(lambda: not proxy.tunnels, what="no connection is left")


async def test_a_server_that_is_not_there_yet_is_found_later() -> None:
    (port,) = free_ports(1)
    async with Proxy("127.0.0.1", port) as proxy:
        reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
        with pytest.raises((OSError, EOFError)):
            await reader.readexactly(1)
        writer.close()

        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello")
            writer.close()

        async with await asyncio.start_server(greet, "127.0.0.1", port):
            reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
            assert await reader.readexactly(5) == b"hello"
            writer.close()

"""The producer of finished record batches, and a real broker behind a proxy that loses and holds chosen requests."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import pytest
from aiokafka.admin import NewTopic
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from keelman.kafka import writer as writers
from keelman.kafka.batches.producer import BatchProducer, ProduceFailure
from keelman.kafka.batches.record_batch import encode
from keelman.kafka.clients import admin_client
from keelman.kafka.writer import FencingWriter
from keelman.model.errors import Unavailable
from support.brokers.kafka_proxy import ADD_PARTITIONS_TO_TXN, END_TXN, PRODUCE, Fate, KafkaProxy, of_client
from support.kafka.producers import batch, numbered, open_producer, transaction_version, visible, within

pytestmark = pytest.mark.component
NUMBERS = itertools.count()
Open = Callable[..., AbstractAsyncContextManager[BatchProducer]]


@pytest.fixture
async def topic(kafka: KafkaProxy) -> str:
    """A topic with two partitions."""
    name = f"topic{next(NUMBERS)}"
    async with admin_client({"bootstrap.servers": kafka.address}, client_id="test") as admin:
        await admin.create_topics([NewTopic(name, 2, 1)])
    return name


@pytest.fixture(params=[2, 0])
async def version(request: pytest.FixtureRequest, kafka: KafkaProxy) -> AsyncIterator[int]:
    """Transaction versions with and without an epoch for each transaction."""
    if request.param == 2:
        yield 2
        return
    async with transaction_version(kafka.address, request.param):
        yield request.param


@pytest.fixture
def opened(kafka: KafkaProxy) -> Open:
    """Makes producers that have fenced."""
    return partial(open_producer, kafka.address)


async def test_only_what_is_committed_is_seen_in_all_partitions_and_topics(
    kafka: KafkaProxy, topic: str, opened: Open, version: int
) -> None:
    other = f"{topic}-other"
    async with admin_client({"bootstrap.servers": kafka.address}, client_id="test") as admin:
        await admin.create_topics([NewTopic(other, 1, 1)])
    numbers: list[int] = []
    async with opened(f"tx-{topic}") as producer:
        assert producer.transaction_version == version
        assert await producer.partitions(topic) == 2
        assert await producer.partitions(f"no-{topic}") == 0
        assert await producer.cluster_id()
        await producer.end(commit=True)
        for turn, commit in enumerate([True, False, True, True]):
            producer.send(topic, 0, batch(f"a{turn}", f"b{turn}"), 2, numbers.append)
            producer.send(topic, 1, batch(f"c{turn}"), 1)
            producer.send(other, 0, batch(f"d{turn}"), 1)
            producer.send(topic, 0, batch(f"e{turn}"), 1, numbers.append)
            if not commit:
                await producer.flush()  # otherwise nothing of it would be sent yet
            await producer.end(commit=commit)
        producer.send(topic, 1, batch("never"), 1)
        await producer.end(commit=False)
    assert await visible(kafka.address, topic) == [f"{name}{turn}" for turn in (0, 2, 3) for name in "abe"]
    assert await visible(kafka.address, topic, 1) == ["c0", "c2", "c3"]
    assert await visible(kafka.address, other) == ["d0", "d2", "d3"]
    assert numbers == [0, 2, 4, 6, 8, 10, 12, 14]  # each end left a marker


async def test_what_is_sent_without_a_pause_goes_out_together(kafka: KafkaProxy, topic: str, opened: Open) -> None:
    async with opened() as producer:
        for partition in (0, 1):  # a partition's very first batch goes alone
            producer.send(topic, partition, batch("first"), 1)
        await producer.flush()
        before = kafka.counts[PRODUCE]
        for number in range(3):
            for partition in (0, 1):
                producer.send(topic, partition, batch(str(number)), 1)
        await producer.flush()
        assert kafka.counts[PRODUCE] - before == 3
    assert await visible(kafka.address, topic, 1) == ["first", "0", "1", "2"]


async def test_two_producers_without_transactions_keep_their_orders(
    kafka: KafkaProxy, topic: str, opened: Open
) -> None:
    async with opened() as failure, opened() as two:
        for number in range(50):
            failure.send(topic, 0, batch(f"one{number}"), 1)
            two.send(topic, 0, batch(f"two{number}"), 1)
            if number % 10 == 0:
                await failure.room()
        await failure.flush()
        await two.flush()
        await failure.end(commit=True)
    actual_visible = await visible(kafka.address, topic)
    assert len(actual_visible) == 100
    for name in ("one", "two"):
        assert [value for value in actual_visible if value.startswith(name)] == numbered(name, 50)


async def test_a_producer_that_is_not_idempotent_delivers_too(kafka: KafkaProxy, topic: str, opened: Open) -> None:
    async with opened(acks=1) as producer:
        for value in numbered("n", 20):
            producer.send(topic, 0, batch(value), 1)
        await producer.flush()
    assert await visible(kafka.address, topic) == numbered("n", 20)


@pytest.mark.parametrize("fate", [Fate.LOSE_ANSWER, Fate.CUT, Fate.RESET, Fate.DROP])
async def test_batches_arrive_once_and_in_order_through_a_request_that_is_lost(
    kafka: KafkaProxy, topic: str, opened: Open, fate: Fate
) -> None:
    async with opened(f"tx-{topic}", request_timeout_ms=2000) as producer:
        lost = [kafka.catch(PRODUCE, fate, client_id="producer", nth=nth) for nth in (1, 4, 6)]
        for number in range(40):
            producer.send(topic, number % 2, batch(f"n{number}"), 1)
            if number % 4 == 3:
                await asyncio.sleep(0)
        await within(60, producer.end(commit=True))
        for record_batch in lost:
            await record_batch.seen()
    for partition in (0, 1):
        assert await visible(kafka.address, topic, partition) == numbered("n", 40)[partition::2]


async def test_a_commit_whose_answer_is_lost(kafka: KafkaProxy, topic: str, opened: Open, version: int) -> None:
    async with opened(f"tx-{topic}") as producer:
        producer.send(topic, 0, batch("first"), 1)
        lost = kafka.catch(END_TXN, Fate.LOSE_ANSWER, transactional_id=f"tx-{topic}")
        if version == 2:
            await within(60, producer.end(commit=True))
            producer.send(topic, 0, batch("second"), 1)
            await within(60, producer.end(commit=True))
        else:
            with pytest.raises(ProduceFailure, match="NETWORK"):
                await producer.end(commit=True)
        assert lost.answer is not None
        assert producer.coordinator_losses == 1
    assert await visible(kafka.address, topic) == (["first", "second"] if version == 2 else ["first"])


async def test_a_commit_that_comes_late_does_not_touch_the_next_transaction(
    kafka: KafkaProxy, topic: str, opened: Open
) -> None:
    async with opened(f"tx-{topic}", request_timeout_ms=4000) as producer:
        producer.send(topic, 0, batch("first"), 1)
        held = kafka.catch(END_TXN, Fate.HOLD, transactional_id=f"tx-{topic}")
        await within(60, producer.end(commit=True))
        producer.send(topic, 0, batch("aborted"), 1)
        await within(60, producer.flush())
        held.release()
        await held.answered()
        await within(60, producer.end(commit=False))
        producer.send(topic, 0, batch("second"), 1)
        await within(60, producer.end(commit=True))
        assert producer.coordinator_losses > 0
    assert await visible(kafka.address, topic) == ["first", "second"]


@asynccontextmanager
async def unwritable_transaction_state(servers: str) -> AsyncIterator[None]:
    """The coordinator cannot write its log and answers UNKNOWN_SERVER_ERROR: none of its batches is small enough.

    https://github.com/apache/kafka/blob/4.3/core/src/main/scala/kafka/coordinator/transaction/TransactionStateManager.scala
    """

    def alter(how: AlterConfigOpType, value: str | None) -> None:
        entry = ConfigEntry("max.message.bytes", value, incremental_operation=how)
        resource = ConfigResource(ResourceType.TOPIC, "__transaction_state", incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": servers})
        for changed in admin.incremental_alter_configs([resource]).values():
            changed.result(300)

    await asyncio.to_thread(alter, AlterConfigOpType.SET, "1")
    try:
        yield
    finally:
        await asyncio.to_thread(alter, AlterConfigOpType.DELETE, None)


async def test_a_broker_that_fails_is_no_lost_connection(
    kafka: KafkaProxy, topic: str, opened: Open, version: int
) -> None:
    """The request is not repeated either, as by Java's producer: the transaction and its other records are lost."""
    async with opened(f"tx-{topic}") as producer:
        producer.send(topic, 0, batch("first"), 1)
        await producer.end(commit=True)
        async with unwritable_transaction_state(kafka.address):
            producer.send(topic, 1, batch("second"), 1)
            with pytest.raises(ProduceFailure, match="UNKNOWN_SERVER_ERROR") as failure:
                await within(10, producer.end(commit=True))
            assert failure.value.code == -1
            with pytest.raises(ProduceFailure, match="UNKNOWN_SERVER_ERROR"):
                async with asyncio.timeout(10), opened(f"other-{topic}"):
                    pass
        assert producer.coordinator_losses == 0
        await within(10, producer.end(commit=False))
    assert await visible(kafka.address, topic) == ["first"]
    assert await visible(kafka.address, topic, 1) == []


async def test_the_coordinator_is_asked_beside_batches_that_are_slow(
    kafka: KafkaProxy, topic: str, opened: Open
) -> None:
    """A batch that waits for longer than the coordinator's timeout, and a request to it that is never answered."""
    async with (
        transaction_version(kafka.address, 0),
        opened(f"tx-{topic}", request_timeout_ms=3000, delivery_timeout_ms=20_000) as producer,
    ):
        held = kafka.catch(PRODUCE, transactional_id=f"tx-{topic}")
        producer.send(topic, 0, batch("slow"), 1)
        await held.seen()
        before = kafka.counts[PRODUCE]
        unanswered = kafka.catch(ADD_PARTITIONS_TO_TXN, Fate.DROP, transactional_id=f"tx-{topic}")
        added = kafka.catch(ADD_PARTITIONS_TO_TXN, Fate.WATCH, transactional_id=f"tx-{topic}")
        producer.send(topic, 1, batch("beside"), 1)
        await unanswered.seen()
        await added.answered(10)
        held.release()
        await within(10, producer.end(commit=True))
        assert kafka.counts[PRODUCE] - before == 1  # none was sent twice
    assert await visible(kafka.address, topic) == ["slow"]
    assert await visible(kafka.address, topic, 1) == ["beside"]


async def test_a_successor_shuts_a_producer_out(kafka: KafkaProxy, topic: str, opened: Open, version: int) -> None:
    async with opened(f"tx-{topic}") as old:
        old.send(topic, 0, batch("of the old"), 1)
        await old.flush()
        async with opened(f"tx-{topic}") as new:
            with pytest.raises(ProduceFailure) as failure:
                await old.end(commit=True)
            assert failure.value.name in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
            with pytest.raises(ProduceFailure):
                await old.flush()
            await old.end(commit=False)
            new.send(topic, 0, batch("of the new"), 1)
            await new.end(commit=True)
    assert await visible(kafka.address, topic) == ["of the new"]


async def test_a_batch_from_before_a_successor_is_refused(
    kafka: KafkaProxy, topic: str, opened: Open, version: int
) -> None:
    async with opened(f"tx-{topic}") as old, opened(f"tx-{topic}"):
        old.send(topic, 0, batch("too late"), 1)
        with pytest.raises(ProduceFailure) as failure:
            await within(60, old.flush())
        assert failure.value.name in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
        with pytest.raises(ProduceFailure):
            await old.room()
    assert await visible(kafka.address, topic) == []


async def test_a_failure_is_told_at_once_and_what_it_belongs_to_can_still_be_aborted(
    kafka: KafkaProxy, topic: str, opened: Open, version: int
) -> None:
    async with opened(f"tx-{topic}", transaction_timeout_ms=60_000) as producer:
        producer.send(topic, 0, batch("small"), 1)
        producer.send(topic, 0, encode([b"\0" * 3_000_000], now_ms=int(time.time() * 1000)), 1)
        with pytest.raises(ProduceFailure, match="MESSAGE_TOO_LARGE") as failure:
            await within(60, producer.flush())
        assert failure.value.code == 10
        producer.send(topic, 0, batch("ignored"), 1)
        with pytest.raises(ProduceFailure):
            await producer.end(commit=True)
        await within(60, producer.end(commit=False))
        async with opened() as other:
            other.send(topic, 0, batch("behind"), 1)
            await other.flush()
        assert await within(30, visible(kafka.address, topic)) == ["behind"]  # before the open transaction's time-out


async def test_a_batch_that_was_damaged_before_is_not_sent_again_and_again(topic: str, opened: Open) -> None:
    async with opened(f"tx-{topic}") as producer:
        damaged = batch("good")
        damaged[-2] ^= 1
        producer.send(topic, 0, damaged, 1)
        with pytest.raises(ProduceFailure, match=r"CORRUPT_MESSAGE: .*damaged before it was sent"):
            await within(5, producer.flush())  # a request that may succeed is repeated for the delivery timeout


async def test_a_topic_with_a_limit_of_its_own_gets_smaller_batches(kafka: KafkaProxy, opened: Open) -> None:
    topic = f"small{next(NUMBERS)}"
    async with admin_client({"bootstrap.servers": kafka.address}, client_id="test") as admin:
        await admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"max.message.bytes": "1000"})])
    values = [f"{number:0100}" for number in range(60)]
    async with opened(f"tx-{topic}") as producer:
        for first in range(0, 60, 20):
            some = [value.encode() for value in values[first : first + 20]]
            producer.send(topic, 0, encode(some, now_ms=int(time.time() * 1000)), 20)
        await within(60, producer.end(commit=True))
        assert producer.most_bytes[topic] < 1000
    assert await visible(kafka.address, topic) == values


async def test_what_cannot_be_delivered_fails_in_time(topic: str, opened: Open) -> None:
    async with opened(delivery_timeout_ms=300) as producer:
        producer.send(topic, 7, batch("nowhere"), 1)
        with pytest.raises(ProduceFailure, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await within(60, producer.flush())


async def test_brokers_that_are_away_for_a_while_are_waited_for(kafka: KafkaProxy, topic: str, opened: Open) -> None:
    async with opened(f"tx-{topic}", transaction_timeout_ms=60_000) as producer:
        producer.send(topic, 0, batch("before"), 1)
        await producer.flush()
        kafka.refusing = True
        kafka.cut(of_client("producer"))
        for value in numbered("n", 5):
            producer.send(topic, 0, batch(value), 1)
        with pytest.raises(TimeoutError):
            await within(0.5, producer.flush())
        kafka.refusing = False
        await within(60, producer.end(commit=True))
    assert await visible(kafka.address, topic) == ["before", *numbered("n", 5)]


async def test_room_is_waited_for_and_a_frozen_broker_holds_nobody_up_that_closes(
    kafka: KafkaProxy, topic: str, opened: Open
) -> None:
    large = encode([b"\0" * 900_000], now_ms=int(time.time() * 1000))
    wide = f"{topic}-wide"
    async with admin_client({"bootstrap.servers": kafka.address}, client_id="test") as admin:
        await admin.create_topics([NewTopic(wide, 8, 1)])
    async with opened(most_waiting_bytes=4_000_000) as producer:
        for partition in range(8):
            producer.send(wide, partition, bytearray(large), 1)
        await producer.flush()
        held = kafka.catch(PRODUCE, client_id="producer")
        for number in range(40):  # more than the buffers on the way hold
            producer.send(wide, number % 8, bytearray(large), 1)
        with pytest.raises(TimeoutError):
            await within(0.3, producer.room())
        await held.seen()
        await within(20, producer.close())  # less than a request's timeout
        with pytest.raises(ProduceFailure, match="closed"):
            await producer.room()
        held.release()


async def test_the_leaders_writer_waits_for_no_broker_that_has_stopped_to_answer(
    kafka: KafkaProxy, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = FencingWriter({"bootstrap.servers": kafka.address}, client_id="leader", transactional_id=f"tx-{topic}")

    async def refuse() -> None:
        raise LookupError("changed meanwhile")

    await writer.write(topic, [(b"k", b"first")])
    with pytest.raises(LookupError):
        await writer.write(topic, [(b"k", b"no")], confirm=refuse)
    monkeypatch.setattr(writers, "END_SECONDS", 0.5)
    unaborted = kafka.catch(END_TXN, Fate.DROP, transactional_id=f"tx-{topic}")
    with pytest.raises(LookupError):
        await within(20, writer.write(topic, [(b"k", b"no")], confirm=refuse))
    await unaborted.seen()
    await writer.claim()
    for request in (END_TXN, PRODUCE):
        frozen = kafka.catch(request, Fate.DROP, client_id="leader")
        with monkeypatch.context() as patch:
            patch.setattr(writers, "SECONDS", 2.0)
            with pytest.raises(Unavailable, match="cannot be written: TimeoutError"):
                await within(20, writer.write(topic, [(b"k", b"no")]))
        await frozen.seen()
        await writer.claim()
    await writer.write(topic, [(b"k", b"last")])
    await writer.close()
    assert [*await visible(kafka.address, topic), *await visible(kafka.address, topic, 1)] == ["first", "last"]

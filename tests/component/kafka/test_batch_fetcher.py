"""Fetching whole record batches from a real broker: exactly the records that a consumer would see, and when."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka.conn import CloseReason
from aiokafka.protocol.fetch import FetchRequest_v4, FetchRequest_v5, FetchRequest_v7
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from keelman.kafka.batches.record_batch import decode
from keelman.kafka.clients import Client
from keelman.kafka.fetching import fetcher as batch_fetcher
from keelman.kafka.fetching import session as fetch_session
from keelman.kafka.fetching.fetched import Fetched
from keelman.kafka.fetching.fetcher import MAX_IDLE_WAIT_MS, BatchFetcher
from keelman.kafka.fetching.position import EARLIEST, LATEST
from keelman.kafka.fetching.position_checks import FetchFailure
from keelman.kafka.fetching.session import Fetch, FetchSession
from keelman.kafka.fetching.settings import FetchSettings
from keelman.kafka.known_brokers import BROKERS
from keelman.kafka.leaders.client import LeaderClient, open_client
from keelman.kafka.leaders.metadata import Part
from keelman.model.errors import Unavailable
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.supervise import first_of
from support.eventually import eventually
from support.kafka.topics import create_topic, messages

pytestmark = pytest.mark.component

SECONDS = 300.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Row = tuple[int, int, int, bytes | None, bytes | None, Any]


@asynccontextmanager
async def fetching(bootstrap: str, positions: Mapping[Part, int], **more: Any) -> AsyncIterator[BatchFetcher]:
    client = LeaderClient({"bootstrap.servers": bootstrap}, client_id="fetches")
    fetcher = BatchFetcher(client, positions, **{"read_committed": True, "reset": "earliest", **more})
    try:
        yield fetcher
    finally:
        await fetcher.close()


async def until_ends(fetcher: BatchFetcher, positions: Mapping[Part, int]) -> list[Fetched]:
    """All records until each partition was read to its end; they fit together without gaps."""
    actual_until_ends: list[Fetched] = []
    open_ends, at = set(positions), dict(positions)
    deadline = time.monotonic() + SECONDS
    while open_ends:
        assert time.monotonic() < deadline, f"no end of {open_ends}: {fetcher.problem}"
        for item in await fetcher.next(1.0):
            part = (item.topic, item.partition)
            assert at[part] < 0 or item.position == at[part]
            at[part] = item.next
            assert item.next <= item.end <= fetcher.ends[part]
            if item.next == item.end:
                open_ends.discard(part)
            actual_until_ends.append(item)
    return actual_until_ends


def rows(results: list[Fetched]) -> list[Row]:
    taken: list[Row] = []
    for part in results:
        for header, data in part.batches:
            columns = decode(header, data)
            fields = (columns.offsets, columns.timestamps_ms, columns.keys, columns.values, columns.headers)
            taken += [(part.partition, *row) for row in zip(*fields, strict=True) if row[0] >= part.position]  # type: ignore[arg-type]
    return sorted(taken, key=lambda row: row[:2])


def seen(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Row]:
    results = [
        (m.partition(), m.offset(), m.timestamp()[1], m.key(), m.value(), m.headers() or [])
        for m in messages(bootstrap, topic, isolation)
    ]
    return sorted(results, key=lambda row: row[:2])


def fill(bootstrap: str, topic: str, partitions: int) -> None:
    """Two transactions at once of each codec, their batches mixed; every other one is aborted."""
    for codec in CODECS:
        writers = []
        for kind in ("a", "b"):
            writer = Producer(
                {
                    "bootstrap.servers": bootstrap,
                    "transactional.id": f"{topic}-{codec}-{kind}",
                    "compression.type": codec,
                    "batch.num.messages": 50,
                }
            )
            writer.init_transactions(30)
            writers.append(writer)
        for turn in range(4):
            for writer in writers:
                writer.begin_transaction()
            for part in range(4):
                for writer in writers:
                    for number in range(60):
                        headers = [("h", b"x" * number), ("h", None)] if number % 7 == 0 else None
                        key = None if number % 2 else b"%d-%d" % (turn, number)
                        value = None if number % 5 == 0 else b"%s-%d" % (codec.encode() * 9, part)
                        writer.produce(topic, value, key, number % partitions, headers=headers)
                    assert writer.flush(300) == 0
            for index, writer in enumerate(writers):
                if (turn + index) % 2:
                    writer.abort_transaction(30)
                else:
                    writer.commit_transaction(30)


async def test_what_a_consumer_sees_of_transactions_and_codecs(
    bootstrap: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(bootstrap, name, 2)
    await asyncio.to_thread(fill, bootstrap, name, 2)
    positions: dict[Part, int] = {(name, 0): 0, (name, 1): EARLIEST}
    for committed, isolation in ((True, "read_committed"), (False, "read_uncommitted")):
        async with fetching(bootstrap, positions, read_committed=committed) as fetcher:
            actual_until_ends = await until_ends(fetcher, positions)
        expected = seen(bootstrap, name, isolation)
        assert len(expected) == (4800 if committed else 9600)
        assert rows(actual_until_ends) == expected
    codecs = {header.codec for actual_until_end in actual_until_ends for header, _ in actual_until_end.batches}
    assert codecs == set(range(5))
    expected = seen(bootstrap, name)
    for old in (FetchRequest_v4, FetchRequest_v5, FetchRequest_v7):  # the requests for older brokers
        monkeypatch.setattr(Fetch, "_CLASSES", (old,))
        async with fetching(bootstrap, positions, settings=FetchSettings(max_wait_ms=20)) as fetcher:
            assert rows(await until_ends(fetcher, positions)) == expected
            assert await fetcher.next(0.3) == [], "an end is reported once, however often the broker reports it"


async def test_small_answers_bring_the_same_and_a_start_in_the_middle_skips_nothing(
    bootstrap: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(bootstrap, name, 3)
    await asyncio.to_thread(fill, bootstrap, name, 3)
    # Less than a batch at a time: each answer has one whole batch of one partition, and pieces of others.
    tiny = FetchSettings(partition_bytes=300, answer_bytes=900)
    starts = {(name, 0): 17, (name, 1): 101, (name, 2): EARLIEST}
    expected = [row for row in seen(bootstrap, name) if row[1] >= starts[name, row[0]]]
    for epochs in (fetch_session.MAX_EPOCH, 2):  # the second time the broker refuses every third request
        monkeypatch.setattr(fetch_session, "MAX_EPOCH", epochs)
        async with fetching(bootstrap, starts, settings=tiny) as fetcher:
            actual_until_ends = await until_ends(fetcher, starts)
        assert rows(actual_until_ends) == expected
        assert len(actual_until_ends) > 60
        first = next(actual_until_end for actual_until_end in actual_until_ends if actual_until_end.batches)
        assert first.batches[0][0].base_offset < first.position


async def test_an_end_is_told_once_and_what_comes_then_at_once(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    producer.produce(name, b"before")
    assert producer.flush(300) == 0
    slow = FetchSettings(max_wait_ms=20_000)
    request = time.monotonic()
    async with fetching(bootstrap, {(name, 0): LATEST}, settings=slow) as fetcher:
        actual_until_ends = await until_ends(fetcher, {(name, 0): LATEST})
        assert time.monotonic() - request < 15, "without new records the end is reported at once"
        assert [
            (actual_until_end.position, actual_until_end.next, actual_until_end.end, actual_until_end.batches)
            for actual_until_end in actual_until_ends
        ] == [(1, 1, 1, [])]
        assert await fetcher.next(0.3) == []
        request = time.monotonic()
        producer.produce(name, b"behind")
        assert producer.flush(300) == 0
        (part,) = await fetcher.next(SECONDS)
        assert time.monotonic() - request < 15, "a long poll is answered when something comes"
        assert (part.position, part.next, part.end) == (1, 2, 2)
        assert [row[4] for row in rows([part])] == [b"behind"]


async def test_only_so_much_is_held_until_it_is_taken(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name)
    producer = Producer({"bootstrap.servers": bootstrap, "batch.size": 50_000})
    for _ in range(400):
        producer.produce(name, b"x" * 10_000)
    assert producer.flush(300) == 0
    little = FetchSettings(held_bytes=300_000, partition_bytes=100_000)
    reported = asyncio.Event()
    async with fetching(bootstrap, {(name, 0): 0}, settings=little, arrived=reported.set) as fetcher:
        await eventually(lambda: fetcher._arrivals._bytes >= 300_000, seconds=SECONDS, what="as much is held")
        while reported.is_set():  # until there are no new reports
            reported.clear()
            await first_of(reported.wait(), asyncio.sleep(1.0))
        held = sum(part.size for part in fetcher.take())
        assert 300_000 <= held < 500_000
        assert (await fetcher.next(SECONDS))[0].batches, "it continues once that is taken"


async def test_offsets_that_are_gone_are_passed_over_or_refused(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(100):
        producer.produce(name, b"%d" % number)
        assert producer.flush(300) == 0
    gone = TopicPartition(name, 0, 60)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_records([gone])[gone].result(300)
    async with fetching(bootstrap, {(name, 0): 10}) as fetcher:
        actual_until_ends = await until_ends(fetcher, {(name, 0): -1})
        assert [row[1] for row in rows(actual_until_ends)] == list(range(60, 100))
    async with fetching(bootstrap, {(name, 0): 1_000}, reset="latest") as fetcher:
        actual_until_ends = await until_ends(fetcher, {(name, 0): -1})
        assert [(actual_until_end.position, actual_until_end.next) for actual_until_end in actual_until_ends] == [
            (100, 100)
        ]
    async with fetching(bootstrap, {(name, 0): 10}, reset="none") as fetcher:
        with pytest.raises(FetchFailure, match="offset 10 of partition 0") as refused:
            await fetcher.next(SECONDS)
        assert (refused.value.code, refused.value.name) == (1, "OFFSET_OUT_OF_RANGE")


async def test_lost_connections_are_made_again_and_missing_topics_waited_for(bootstrap: str, name: str) -> None:
    positions = {(name, 0): 0, (name, 1): 0}
    client = LeaderClient({"bootstrap.servers": bootstrap}, client_id="fetches")
    fetcher = BatchFetcher(client, positions, read_committed=True, reset="earliest")
    try:
        deadline = time.monotonic() + SECONDS
        while "no partition" not in fetcher.problem:
            assert time.monotonic() < deadline, fetcher.problem
            assert await fetcher.next(0.1) == []
        assert name not in AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=300).topics
        create_topic(bootstrap, name, 2)
        await until_ends(fetcher, positions)
        assert fetcher.problem == ""
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        for turn in range(3):
            for connection in list(client._conns.values()):
                connection.close(reason=CloseReason.CONNECTION_BROKEN)
            for number in (0, 1):
                producer.produce(name, b"%d" % turn, partition=number)
            assert producer.flush(300) == 0
            actual_until_ends = await until_ends(fetcher, {(name, 0): turn, (name, 1): turn})
            assert [row[4] for row in rows(actual_until_ends)] == [b"%d" % turn] * 2
    finally:
        await fetcher.close()


async def test_partitions_that_are_late_do_not_wait_for_an_idle_answer(
    bootstrap: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their leader has nothing for the other partitions: the late ones must be requested before that answer arrives."""
    monkeypatch.setattr(batch_fetcher, "MAX_RETRY_SECONDS", 0.1)
    requests: list[tuple[set[str], int]] = []
    request = FetchSession.request

    def noted(self: FetchSession, expected: Mapping[Part, int], wait_ms: int) -> Fetch:
        requests.append(({topic for topic, _ in expected}, wait_ms))
        return request(self, expected, wait_ms)

    monkeypatch.setattr(FetchSession, "request", noted)
    late = f"{name}-late"
    create_topic(bootstrap, name, 1)
    positions = {(name, 0): EARLIEST, (late, 0): EARLIEST}
    async with fetching(bootstrap, positions) as fetcher:
        await eventually(lambda: len(requests) > 3, what="it is idle")
        create_topic(bootstrap, late, 1)
        await until_ends(fetcher, positions)
        before = [wait_ms for topics, wait_ms in requests if topics == {name}]
        assert before[0] == 0
        assert max(before) <= 100, "no longer than until the leaders are requested again"
        assert next(wait_ms for topics, wait_ms in requests if late in topics) == 0
        await eventually(lambda: requests[-1][1] == MAX_IDLE_WAIT_MS, what="it waits long once it has all")


async def test_nobody_there_is_told_in_words() -> None:
    async with fetching("127.0.0.1:1", {("t", 0): 0}) as fetcher:
        deadline = time.monotonic() + SECONDS
        while not fetcher.problem:
            assert time.monotonic() < deadline
            assert await fetcher.next(0.05) == []
        assert "127.0.0.1:1" in fetcher.problem


async def test_a_client_begins_with_the_brokers_that_another_has_met(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties, requests = {"bootstrap.servers": bootstrap, "client.dns.lookup": "use_all_dns_ips"}, list[str]()
    whole = Client.bootstrap

    async def counted(client: Client) -> None:
        requests.append("bootstrap")
        await whole(client)

    monkeypatch.setattr(Client, "bootstrap", counted)
    for _ in range(2):
        client = await open_client(properties, client_id="meets", timeout_ms=10_000)
        brokers = dict(client.cluster._brokers)
        assert await client.add_topic("nowhere")
        await client.close()
    assert (len(brokers), requests) == (1, ["bootstrap"])
    (port,) = free_ports(1)
    BROKERS.met(properties, {1: next(iter(brokers.values()))._replace(port=port)})
    client = await open_client(properties, client_id="meets", timeout_ms=10_000)
    assert await client.add_topic("nowhere")
    await client.close()
    assert (client.cluster._brokers, requests) == (brokers, ["bootstrap"] * 2), (
        "without an answer it sends the request again"
    )
    with pytest.raises(Unavailable, match="no broker answers"):
        await open_client({"bootstrap.servers": f"127.0.0.1:{port}"}, client_id="meets", timeout_ms=10_000)

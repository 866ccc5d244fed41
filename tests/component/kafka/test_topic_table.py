"""A topic kept as a table, on a real broker: its content, the position of its reader, and a restart of its broker."""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog
from aiokafka.admin import NewTopic
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from keelman.kafka.clients import admin_client
from keelman.kafka.tables import table as table_module
from keelman.kafka.tables.following import TopicTables
from keelman.kafka.tables.table import Row, TopicTable
from keelman.kafka.topics import create_missing
from keelman.model.errors import DeadlineExceeded, KeelmanError
from keelman.runtime.supervise import Siblings
from support.brokers.broker import BrokerProcess
from support.kafka.topics import create_topic
from support.waiting import until

pytestmark = pytest.mark.component

SECONDS = 300.0


@asynccontextmanager
async def followed(bootstrap: str, topic: str, partitions: int, rows: list[Row]) -> AsyncIterator[TopicTable]:
    table = TopicTable(topic, partitions, rows.append)
    properties = {"bootstrap.servers": bootstrap}
    tables = TopicTables([table], properties, client_id="table", read_committed=True)
    async with tables.open(), Siblings() as siblings:
        siblings.start(tables.follow())
        yield table


def writer(bootstrap: str, transactional_id: str = "", codec: str = "none") -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            **({"transactional.id": transactional_id} if transactional_id else {}),
        }
    )
    if transactional_id:
        producer.init_transactions(30)
    return producer


def kept(rows: list[Row]) -> dict[bytes, bytes | None]:
    return {row.key: row.value for row in rows}


def more_partitions(bootstrap: str, topic: str, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(300)
    until(lambda: len(admin.list_topics(topic, 60).topics[topic].partitions) == count, "it has them")


async def test_partitions_that_a_topic_is_given_are_read_too(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 1)
    rows: list[Row] = []
    plain = writer(bootstrap)
    async with followed(bootstrap, name, 1, rows) as table:
        plain.produce(name, b"before", b"key", 0)
        assert plain.flush(300) == 0
        await table.read_to_end(seconds=SECONDS)
        more_partitions(bootstrap, name, 3)
        plain = writer(bootstrap)
        plain.produce(name, b"after", b"key", 2)
        assert plain.flush(300) == 0
        await table.read_to_end(seconds=SECONDS)
        assert [(row.partition, row.value) for row in rows] == [(0, b"before"), (2, b"after")]
        assert set(table.positions) == {0, 1, 2}


async def test_of_a_key_in_two_partitions_the_newest_row_counts_at_a_start(bootstrap: str, name: str) -> None:
    """Whichever partition is read first: each of many partitions has the newest row of one key."""
    create_topic(bootstrap, name, 4)
    plain, now = writer(bootstrap), int(time.time() * 1000)
    for number in range(4):
        for partition in range(4):
            age = (partition - number) % 4
            plain.produce(name, b"%d" % age, b"key %d" % number, partition, timestamp=now - age)
    assert plain.flush(300) == 0
    rows: list[Row] = []
    async with followed(bootstrap, name, 4, rows) as table:
        await table.read_to_end(seconds=SECONDS)
    assert {kept(rows)[b"key %d" % number] for number in range(4)} == {b"0"}


async def test_a_table_has_what_is_committed_and_its_position_passes_markers(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 3)
    rows: list[Row] = []
    async with followed(bootstrap, name, 3, rows) as table:
        await table.read_to_end(seconds=SECONDS)
        assert rows == []
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            plain = writer(bootstrap, codec=codec)
            for number in range(300):
                plain.produce(name, b"%d" % number, b"%s-%d" % (codec.encode(), number), number % 3)
            plain.produce(name, None, b"%s-0" % codec.encode(), 0)
            plain.produce(name, b"of nobody", None, 0)
            assert plain.flush(300) == 0
        await table.read_to_end(seconds=SECONDS)
        assert len(rows) == 5 * 301
        assert kept(rows)[b"lz4-0"] is None
        assert kept(rows)[b"zstd-299"] == b"299"
        for partition in range(3):
            offsets = [row.offset for row in rows if row.partition == partition]
            assert offsets == sorted(set(offsets))

        transaction = writer(bootstrap, f"{name}-1")
        transaction.begin_transaction()
        transaction.produce(name, b"aborted", b"key", 1)
        assert transaction.flush(300) == 0
        reading = asyncio.ensure_future(table.read_to_end(seconds=SECONDS))
        transaction.abort_transaction(30)
        await reading
        assert b"key" not in kept(rows)
        transaction.begin_transaction()
        transaction.produce(name, b"committed", b"key", 1)
        transaction.commit_transaction(30)
        await table.read_to_end(seconds=SECONDS)
        assert kept(rows)[b"key"] == b"committed"


async def test_a_topic_that_was_just_made_is_waited_for_in_silence(
    bootstrap: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker answers for partitions that it does not lead yet that it is not their leader."""
    logger = structlog.testing.CapturingLogger()
    monkeypatch.setattr(table_module, "log", logger)
    partitions = 25
    new = NewTopic(name, num_partitions=partitions, replication_factor=1)
    async with admin_client({"bootstrap.servers": bootstrap}, client_id="maker") as admin:
        assert (await create_missing(admin, [new])) == ({name}, {})
    async with followed(bootstrap, name, partitions, []) as table:
        await table.read_to_end(seconds=SECONDS)
    assert [call.kwargs for call in logger.calls if call.method_name == "warning"] == []


async def test_an_open_transaction_is_waited_for_and_the_time_is_told(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 1)
    rows: list[Row] = []
    async with followed(bootstrap, name, 1, rows) as table:
        transaction = writer(bootstrap, f"{name}-1")
        transaction.begin_transaction()
        transaction.produce(name, b"value", b"key", 0)
        assert transaction.flush(300) == 0
        with pytest.raises(DeadlineExceeded, match=f"topic {name} was not read to its end .0: 1. in time"):
            await table.read_to_end(seconds=5.0)
        transaction.commit_transaction(30)
        await table.read_to_end(seconds=SECONDS)
        assert kept(rows) == {b"key": b"value"}


async def test_a_table_goes_on_after_its_broker_was_killed(tmp_path: Path, name: str) -> None:
    broker = BrokerProcess(tmp_path)
    await broker.start()
    try:
        bootstrap = broker.bootstrap
        create_topic(bootstrap, name, 2)
        rows: list[Row] = []
        async with followed(bootstrap, name, 2, rows) as table:
            single_writer = writer(bootstrap)
            single_writer.produce(name, b"1", b"before", 0)
            assert single_writer.flush(300) == 0
            await table.read_to_end(seconds=SECONDS)
            await broker.end(signal.SIGKILL)
            with pytest.raises(KeelmanError, match=name):
                await table.read_to_end(seconds=2.0)
            await broker.start()
            another = writer(bootstrap)
            another.produce(name, b"2", b"after", 1)
            assert another.flush(300) == 0
            with contextlib.suppress(KeelmanError):  # its clients may still be reconnecting
                await table.read_to_end(seconds=5.0)
            await table.read_to_end(seconds=SECONDS)
            assert kept(rows) == {b"before": b"1", b"after": b"2"}
            assert len(rows) == 2, "its records were not read again"
    finally:
        await broker.end()


async def test_tables_that_are_followed_together_are_read_to_their_ends_each(bootstrap: str, name: str) -> None:
    partitions = {f"{name}-a": 1, f"{name}-b": 25, f"{name}-c": 5}
    rows: dict[str, list[Row]] = {topic: [] for topic in partitions}
    tables = [TopicTable(topic, count, rows[topic].append) for topic, count in partitions.items()]
    for topic, count in partitions.items():
        create_topic(bootstrap, topic, count)
    together = TopicTables(tables, {"bootstrap.servers": bootstrap}, client_id="tables", read_committed=True)
    async with together.open(), Siblings() as siblings:
        siblings.start(together.follow())
        for turn in range(3):
            plain = writer(bootstrap)
            for topic, count in partitions.items():
                for number in range(100):
                    plain.produce(topic, b"%s-%d" % (topic.encode(), turn), b"%d" % number, number % count)
            assert plain.flush(300) == 0
            for table in tables:
                await table.read_to_end(seconds=SECONDS)
                assert len(rows[table.topic]) == 100 * (turn + 1)
                assert kept(rows[table.topic])[b"99"] == b"%s-%d" % (table.topic.encode(), turn)

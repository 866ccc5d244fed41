"""Fetching from a cluster whose partitions move, are cut off, lose their tails or are created anew."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from keelman.connect.errors import ConnectError
from keelman.connect.records import Offset
from keelman.connectors.mirror.source import ASSIGNED, MirrorSource
from keelman.kafka.batches.record_batch import decode, encode, read_header
from keelman.kafka.clients import low_level_client
from keelman.kafka.coordinator_lookup import TRANSACTION, coordinator_of
from keelman.kafka.fetching.end_offsets import EndWatch
from keelman.kafka.fetching.epoch_ends import epoch_ends
from keelman.kafka.fetching.fetcher import BatchFetcher
from keelman.kafka.fetching.settings import FetchSettings
from keelman.kafka.leaders.client import LeaderClient
from keelman.kafka.leaders.metadata import Part
from keelman.kafka.tables.following import TopicTables
from keelman.kafka.tables.table import Row, TopicTable
from keelman.runtime.supervise import Siblings
from support.copying.harness import OFFSET_PARTITIONS, OFFSET_TOPIC, Run, ticket
from support.eventually import eventually
from support.kafka.producers import open_producer
from support.kafka.three_brokers import Trio, three_brokers, write
from support.kafka.topics import create_topic

pytestmark = pytest.mark.component

SECONDS = 60.0


@pytest.fixture(scope="module")
async def trio(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Trio]:
    async with three_brokers(tmp_path_factory.mktemp("trio")) as brokers:
        yield brokers


class Reading:
    """The records that a fetcher delivers of one partition, by value."""

    def __init__(self, fetcher: BatchFetcher) -> None:
        self.fetcher = fetcher
        self.values: list[bytes | None] = []
        self.at: dict[bytes | None, float] = {}

    async def until(self, value: bytes) -> None:
        """Waits until this value has come."""
        deadline = time.monotonic() + SECONDS
        while value not in self.at:
            assert time.monotonic() < deadline, f"{value!r} has not come: {self.fetcher.problem} {self.values[-3:]}"
            for part in await self.fetcher.next(1.0):
                for header, data in part.batches:
                    columns = decode(header, data)
                    some = [v for v, o in zip(columns.values, columns.offsets, strict=True) if o >= part.position]
                    self.values += some
                    self.at |= dict.fromkeys(some, time.monotonic())


@asynccontextmanager
async def reading(trio: Trio, positions: Mapping[Part, Any], **more: Any) -> AsyncIterator[Reading]:
    fields = {"bootstrap.servers": trio.bootstrap}
    client = LeaderClient(fields, client_id="fetches", request_timeout_ms=2 * 1000 * int(SECONDS))
    fetcher = BatchFetcher(client, positions, **{"read_committed": True, "reset": "earliest", **more})
    try:
        yield Reading(fetcher)
    finally:
        await fetcher.close()


async def log_end(trio: Trio, topic: str) -> int:
    async with low_level_client({"bootstrap.servers": trio.bootstrap}, client_id="look", timeout_ms=5_000) as client:
        leader = await trio.leader(topic)
        return (await epoch_ends(client, {(topic, 0): leader.epoch}, seconds=30))[topic, 0].offset


async def still_leads_by_its_own_word(trio: Trio, topic: str, node: int) -> None:
    if (await trio.leader(topic, by=trio.brokers[node].bootstrap)).node != node:
        pytest.skip("its controller was elected since the start, and reaches it past the proxies")


# The tests that cut a leader off come first: controllers elected since the start find one another past the proxies.


async def test_a_leader_that_is_cut_off_from_its_cluster_is_not_believed(trio: Trio, name: str) -> None:
    controller = await trio.controller()
    ousted, heir = [node for node in trio.brokers if node != controller]
    others = ",".join(trio.brokers[node].bootstrap for node in (controller, heir))
    await asyncio.to_thread(trio.create, name, [ousted, heir])
    ends: dict[Part, int] = {}
    fields = {"bootstrap.servers": trio.bootstrap}
    async with reading(trio, {(name, 0): 0}) as actual_reading:
        await asyncio.to_thread(write, trio.bootstrap, name, [b"before"], acks="all")
        await actual_reading.until(b"before")
        await eventually(actual_reading.fetcher.confirmed)
        watch = EndWatch.open(fields, {(name, 0): 1}, lambda report: ends.update(report.offsets), client_id="watch")
        async with watch as watched, Siblings() as siblings:
            siblings.start(watched.run())
            await eventually(lambda: ends.get((name, 0)) == 1)
            trio.cut_off(ousted)
            try:
                await trio.led_by(name, heir, by=others)
                await still_leads_by_its_own_word(trio, name, ousted)
                await asyncio.to_thread(write, others, name, [b"behind"], acks="1")
                await actual_reading.until(b"behind")
                await eventually(lambda: ends.get((name, 0)) == 2)
            finally:
                trio.cut_off(ousted, off=False)


async def test_a_table_is_not_read_to_the_end_that_a_cut_off_leader_tells(trio: Trio, name: str) -> None:
    controller = await trio.controller()
    ousted, heir = [node for node in trio.brokers if node != controller]
    others = ",".join(trio.brokers[node].bootstrap for node in (controller, heir))
    await asyncio.to_thread(trio.create, name, [ousted, heir])
    table = TopicTable(name, 1, lambda _row: None)
    fields = {"bootstrap.servers": trio.bootstrap}
    async with TopicTables([table], fields, client_id="reads", read_committed=True).open():
        await asyncio.to_thread(write, trio.bootstrap, name, [b"before"], acks="all")
        assert await table.end_offsets() == {0: 1}
        trio.cut_off(ousted)
        try:
            await trio.led_by(name, heir, by=others)
            await still_leads_by_its_own_word(trio, name, ousted)
            await asyncio.to_thread(write, others, name, [b"behind"], acks="1")
            assert await table.end_offsets() == {0: 2}
        finally:
            trio.cut_off(ousted, off=False)


async def test_what_is_written_to_a_new_leader_comes_at_once(trio: Trio, name: str) -> None:
    await asyncio.to_thread(trio.create, name, [1, 2, 3])
    async with reading(trio, {(name, 0): 0}) as actual_reading:
        await asyncio.to_thread(write, trio.bootstrap, name, [b"first"])
        await actual_reading.until(b"first")
        waits = []
        for turn, replicas in enumerate(((2, 3, 1), (3, 1, 2), (1, 2, 3))):
            await trio.move(name, replicas)
            for number in range(5):
                value = b"%d-%d" % (turn, number)
                written = asyncio.create_task(asyncio.to_thread(write, trio.bootstrap, name, [value], acks="all"))
                await actual_reading.until(value)
                waits.append(actual_reading.at[value] - await written)
    print(f"acknowledged to fetched after moves, ms: {[round(1000 * wait) for wait in waits]}")
    assert statistics.median(waits) < 0.2


async def test_a_silent_leader_keeps_no_batch_no_commit_and_no_table_waiting(trio: Trio, name: str) -> None:
    controller = await trio.controller()
    silent, heir = [node for node in trio.brokers if node != controller]
    await asyncio.to_thread(trio.create, name, [silent, heir, controller])
    fields = {"bootstrap.servers": trio.bootstrap}
    async with open_producer(trio.bootstrap, name):
        pass  # the first of all: now the transactions have coordinators
    mine, number = "", 0
    async with low_level_client(fields, client_id="look", timeout_ms=5_000) as client:
        while not mine:
            item, number = f"{name}-{number}", number + 1
            mine = item if await coordinator_of(client, TRANSACTION, item) == silent else ""
    rows: list[Row] = []
    table = TopicTable(name, 1, rows.append)
    patience = {"request_timeout_ms": 4 * 1000 * int(SECONDS), "transaction_timeout_ms": 4 * 1000 * int(SECONDS)}
    async with (
        TopicTables([table], fields, client_id="follows", read_committed=True).open() as tables,
        Siblings() as siblings,
        open_producer(trio.bootstrap, mine, **patience) as producer,
    ):
        siblings.start(tables.follow())

        async def copied(value: bytes) -> None:
            producer.send(name, 0, encode([value], [b"key"], now_ms=int(time.time() * 1000)), 1)
            await producer.end(commit=True)
            await eventually(lambda: bool(rows) and rows[-1].value == value, seconds=SECONDS, what=f"{value!r} comes")

        await copied(b"before")
        trio.freeze(silent)
        try:
            begun = time.monotonic()
            await copied(b"meanwhile")
            took = time.monotonic() - begun
        finally:
            trio.thaw(silent)
    print(f"stored, committed and read {took:.1f} s after its leader and coordinator had fallen silent")
    assert [row.value for row in rows] == [b"before", b"meanwhile"]
    assert took < SECONDS


async def test_the_tail_that_a_log_has_lost_is_not_taken_for_read(trio: Trio, name: str) -> None:
    await asyncio.to_thread(trio.create, name, [2, 3], **{"unclean.leader.election.enable": "true"})
    old, lost, new = (
        [b"%s-%d" % (kind, n) for n in range(count)] for kind, count in ((b"o", 30), (b"l", 20), (b"n", 40))
    )
    async with reading(trio, {(name, 0): 0}) as actual_reading:
        await asyncio.to_thread(write, trio.bootstrap, name, old, acks="all")
        await actual_reading.until(old[-1])
        trio.freeze(3)
        try:
            # The first is the answer to a request that the frozen broker had received before.
            await asyncio.to_thread(write, trio.bootstrap, name, lost[:1], acks="all")
            await asyncio.to_thread(write, trio.bootstrap, name, lost[1:], acks="all")
            await actual_reading.until(lost[-1])
            trio.freeze(2)
        finally:
            trio.thaw(3)
        try:
            await trio.led_by(name, 3)
            end = await log_end(trio, name)
            assert end < len(old + lost), "records were lost"
            await asyncio.to_thread(write, trio.bootstrap, name, new)
            await actual_reading.until(new[-1])
        finally:
            trio.thaw(2)
    assert actual_reading.values == old + lost + new


async def test_a_frozen_follower_of_the_own_rack_is_left(trio: Trio, name: str) -> None:
    await asyncio.to_thread(trio.create, name, [1, 2])
    async with reading(trio, {(name, 0): 0}, settings=FetchSettings(rack="r2")) as actual_reading:
        await asyncio.to_thread(write, trio.bootstrap, name, [b"before"], acks="all")
        await actual_reading.until(b"before")
        await eventually(lambda: (name, 0) in actual_reading.fetcher._near, what="it is read from the follower")
        await asyncio.to_thread(write, trio.bootstrap, name, [b"near"], acks="all")
        await actual_reading.until(b"near")
        trio.freeze(2)
        try:
            await asyncio.to_thread(write, trio.bootstrap, name, [b"behind"], acks="all")
            await actual_reading.until(b"behind")
        finally:
            trio.thaw(2)
    assert actual_reading.values == [b"before", b"near", b"behind"]


async def test_a_topic_that_is_made_anew_is_read_from_its_beginning(trio: Trio, name: str) -> None:
    await asyncio.to_thread(trio.create, name, [1, 2, 3])
    first, second = ([b"%s-%d" % (kind, n) for n in range(count)] for kind, count in ((b"a", 5), (b"b", 8)))
    async with reading(trio, {(name, 0): 0}) as actual_reading:
        await asyncio.to_thread(write, trio.bootstrap, name, first)
        await actual_reading.until(first[-1])
        admin = AdminClient({"bootstrap.servers": trio.bootstrap})  # held until it has answered
        await asyncio.to_thread(admin.delete_topics([name])[name].result, 30)
        await asyncio.to_thread(trio.create, name, [2, 3, 1])
        await asyncio.to_thread(write, trio.bootstrap, name, second)
        await actual_reading.until(second[-1])
    assert actual_reading.values == first + second


def mirrored(trio: Trio, topic: str, offset: Offset | None, until: bytes) -> tuple[list[bytes | None], Offset | None]:
    """The records that a mirror's task reads from a source offset, and the offset that it would commit."""
    config = {
        "source.cluster.alias": "src",
        "target.cluster.alias": "dst",
        "source.cluster.bootstrap.servers": trio.bootstrap,
        "target.cluster.bootstrap.servers": trio.bootstrap,
        "emit.offset-syncs.enabled": "false",
        ASSIGNED: f"{topic}-0",
    }
    reader = MirrorSource.open_reader(config, lambda _partition: offset)
    results: list[bytes | None] = []
    try:
        deadline = time.monotonic() + SECONDS
        while until not in results or reader.watch() is None:
            assert time.monotonic() < deadline, reader.waits_for()
            batch = reader.read()
            if batch is not None:
                offset = batch.offsets[-1][1]
                results += batch.values.values
                for packed in batch.packed:
                    results += decode(read_header(packed.data), packed.data).values
    finally:
        reader.close()
    return results, offset


async def test_a_mirror_that_comes_back_knows_the_topic_that_it_has_read(trio: Trio, name: str) -> None:
    await asyncio.to_thread(trio.create, name, [1, 2, 3])
    first, second = ([b"%s-%d" % (kind, n) for n in range(count)] for kind, count in ((b"a", 5), (b"b", 8)))
    await asyncio.to_thread(write, trio.bootstrap, name, first)
    values, offset = await asyncio.to_thread(mirrored, trio, name, None, first[-1])
    assert values == first
    assert offset is not None
    assert (offset["offset"], offset["leader_epoch"], len(offset["topic_id"])) == (4, 0, 22)
    admin = AdminClient({"bootstrap.servers": trio.bootstrap})  # held until it has answered
    await asyncio.to_thread(admin.delete_topics([name])[name].result, 30)
    await asyncio.to_thread(trio.create, name, [2, 3, 1])
    await asyncio.to_thread(write, trio.bootstrap, name, second)
    values, _ = await asyncio.to_thread(mirrored, trio, name, offset, second[-1])
    assert values == second
    values, _ = await asyncio.to_thread(mirrored, trio, name, {"offset": 4}, second[-1])
    assert values == second[5:], "an offset of MirrorMaker's does not name the log that it was read from"


async def test_a_batch_that_is_damaged_on_disk_fails_a_mirror_with_its_reason(trio: Trio, name: str) -> None:
    await asyncio.to_thread(trio.create, name, [1])
    for value in (b"good", b"damaged"):
        await asyncio.to_thread(write, trio.bootstrap, name, [value])
    (segment,) = trio.brokers[1].home.rglob(f"{name}-0/00000000000000000000.log")
    with segment.open("r+b") as log:
        log.seek(segment.read_bytes().index(b"damaged"))
        log.write(b"D")
    with pytest.raises(
        ConnectError, match=rf"partition 0 of topic {name}: Record batch at offset 1 is invalid, cause: "
    ):
        await asyncio.to_thread(mirrored, trio, name, None, b"damaged")


async def test_damage_that_the_target_refuses_is_found_by_the_next_run(
    trio: Trio, name: str, runs: Callable[..., Run]
) -> None:
    """The damage is long after the first commit, until which a run checks all checksums."""
    config = {
        "name": f"{name}-connector",
        "connector.class": "MirrorSource",
        "source.cluster.alias": "src",
        "target.cluster.alias": "dst",
        "source.cluster.bootstrap.servers": trio.bootstrap,
        "target.cluster.bootstrap.servers": trio.bootstrap,
        "topics": name,
        "replication.factor": "1",
        "emit.offset-syncs.enabled": "false",
        "heartbeats.replication.enabled": "false",
        "keelman.commit.interval.ms": "1",
        "source.consumer.max.partition.fetch.bytes": "20000",
        "source.consumer.fetch.max.bytes": "20000",
    }

    def begin() -> dict[str, str]:
        create_topic(trio.bootstrap, OFFSET_TOPIC, OFFSET_PARTITIONS, **{"cleanup.policy": "compact"})
        trio.create(name, [1])
        write(trio.bootstrap, name, [b"%d" % number * 5_000 for number in range(60)], **{"batch.num.messages": 1})
        write(trio.bootstrap, name, [b"damaged" + b"x" * 5_000])
        (segment,) = trio.brokers[1].home.rglob(f"{name}-0/00000000000000000000.log")
        with segment.open("r+b") as log:
            log.seek(segment.read_bytes().index(b"damaged"))
            log.write(b"D")
        MirrorSource.tend(config)
        return MirrorSource.task_configs(config, 1)[0]

    task = await asyncio.to_thread(begin)
    reports = []
    while not reports or (reports[-1].retriable and len(reports) < 6):
        run = await asyncio.to_thread(runs, ticket(trio.bootstrap, task))
        reports.append(await asyncio.to_thread(run.until_state, "FAILED"))
    assert f"partition 0 of topic {name}: Record batch at offset 60 is invalid, cause: " in reports[-1].message
    assert len(reports) == 1 or "CORRUPT_MESSAGE" in reports[0].message
    print([report.message for report in reports])

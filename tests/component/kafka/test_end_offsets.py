"""Brokers notify when partitions have more than was read: soon, for all of them, and not before it can be read."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from keelman.kafka.fetching.end_offsets import REFRESH_SECONDS, Ends, EndWatch
from keelman.kafka.leaders.metadata import Part
from keelman.model.errors import Unavailable
from keelman.runtime.supervise import Siblings
from support.brokers.broker import BrokerProcess
from support.eventually import eventually
from support.kafka.topics import create_topic

pytestmark = pytest.mark.component

SECONDS = 300.0


class Seen:
    """The newest report of each partition; after an end the observer wants no lower offset, as a task would."""

    def __init__(self, expected: dict[Part, int]) -> None:
        self.wanted = expected
        self.ends: dict[Part, int] = {}
        self.gone: dict[Part, str] = {}
        self.answers = 0

    def told(self, answer: Ends) -> None:
        self.answers += 1
        self.ends |= answer.offsets
        self.gone |= answer.gone
        for part in answer.gone:
            self.wanted.pop(part, None)
        self.wanted |= {part: end for part, end in answer.offsets.items() if part in self.wanted}

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        await eventually(condition, seconds=SECONDS, what=f"{what}: {self.ends} {self.gone}")


@asynccontextmanager
async def watching(bootstrap: str, seen: Seen, **properties: str) -> AsyncIterator[EndWatch]:
    fields = {"bootstrap.servers": bootstrap, **properties}
    async with EndWatch.open(fields, seen.wanted, seen.told, client_id="watch") as ends, Siblings() as siblings:
        siblings.start(ends.run())
        yield ends


def write(bootstrap: str, topic: str, partition: int, count: int = 1) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(count):
        producer.produce(topic, b"v" * 1000, partition=partition)
    assert producer.flush(300) == 0


async def test_all_that_moved_is_told_and_what_is_added_is_watched_too(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 30)
    seen = Seen({(name, number): 0 for number in range(20)})
    async with watching(bootstrap, seen) as ends:
        await seen.until(lambda: seen.answers > 1, "there is a first answer")
        assert not any(seen.ends.values())
        for number in (3, 4, 25):
            await asyncio.to_thread(write, bootstrap, name, number, 500)
        expected = {(name, 3): 500, (name, 4): 500}
        await seen.until(lambda: expected.items() <= seen.ends.items(), "both ends are told")
        assert (name, 25) not in seen.ends, "it has no users"
        seen.wanted[name, 25] = 0
        ends.look()
        await seen.until(lambda: seen.ends.get((name, 25)) == 500, "one that was added later")
        del seen.wanted[name, 3]
        ends.look()
        before = seen.answers
        await seen.until(lambda: seen.answers > before + 1, "a question that was asked since")
        await asyncio.to_thread(write, bootstrap, name, 3)
        await asyncio.to_thread(write, bootstrap, name, 5)
        await seen.until(lambda: seen.ends.get((name, 5)) == 1, "another")
        assert seen.ends[name, 3] == 500, "it has no users any more"


async def test_it_is_told_while_the_question_waits_and_hardly_ever_asked_before(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 1)
    seen = Seen({(name, 0): 0})
    async with watching(bootstrap, seen):
        await seen.until(lambda: seen.answers > 4, "it asks less and less often")
        before, begun = seen.answers, time.monotonic()
        await seen.until(lambda: seen.answers > before + 2, "answers of a quiet topic")
        assert time.monotonic() - begun > 1.0
        await asyncio.to_thread(write, bootstrap, name, 0)
        await seen.until(lambda: seen.ends.get((name, 0)) == 1, "the end")


async def test_an_open_transaction_is_no_end_for_who_reads_what_is_committed(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 1)
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    writer.init_transactions(30)
    seen, plain = Seen({(name, 0): 0}), Seen({(name, 0): 0})
    async with (
        watching(bootstrap, seen, **{"isolation.level": "read_committed"}),
        watching(bootstrap, plain),
    ):
        writer.begin_transaction()
        writer.produce(name, b"1")
        assert writer.flush(300) == 0
        await plain.until(lambda: plain.ends.get((name, 0)) == 1, "what is written")
        before = seen.answers
        await seen.until(lambda: seen.answers > before + 1, "two more answers")
        assert not seen.ends.get((name, 0))
        writer.commit_transaction(30)
        await seen.until(lambda: seen.ends.get((name, 0)) == 2, "the record and its marker")


async def test_what_cannot_be_read_is_told_as_gone(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 1)
    create_topic(bootstrap, f"{name}-short", 1)
    seen = Seen({(name, 0): 0, (f"{name}-short", 0): 7, (f"{name}-never", 0): 0})
    async with watching(bootstrap, seen):
        gone = {(f"{name}-never", 0): "UNKNOWN_TOPIC_OR_PARTITION", (f"{name}-short", 0): "OFFSET_OUT_OF_RANGE"}
        await seen.until(lambda: seen.gone == gone, "not there, and shorter than that")
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.delete_topics([name])[name].result(300)
        await seen.until(lambda: (name, 0) in seen.gone, "deleted")


async def test_a_broker_that_is_away_is_told(tmp_path: Path, name: str) -> None:
    broker = BrokerProcess(tmp_path)
    await broker.start()
    try:
        create_topic(broker.bootstrap, name, 1)
        seen = Seen({(name, 0): 0})
        properties = {"bootstrap.servers": broker.bootstrap}
        async with EndWatch.open(properties, seen.wanted, seen.told, client_id="watch") as ends:
            running = asyncio.ensure_future(ends.run())
            await seen.until(lambda: seen.answers > 1, "there is a first answer")
            await broker.end(signal.SIGKILL)
            with pytest.raises(Unavailable, match="no broker reports where partitions end"):
                await asyncio.wait_for(running, SECONDS)
    finally:
        await broker.end()


async def test_new_partitions_are_known_as_soon_as_metadata_may_be_old(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 1)
    seen = Seen({(name, 0): 0})
    async with watching(bootstrap, seen) as ends:
        ends.refresh_seconds = 0.5
        await seen.until(lambda: ends.partitions_of(name) == 1, "it is known")
        admin = AdminClient({"bootstrap.servers": bootstrap})
        await asyncio.to_thread(admin.create_partitions([NewPartitions(name, 3)])[name].result, 60)
        begun = time.monotonic()
        await seen.until(lambda: ends.partitions_of(name) == 3, "there are more")
        assert time.monotonic() - begun < REFRESH_SECONDS / 2

"""Twenty records a second: how long until each is visible on the other side."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import statistics
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.copying import bare_loop
from bench.copying.throughput import Load, mirror_config
from bench.measuring.data import QUIET
from bench.measuring.figures import Figure, compared, percentile
from bench.measuring.rounds import interleaved, lateness, picked
from bench.measuring.systems import System, create, delete, running

NUMBERS = itertools.count(1)
PER_SECOND = 20
WARM_UP = 40
BARE = "bare loop"


class Reader:
    """Reads one partition of committed records in a thread of its own and notes the time of each."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.came: dict[int, float] = {}
        self.all: list[int] = []  # in the order of their arrival, with earlier ones
        self._stop = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"bench-{topic}",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 500,
                "fetch.queue.backoff.ms": 1,
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 1000,
                **QUIET,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                number = int(message.value().split(b" ", 1)[0])
                self.came.setdefault(number, time.perf_counter())  # the peer may write a record twice
                self.all.append(number)

    def close(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._thread.join()
        self._consumer.close()


async def trickle(system: System, load: Load, more: Mapping[str, str], *, records: int = 400) -> list[float]:
    """Milliseconds of each record from its acknowledgement in the source until it is visible in the copy."""
    number = next(NUMBERS)
    topic, alias, name = f"drops-{number}", f"t{number}", f"trickle-{number}"
    copy = f"{alias}.{topic}"
    with made(load, topic, copy):
        await create(system, name, {**mirror_config(load, alias, more), "topics": topic, "tasks.max": "1"})
        try:
            await running(system, name)
            return await drops(system.name, load, topic, copy, records)
        finally:
            await delete(system, name)


async def bare_trickle(load: Load, *, records: int = 400) -> list[float]:
    """The same for a loop that only makes the requests."""
    number = next(NUMBERS)
    topic, copy, offsets = f"drops-{number}", f"bare.drops-{number}", f"bare.offsets-{number}"
    with made(load, topic, copy, offsets), bare_loop.copying(load.bootstrap, topic, copy, offsets):
        return await drops(BARE, load, topic, copy, records)


@contextlib.contextmanager
def made(load: Load, *topics: str) -> Iterator[None]:
    """Topics of one partition, deleted at the end of the block."""
    for topic in topics:
        load.topics.create(topic, 1)
    try:
        yield
    finally:
        for topic in topics:
            load.topics.delete(topic)


class Rounds(Protocol):
    """The interface of a row's rounds."""

    options: Any

    def say(self, text: str) -> None:
        """One line of progress."""

    def turn(self, turn: int) -> str:
        """The number of the round."""


async def measured(
    name: str, variants: Sequence[str], value: Callable[[str], Awaitable[list[float]]], goal: str, rounds: Rounds
) -> list[Figure]:
    """The figures of p50 and p99; `one` measures ours or a variant."""

    def say(turn: int, of: str, took: list[float]) -> None:
        p50, p99 = statistics.median(took), percentile(took, 0.99)
        rounds.say(f"{name} {rounds.turn(turn)}: {of}: p50 {p50:.1f} ms, p99 {p99:.1f} ms")

    options = rounds.options
    result = await interleaved(options.rounds, variants, value, lateness, say, warm_up=options.warm_up)
    return [
        *compared(f"{name}-p50", "ms", *picked(result, statistics.median), goal),
        *compared(f"{name}-p99", "ms", *picked(result, lambda took: percentile(took, 0.99)), goal),
    ]


async def drops(name: str, load: Load, topic: str, copy: str, records: int) -> list[float]:
    """Feeds the topic; milliseconds of each record until it is seen in the copy, without the warm-up."""
    reader = Reader(load.bootstrap, copy)
    producer = Producer({"bootstrap.servers": load.bootstrap, "linger.ms": 0, "enable.idempotence": True, **QUIET})
    sent: dict[int, float] = {}
    try:
        start = time.perf_counter()
        for index in range(records + WARM_UP):
            await asyncio.sleep(max(0.0, start + index / PER_SECOND - time.perf_counter()))
            producer.produce(topic, b"%d %s" % (index, b"x" * 90))
            left = await asyncio.to_thread(producer.flush, 10)
            assert not left, f"the source topic did not take record {index} within 10 s"
            sent[index] = time.perf_counter()
        deadline = time.monotonic() + 30
        while len(reader.came) < len(sent):
            assert time.monotonic() < deadline, f"{name}: {len(reader.came)} of {len(sent)} arrived"
            await asyncio.sleep(0.05)
    finally:
        reader.close()
    return [(reader.came[n] - sent[n]) * 1000 for n in range(WARM_UP, records + WARM_UP)]

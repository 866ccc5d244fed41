"""Feeds the paths at a steady pace, mixes in a stranger's aborted records, and counts the visible records."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Sequence

from confluent_kafka import KafkaException, Producer

from chaos.chaos_kafka import Partition, Topics, common
from chaos.chaos_paths import FileSink, FileSource, Run
from support.numbered import Number, line

TICK_SECONDS = 0.04
LONGEST_TICK_SECONDS = 0.2
"""A feed that was delayed continues at its pace: all the missed records at once would delay the proxies beside it."""
LOOK_SECONDS = 0.05
LAST_PART = 0.15
TRICKLE = 0.01
STRANGER = 99


class Feed:
    """Feeds every path; the last part only trickles until `finish` is called, so that records flow to the end."""

    def __init__(self, runs: Sequence[Run], bootstrap: str, seconds: float, *, parts: int = 1) -> None:
        """With `parts` it trickles after each of so many, until `go_on` is called."""
        self._runs, self._seconds = runs, seconds
        self._part = (1 - LAST_PART) / parts
        self.flows_to = self._part
        """The part of all records that is fed before it only trickles."""
        self.fed = {run.name: 0 for run in runs}
        self._rest = {run.name: [iter(s) for s in run.streams] for run in runs}
        self._finishing = False
        self._bootstrap = bootstrap
        self._producer = self._made()
        self._held = False
        self._lost: list[str] = []
        self.given = {run.name: [0 for _ in run.streams] for run in runs}
        """How many records of each stream were fed."""
        self.history: list[tuple[float, dict[str, int]]] = []
        """When how many of each path were fed."""
        self.into = {run.name: list(range(len(run.streams))) for run in runs}
        """Which partition each stream is written to. Changed while all is held, or records change places."""

    def _made(self) -> Producer:
        settings = {"enable.idempotence": True, "linger.ms": 5, "queue.buffering.max.messages": 2_000_000}
        settings |= {"delivery.report.only.error": True}
        return Producer({**common(self._bootstrap), **settings, "message.timeout.ms": 300_000})

    def go_on(self) -> None:
        """Feeds the next part at full pace."""
        self.flows_to += self._part

    async def hold(self) -> None:
        """Pauses feeding until `release`; returns when all records are acknowledged."""
        self._held = True
        await asyncio.sleep(2 * TICK_SECONDS)  # the tick under way
        left = await asyncio.to_thread(self._producer.flush, 120)
        assert not left, f"{left} records were not acknowledged"

    def release(self) -> None:
        """Resumes with a new producer: the present leader may not know the numbers of an old producer's batches."""
        self._producer = self._made()
        self._held = False

    def finish(self) -> None:
        """Feeds the rest, after the last fault."""
        self._finishing = True

    async def run(self) -> None:
        """Feeds all; returns when the broker has everything."""
        part, before = 0.0, time.monotonic()
        while any(self.fed[run.name] < run.records for run in self._runs):
            now = time.monotonic()
            if self._held:
                before = now
                await asyncio.sleep(TICK_SECONDS)
                continue
            pace = 1.0 if self._finishing or part < self.flows_to else TRICKLE
            part += pace * min(now - before, LONGEST_TICK_SECONDS) / self._seconds
            part, before = min(1.0, part), now
            for run in self._runs:
                self._give(run, int(run.records * part) - self.fed[run.name])
            self._producer.poll(0)
            self.history.append((time.monotonic(), dict(self.fed)))
            await asyncio.sleep(TICK_SECONDS)
        left = await asyncio.to_thread(self._producer.flush, 240)
        assert not left, f"{left} records were not taken by the broker"
        assert not self._lost, self._lost[:3]

    def _give(self, run: Run, count: int) -> None:
        if count <= 0:
            return
        streams = self._rest[run.name]
        taken = [list(itertools.islice(s, -(-count // len(streams)))) for s in streams]
        if isinstance(run, FileSource):
            with run.file.open("ab") as file:
                file.write(b"".join(b"%s\n" % item for item in taken[0]))
        else:
            for partition, lines in zip(self.into[run.name], taken, strict=True):
                for single_line in lines:
                    self._producer.produce(
                        run.feed_topic, single_line, partition=partition, on_delivery=self._delivered
                    )
        self.given[run.name] = [a + len(t) for a, t in zip(self.given[run.name], taken, strict=True)]
        self.fed[run.name] += sum(map(len, taken))

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self._lost.append(str(error))


class Stranger:
    """Begins transactions in the fed topics and aborts them: its records must never be copied."""

    def __init__(self, topics: Sequence[str], bootstrap: str) -> None:
        self._topics, self._bootstrap = topics, bootstrap
        self._stop = threading.Event()
        self._held, self._idle = threading.Event(), threading.Event()
        self._count = 0

    def stop(self) -> None:
        """Stops feeding."""
        self._stop.set()

    def hold(self) -> None:
        """Begins no more transactions until `release`; returns when none is open."""
        self._idle.clear()
        self._held.set()
        self._idle.wait(60)

    def release(self) -> None:
        """Resumes."""
        self._held.clear()

    def work(self) -> None:
        """Works in a thread until stopped; leaves no transaction open."""
        while not self._stop.is_set():
            with contextlib.suppress(KafkaException):
                self._abort_some()
        for _ in range(10):
            with contextlib.suppress(KafkaException):
                self._producer()
                return

    def _producer(self) -> Producer:
        own = {"transactional.id": f"stranger-{self._topics[0]}", "transaction.timeout.ms": 10_000}
        producer = Producer({**common(self._bootstrap), **own})
        producer.init_transactions(30)
        return producer

    def _abort_some(self) -> None:
        producer = self._producer()
        while not self._stop.wait(0.3):
            if self._held.is_set():
                self._idle.set()
                continue
            producer.begin_transaction()
            for topic in self._topics:
                for partition in (0, 1):
                    self._count += 1
                    producer.produce(topic, line(Number(STRANGER, self._count), 60), partition=partition)
            producer.flush(5)
            producer.abort_transaction(10)


class Watch:
    """The number of visible records of each path, over time."""

    def __init__(self, runs: Sequence[Run], topics: Topics) -> None:
        self.visible = {run.name: 0 for run in runs}
        self.history: list[tuple[float, dict[str, int]]] = []
        """When how many were visible."""
        self._files = {run.name: run for run in runs if isinstance(run, FileSink)}
        self._topics = topics
        self._runs = runs
        self._stop = threading.Event()
        self._anew = threading.Event()

    def stop(self) -> None:
        """Stops counting."""
        self._stop.set()

    def count_anew(self) -> None:
        """Counts from the beginning: the topics are new, or have more partitions."""
        self._anew.set()

    def work(self) -> None:
        """Counts in a thread until stopped."""
        while not self._stop.is_set():
            self._anew.clear()
            self._count()

    def _count(self) -> None:
        of: dict[Partition, str] = {p: run.name for run in self._runs for p in run.output}
        consumer = self._topics.consumer(of)
        self.visible |= dict.fromkeys(of.values(), 0)
        looked = 0.0
        while not self._stop.is_set() and not self._anew.is_set():
            for message in consumer.consume(10_000, LOOK_SECONDS):
                if message.error() is None:
                    self.visible[of[message.topic(), message.partition()]] += 1
            if time.monotonic() - looked > LOOK_SECONDS:
                looked = time.monotonic()
                self.history.append((looked, dict(self.visible)))
                for name, run in self._files.items():
                    with contextlib.suppress(FileNotFoundError):
                        self.visible[name] = sum(file.read_bytes().count(b"\n") for file in run.files)
        consumer.close()

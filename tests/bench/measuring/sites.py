"""The sites of measurements: brokers, and both systems beside them, each started when a row needs it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import psutil

from bench.copying.throughput import Load
from bench.measuring.data import Topics, write_lines
from bench.measuring.systems import Keelman, System, connect, family, keelman
from keelman.runtime.processes.ports import free_ports
from support.brokers.broker import BrokerProcess

STORAGE = ("config", "offset", "status")
CLUSTER_ID = "a2VlbG1hbi1iZW5jaC1zaQ"


@asynccontextmanager
async def brokers(home: Path, number: int) -> AsyncIterator[list[BrokerProcess]]:
    """One cluster of so many brokers, with default settings: of three, two must be in sync."""
    ports = free_ports(2 * number)
    voters = ",".join(f"{n + 1}@127.0.0.1:{ports[number + n]}" for n in range(number))
    broker_processes = [
        BrokerProcess(
            home / str(n + 1),
            ports[n],
            ports[number + n],
            ("--node-id", str(n + 1), "--cluster-id", CLUSTER_ID, "--voters", voters),
            lasting=True,
        )
        for n in range(number)
    ]
    try:
        await asyncio.gather(*(broker_process.start() for broker_process in broker_processes))
        yield broker_processes
    finally:
        await asyncio.gather(*(broker_process.end() for broker_process in broker_processes))


class Site:
    """One cluster of brokers; on three, topics have three replicas, two of which must have an acknowledged record."""

    bootstrap: str
    topics: Topics
    broker_processes: list[psutil.Process]

    def __init__(
        self, stack: AsyncExitStack, folder: Path, records: int, say: Callable[[str], None], *, brokers: int = 1
    ) -> None:
        """Starts nothing yet; later starts end with the stack."""
        self._stack, self._folder, self._records, self._say, self.brokers = stack, folder, records, say, brokers
        self._started = False
        self._systems: dict[str, System] = {}
        self._running = AsyncExitStack()
        self._load: Load | None = None
        self._names = itertools.count(1)

    async def start(self) -> None:
        """Starts the brokers, once."""
        if self._started:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._say(f"starting {self.brokers} broker{'s' if self.brokers > 1 else ''}")
        started = await self._stack.enter_async_context(brokers(self._folder / "broker", self.brokers))
        self.bootstrap = ",".join(item.bootstrap for item in started)
        self.broker_processes = [process for item in started for process in family(item.pid)]
        self.topics = Topics(self.bootstrap, self.brokers)
        self._stack.push_async_callback(self.end_systems)
        self._started = True

    async def end_systems(self) -> None:
        """Ends both systems; a later request for either starts a new one, in a group of its own."""
        running, self._running, self._systems = self._running, AsyncExitStack(), {}
        await running.aclose()

    @property
    def load(self) -> Load:
        """The records to copy, made when they are first needed."""
        if self._load is None:
            count, file = self._records, self._folder / "lines.txt"
            self._say(f"making {count:,} records of 100 bytes, in a file and in a topic")
            write_lines(file, count)
            self.topics.delete("records")  # of an earlier try
            self.topics.create("records")
            self.topics.fill("records", count)
            self._load = Load(self.topics, self.bootstrap, count, "records", file, self._folder, self.brokers)
        return self._load

    async def ours(self) -> Keelman:
        """Our system, started once."""
        if "ours" not in self._systems:
            self._say("starting keelman: a worker and its Spark service")
            folder = self._folder / f"keelman-{next(self._names)}"
            self._systems["ours"] = await self._running.enter_async_context(keelman(folder, self.bootstrap))
        return self._systems["ours"]  # type: ignore[return-value]

    async def peer(self, *, exactly_once: bool) -> System:
        """Kafka Connect with or without exactly-once, each started once."""
        name = "connect-eos" if exactly_once else "connect-alo"
        if name not in self._systems:
            self._say(f"starting Apache Kafka Connect, exactly-once {'enabled' if exactly_once else 'disabled'}")
            self._systems[name] = await self._running.enter_async_context(
                connect(
                    self._folder / f"{name}-{next(self._names)}",
                    self.bootstrap,
                    exactly_once=exactly_once,
                    properties=self._replicated(),
                )
            )
        return self._systems[name]

    def _replicated(self) -> Mapping[str, str]:
        return {f"{topic}.storage.replication.factor": str(self.brokers) for topic in STORAGE}

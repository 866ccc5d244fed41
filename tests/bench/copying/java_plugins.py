"""Java plugins in both systems: Apache's file connectors, Debezium's PostgreSQL source and its JDBC sink.

Each row starts both systems for itself. The first measurement is cold, of machines that have compiled nothing yet; the
rounds after it are warm. Both are exactly-once for sources.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import psycopg

from bench.copying import java_data, quickness, throughput
from bench.measuring.figures import Figure, alone, beside, compared, number, percentile
from bench.measuring.rounds import OURS, interleaved, lateness
from bench.measuring.systems import System, at_rest, connect, create, delete, keelman, pss_mb, running
from support.eventually import eventually
from support.java.debezium import COPIED, sink_config, slot_of, source_config, topic_of
from support.java.numbered_rows import NumberedRows
from support.java.published import FILE_SINK, FILE_SOURCE, FILES, JDBC, POSTGRES, plugin_path
from support.servers.postgresql import PostgresqlServer, running_postgresql

if TYPE_CHECKING:
    from bench.rows import Bench

SNAPSHOT_ROWS, CHANGES, UPSERTS = 1_000_000, 200_000, 200_000
PER_SECOND, LATENCY_SECONDS = 1000, 15
SMALL_TASKS = 20
SETTLED_SECONDS = 15.0
PATIENCE = 900.0
PEER = throughput.SHIPPED


@dataclass
class Sides:
    """Both systems with the plugins, and a database server."""

    bench: Bench
    ours: System
    peer: System
    server: PostgresqlServer
    runs: int = 0

    def name(self, what: str) -> str:
        """A name for a connector that no other run has."""
        self.runs += 1
        return f"{what}-{self.runs}"


@asynccontextmanager
async def sides(bench: Bench, row: str, **more: str) -> AsyncIterator[Sides]:
    """Starts all for one row; `more` are properties of our worker, with `_` for `.`."""
    bench.say(f"{row}: starting both systems with Java plugins, and PostgreSQL")
    path = {"plugin.path": await plugin_path(POSTGRES, JDBC, FILES)}
    stem = f"{row}-{time.monotonic_ns()}"
    with running_postgresql() as server:
        async with (
            keelman(bench.folder / f"ours-{stem}", bench.bootstrap, plugin_path=path["plugin.path"], **more) as ours,
            connect(bench.folder / f"peer-{stem}", bench.bootstrap, exactly_once=True, properties=path) as peer,
        ):
            yield Sides(bench, ours, peer, server)


Measure = Callable[[Sides, System], Awaitable[float]]


def rates(row: str, goal: str, measure: Measure) -> Callable[[Bench], Awaitable[list[Figure]]]:
    """A row of records a second, cold and warm."""

    async def measured(bench: Bench) -> list[Figure]:
        async with sides(bench, row) as both:

            async def one(of: str) -> float:
                await at_rest(both.ours, both.peer)
                return await measure(both, both.ours if of == OURS else both.peer)

            def say(turn: int, of: str, rate: float) -> None:
                bench.say(f"{row} {'cold' if turn < 0 else bench.turn(turn)}: {of}: {number(rate)}/s")

            cold: dict[str, float] = {}

            def note(turn: int, of: str, rate: float) -> None:
                say(turn, of, rate)
                cold.setdefault(of, rate)

            result = await interleaved(bench.options.rounds, [PEER], one, statistics.median, note, warm_up=1)
        warm = compared(row, "records/s", result[OURS], {PEER: result[PEER]}, goal)
        return [*warm, *compared(f"{row}-cold", "records/s", [cold[OURS]], {PEER: [cold[PEER]]}, "")]

    return measured


async def rate(level: Callable[[], int], expected: int) -> float:
    """Records a second, from the first observed to the last; from the call if all came between two looks."""
    begun, deadline = time.monotonic(), time.monotonic() + PATIENCE
    first: tuple[float, int] | None = None
    while True:
        value, now = await asyncio.to_thread(level), time.monotonic()
        if value >= expected:
            break
        if value and first is None:
            first = (now, value)
        assert now < deadline, f"only {value} of {expected} after {PATIENCE} s"
        await asyncio.sleep(0.05)
    since, had = first or (begun, 0)
    return (expected - had) / max(now - since, 1e-3)


def _class_of(system: System, name: str) -> Mapping[str, str]:
    """Our system has its own class of that name: the prefix selects Java's."""
    return {"connector.class": f"java:{name}" if system.name == "keelman" else name}


async def file_source(both: Sides, system: System) -> float:
    """Apache's file source."""
    return await throughput.file_source(system, both.bench.load, _class_of(system, FILE_SOURCE))


async def file_sink(both: Sides, system: System) -> float:
    """Apache's file sink."""
    return await throughput.file_sink(system, both.bench.load, _class_of(system, FILE_SINK))


@asynccontextmanager
async def followed(both: Sides, system: System, rows: NumberedRows, **more: str) -> AsyncIterator[str]:
    """A Debezium connector for the block; yields its topic. Afterwards the server forgets it."""
    name = both.name("followed")
    topic = topic_of(name)
    both.bench.topics.create(topic, 1)
    await create(system, name, source_config(rows, name, heartbeat_interval_ms="0", **more))
    try:
        yield topic
    finally:
        await delete(system, name)
        await eventually(lambda: _forgotten(rows, slot_of(name)), seconds=60, what="the replication slot is dropped")
        both.bench.topics.delete(topic)


def _forgotten(rows: NumberedRows, slot: str) -> bool:
    query = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s AND NOT active"
    with rows.connected() as connection:
        connection.execute(query, (slot,))
        return connection.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", (slot,)).fetchone() is None


async def snapshot(both: Sides, system: System) -> float:
    """Rows of a table that is read from its beginning."""
    count = min(SNAPSHOT_ROWS, both.bench.options.records)
    rows = await asyncio.to_thread(_filled, both, count)
    async with followed(both, system, rows) as topic:
        return await rate(lambda: both.bench.topics.visible(topic, [0]), count)


def _filled(both: Sides, count: int) -> NumberedRows:
    rows = NumberedRows(both.server.database())
    rows.add(count)
    return rows


async def stream(both: Sides, system: System) -> float:
    """Changes that were made while the connector was stopped."""
    count, at_once = min(CHANGES, both.bench.options.records), 1000
    rows = await asyncio.to_thread(_filled, both, at_once)
    async with followed(both, system, rows, snapshot_mode="no_data") as topic:
        name = topic.partition(".")[0]
        await _streams(system, rows, name)
        await system.ask("PUT", f"/connectors/{name}/stop")
        await eventually(lambda: not _is_active(rows, slot_of(name)), seconds=120, what=f"{name} is stopped")
        for _ in range(-(-count // at_once)):
            await asyncio.to_thread(rows.change, 0, at_once)
        await system.ask("PUT", f"/connectors/{name}/resume")
        return await rate(lambda: both.bench.topics.visible(topic, [0]), count)


async def _streams(system: System, rows: NumberedRows, name: str) -> None:
    await running(system, name)
    await eventually(lambda: _is_active(rows, slot_of(name)), seconds=120, what=f"{name} follows the log")


def _is_active(rows: NumberedRows, slot: str) -> bool:
    with rows.connected() as connection:
        query = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active"
        return connection.execute(query, (slot,)).fetchone() is not None


async def stream_latency(bench: Bench) -> list[Figure]:
    """Milliseconds from a change to its sight in the topic, at a thousand changes a second."""
    seconds = max(2, min(LATENCY_SECONDS, bench.options.records // PER_SECOND))
    async with sides(bench, "debezium-stream-p99") as both:

        async def one(of: str) -> list[float]:
            system = both.ours if of == OURS else both.peer
            rows = await asyncio.to_thread(_filled, both, PER_SECOND)
            async with followed(both, system, rows, snapshot_mode="no_data") as topic:
                await _streams(system, rows, topic.partition(".")[0])
                return await asyncio.to_thread(java_data.latencies, bench.bootstrap, topic, rows, seconds, PER_SECOND)

        def say(turn: int, of: str, took: list[float]) -> None:
            bench.say(f"debezium-stream-p99 {bench.turn(turn)}: {of}: {percentile(took, 0.99):.1f} ms")

        result = await interleaved(bench.options.rounds, [PEER], one, lateness, say, warm_up=1)
    mine, theirs = ([percentile(took, 0.99) for took in result[of]] for of in (OURS, PEER))
    return compared("debezium-stream-p99", "ms", mine, {PEER: theirs}, "<= 0.9")


async def upserts(both: Sides, system: System) -> float:
    """Records that a sink writes into a table."""
    count, topic = min(UPSERTS, both.bench.options.records), "upserts"
    if not both.bench.topics.partitions(topic):
        both.bench.topics.create(topic, 1)
        await asyncio.to_thread(java_data.fill_upserts, both.bench.bootstrap, topic, count)
    target, name = both.server.database(), both.name("jdbc")
    await create(system, name, sink_config(target, topic))
    try:
        return await rate(lambda: _rows_of(target), count)
    finally:
        await delete(system, name)


def _rows_of(target: str) -> int:
    try:
        with psycopg.connect(target, autocommit=True) as connection:
            result = connection.execute(f"SELECT count(*) FROM {COPIED}").fetchone()
            return 0 if result is None else int(result[0])
    except psycopg.errors.UndefinedTable:
        return 0


async def memory(bench: Bench) -> list[Figure]:
    """The memory of a Debezium task's slot, and of the slot that twenty small tasks of one plugin share.

    Beside that the memory that they add to an idle system, with the plugin hosts of ours.
    """
    figures: list[Figure] = []
    async with sides(bench, "java-memory", keelman_plugin_tasks_per_slot=str(SMALL_TASKS)) as both:
        added: dict[str, list[float]] = {}
        slots: list[float] = []
        await asyncio.sleep(SETTLED_SECONDS)
        for system in (both.ours, both.peer):
            rows = await asyncio.to_thread(_filled, both, 10_000)
            idle = pss_mb(system.processes())
            async with followed(both, system, rows) as topic:
                await rate(lambda topic=topic: bench.topics.visible(topic, [0]), 10_000)
                await asyncio.sleep(SETTLED_SECONDS)
                added.setdefault(system.name, []).append(pss_mb(system.processes()) - idle)
                if system is both.ours:
                    slots.append(pss_mb(_machines(system)))
            await asyncio.sleep(SETTLED_SECONDS)
            idle = pss_mb(system.processes())
            names = [both.name("small") for _ in range(SMALL_TASKS)]
            bench.topics.create(f"small-{system.name}", 1)
            for name in names:
                file = bench.folder / f"{name}.txt"
                file.write_text("1 line\n")
                config = {**quickness.config(file, f"small-{system.name}"), **_class_of(system, FILE_SOURCE)}
                config["keelman.park.after.ms"] = "-1"
                await create(system, name, config)
                await running(system, name, seconds=300)  # one after the other: twenty machines at once are slow
            await asyncio.sleep(SETTLED_SECONDS)
            added[system.name].append(pss_mb(system.processes()) - idle)
            if system is both.ours:
                slots.append(pss_mb(_machines(system)))
            for name in names:
                await delete(system, name)
        for at, (row, limit) in enumerate((("java-memory-debezium", "<= 260"), ("java-memory-20", "<= 700"))):
            figures.append(alone(row, "MB", [slots[at]], slots[at], limit))
            figures.append(beside(f"{row}-added", "MB", added[both.ours.name][at], added[both.peer.name][at], ""))
    return figures


def _machines(system: System) -> list[psutil.Process]:
    """The system's slots that have a Java machine."""
    machines = []
    for process in system.processes():
        with suppress(psutil.Error):
            maps = process.memory_maps() if process.name().startswith("keelman slot") else ()
            if any("libjvm" in single_map.path for single_map in maps):
                machines.append(process)
    return machines


async def start(bench: Bench) -> list[Figure]:
    """From the order to the first record of a Java task."""
    async with sides(bench, "java-start") as both:
        folder: Path = bench.folder
        ordered, _ = await quickness.start(
            both.ours,  # type: ignore[arg-type]
            bench.topics,
            bench.bootstrap,
            folder,
            samples=min(10, bench.options.samples),
            more=_class_of(both.ours, FILE_SOURCE),
        )
    # The first finds no machine; the others the slot that the one before has left.
    return [
        alone("java-start", "ms", ordered[:1], ordered[0], "<= 1500"),
        alone("java-start-warm", "ms", ordered[1:], statistics.median(ordered[1:]), ""),
    ]


ROWS: Mapping[str, Callable[[Bench], Awaitable[list[Figure]]]] = {
    "java-file-source": rates("java-file-source", ">= 2", file_source),
    "debezium-snapshot": rates("debezium-snapshot", ">= 1.0", snapshot),
    "debezium-stream": rates("debezium-stream", ">= 1.1", stream),
    "debezium-stream-p99": stream_latency,
    "jdbc-sink": rates("jdbc-sink", ">= 1.0", upserts),
    "java-file-sink": rates("java-file-sink", ">= 1.0", file_sink),
    "java-memory": memory,
    "java-start": start,
}

"""Couchbase: documents to a topic, exactly-once, beside the official Java client that only counts them.

The server is a process that sends ready frames from memory; its own rate is measured first. Also: the memory that a
copy adds, the rate that the connector of 2016 holds, and the cost of 1,024 vbuckets while nothing changes.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import statistics
import struct
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from bench.copying.java_plugins import rate
from bench.measuring.figures import Figure, alone, compared, number
from bench.measuring.rounds import OURS, interleaved
from bench.measuring.systems import System, cpu_seconds, create, delete, keelman, pss_mb, running
from keelman.couchbase.frames import Opcode, encoded
from keelman.runtime.java.installation import find
from keelman.runtime.processes.die_with_parent import tethered
from support.couchbase import java_client
from support.couchbase.recorded import frame_bytes

if TYPE_CHECKING:
    from bench.rows import Bench

DOCUMENTS, VBUCKETS = 1_000_000, 1024
WANTED = DOCUMENTS // VBUCKETS * VBUCKETS
POLLING = "couchbase.persistence.polling.interval"
TEXT, JSON, BYTES = (
    f"org.apache.kafka.connect.{item}Converter" for item in ("storage.String", "json.Json", "converters.ByteArray")
)
JAVA = "Java client, counting"
RATE, RATE_SECONDS, IDLE_SECONDS, REST_SECONDS = 5000, 20.0, 20.0, 15.0
SAID_SECONDS = 0.05
OFFICIAL = "com.couchbase.connect.kafka.CouchbaseSourceConnector"
FIRST = "org.apache.kafka.connect.couchbase.CouchbaseSourceConnector"
_NUMBERS = itertools.count(1)


async def measured(bench: Bench) -> list[Figure]:
    """All figures, on a worker of its own."""
    folder = bench.folder / f"couchbase-{time.monotonic_ns()}"
    async with keelman(folder, bench.bootstrap, exactly_once_source_support="enabled") as ours:
        async with served(DOCUMENTS) as seeds:
            figures = [await asyncio.to_thread(_server, seeds, bench.say)]
            memory = await _memory(bench, ours, seeds)
            figures += [*await _rates(bench, ours, seeds), memory]
            figures.append(await _polled(bench, ours, seeds))
            figures.append(await _held_rate(bench, ours, seeds))
        figures += await _idle(bench, ours)
    return figures


@asynccontextmanager
async def served(documents: int) -> AsyncIterator[str]:
    """The server of ready frames in a process of its own; its address."""
    command = [sys.executable, "-m", "support.couchbase.recorded"]
    command += ["--documents", str(documents), "--vbuckets", str(VBUCKETS)]
    process = await asyncio.create_subprocess_exec(
        *tethered(command), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 20)


def official(seeds: str, topic: str) -> dict[str, str]:
    """The configuration of a copy."""
    handler = "com.couchbase.connect.kafka.handler.source.RawJsonSourceHandler"
    return {
        "connector.class": OFFICIAL, "tasks.max": "1", "couchbase.seed.nodes": seeds,
        "couchbase.username": "Administrator", "couchbase.password": "password", "couchbase.bucket": "travel",
        "couchbase.source.handler": handler, "couchbase.topic": topic,
        POLLING: "0", "key.converter": TEXT, "value.converter": BYTES,
    }  # fmt: skip


async def _copied(bench: Bench, system: System, seeds: str, expected: int = WANTED, **more: str) -> float:
    """Documents a second that become visible to readers of committed records."""
    name = topic = f"documents-{next(_NUMBERS)}"
    bench.topics.create(topic)
    await create(system, name, {**official(seeds, topic), **more})
    try:
        partitions = bench.topics.partitions(topic)
        return await rate(lambda: bench.topics.visible(topic, partitions), expected)
    finally:
        await delete(system, name)
        bench.topics.delete(topic)


async def _rates(bench: Bench, ours: System, seeds: str) -> list[Figure]:
    """Ours and the Java client in turn."""
    classes = await java_client.compiled("Count")
    async with _counting(seeds, classes) as count:

        async def one(of: str) -> tuple[float, float]:
            if of != OURS:
                return await count()
            before = cpu_seconds(ours.processes())
            rate = await _copied(bench, ours, seeds)
            return rate, cpu_seconds(ours.processes()) - before

        def say(turn: int, of: str, results: tuple[float, float]) -> None:
            bench.say(f"couchbase {bench.turn(turn)}: {of}: {number(results[0])}/s, {results[1]:.2f} processor seconds")

        def slowness(rounds: object) -> float:
            return 0.0

        result = await interleaved(bench.options.rounds, [JAVA], one, slowness, say, warm_up=bench.options.warm_up)
    mine, theirs = ([rate for rate, _ in result[of]] for of in (OURS, JAVA))
    used, their_used = ([seconds for _, seconds in result[of]] for of in (OURS, JAVA))
    return [
        alone("couchbase", "documents/s", mine, statistics.median(mine), ">= 100000"),
        *compared("couchbase-beside-java", "documents/s", mine, {JAVA: theirs}, ">= 1.5"),
        *compared("couchbase-cpu", "s/million", used, {JAVA: their_used}, ""),
    ]


@asynccontextmanager
async def _counting(seeds: str, classes: list[Path]) -> AsyncIterator[Callable[[], Awaitable[tuple[float, float]]]]:
    """The Java client in one process for all rounds; each call gives documents a second, and processor seconds."""
    path = ":".join(map(str, classes))
    command = [str(find().program), "-Xmx512m", "-cp", path, "Count", seeds, "travel", "Administrator", "password"]
    process = await asyncio.create_subprocess_exec(
        *tethered(command), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip

    async def count() -> tuple[float, float]:
        assert process.stdin is not None
        assert process.stdout is not None
        before = cpu_seconds([psutil.Process(process.pid)])
        process.stdin.write(b"%d\n" % WANTED)
        await process.stdin.drain()
        line = await asyncio.wait_for(process.stdout.readline(), 300)
        assert line, "the Java client ended"
        return WANTED / (int(line) / 1e9), cpu_seconds([psutil.Process(process.pid)]) - before

    try:
        yield count
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _server(seeds: str, say: Callable[[str], None]) -> Figure:
    """The server's rate for a client that only counts bytes."""
    host, _, port = seeds.partition(":")
    with socket.create_connection((host, int(port)), 20) as link:
        link.sendall(encoded(Opcode.SASL_AUTH, key=b"PLAIN", value=b"\0Administrator\0password"))
        link.sendall(encoded(Opcode.SELECT_BUCKET, key=b"travel"))
        link.sendall(encoded(Opcode.DCP_OPEN, extras=struct.pack(">II", 0, 1), key=b"bytes"))
        for vbucket in range(VBUCKETS):
            extras = struct.pack(">IIQQQQQ", 0x10, 0, 0, 2**64 - 1, 0, 0, 0)
            link.sendall(encoded(Opcode.STREAM_REQUEST, status=vbucket, extras=extras))
        link.settimeout(2.0)
        buffer, received, begun = bytearray(1 << 20), 0, time.monotonic()
        last = begun
        with suppress(TimeoutError):
            while result := link.recv_into(buffer):
                received, last = received + result, time.monotonic()
    rate = received / frame_bytes() / (last - begun)
    say(f"couchbase: the server alone: {number(rate)}/s")
    return alone("couchbase-server", "documents/s", [rate], rate, "")


async def _memory(bench: Bench, ours: System, seeds: str) -> Figure:
    """The most memory that a copy adds to our processes, compared with a slot that has copied a document per vbucket.

    Spark's Java machine is left out: it has no part in the copy, and its heap grows by itself.
    """
    async with served(VBUCKETS) as few:
        await _copied(bench, ours, few, VBUCKETS)
    before = most = await asyncio.to_thread(pss_mb, python(ours))

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, await asyncio.to_thread(pss_mb, python(ours)))
            await asyncio.sleep(0.2)

    watching = asyncio.ensure_future(watch())
    try:
        await _copied(bench, ours, seeds)
    finally:
        watching.cancel()
    bench.say(f"couchbase: {most - before:.0f} MB more than the {before:.0f} MB before")
    return alone("couchbase-memory", "MB", [most - before], most - before, "<= 120")


async def _polled(bench: Bench, ours: System, seeds: str) -> Figure:
    """As the official connector by default: polls every 100 ms for persisted changes."""
    before = cpu_seconds(ours.processes())
    rate = await _copied(bench, ours, seeds, **{POLLING: "100ms"})
    used = cpu_seconds(ours.processes()) - before
    bench.say(f"couchbase: with persistence polling {number(rate)}/s, {used:.2f} processor seconds of ours")
    return alone("couchbase-polling", "documents/s", [rate], rate, "")


async def _held_rate(bench: Bench, ours: System, seeds: str) -> Figure:
    """The deviation of the rate from the configured drain rate over some seconds, in percent."""
    name = f"held-{next(_NUMBERS)}"
    topic = f"{name}-travel"
    bench.topics.create(topic)
    config = {
        "connector.class": FIRST, "topic": f"{name}-", "schema.name": "document", "couchbase.nodes": seeds,
        "couchbase.bucket": "travel", "couchbase.username": "Administrator", "couchbase.password": "password",
        "dcp.maximum.drainrate": str(RATE), "key.converter": TEXT, "value.converter": JSON,
    }  # fmt: skip
    await create(ours, name, config)
    try:
        await running(ours, name)
        partitions = bench.topics.partitions(topic)
        await asyncio.sleep(5)
        begun, at_begin = time.monotonic(), await asyncio.to_thread(bench.topics.visible, topic, partitions)
        await asyncio.sleep(RATE_SECONDS)
        rate = (await asyncio.to_thread(bench.topics.visible, topic, partitions) - at_begin) / (
            time.monotonic() - begun
        )
    finally:
        await delete(ours, name)
        bench.topics.delete(topic)
    off = 100 * abs(rate - RATE) / RATE
    bench.say(f"couchbase: a drain rate of {RATE} gives {rate:,.0f}/s")
    return alone("couchbase-drain-rate-off", "%", [off], off, "<= 2")


async def _idle(bench: Bench, ours: System) -> list[Figure]:
    """The processor use of a task that has copied everything, in its slot and parked, above the worker's own use."""
    results = []
    async with served(VBUCKETS) as seeds:
        for kind, park in (("idle", "-1"), ("parked", "1000")):
            name = f"{kind}-{next(_NUMBERS)}"
            bench.topics.create(name)
            await asyncio.sleep(REST_SECONDS)  # starting a replacement slot is no cost of the task
            without = await _percent(bench, ours)
            await create(ours, name, {**official(seeds, name), "keelman.park.after.ms": park})
            try:
                await running(ours, name)
                await asyncio.sleep(REST_SECONDS)
                percent = await _percent(bench, ours) - without
            finally:
                await delete(ours, name)
                bench.topics.delete(name)
            bench.say(f"couchbase: {VBUCKETS} vbuckets {kind}: {percent:.2f} % of a core")
            results.append(alone(f"couchbase-{kind}", "% of a core", [percent], percent, "<= 2"))
    return results


async def _percent(bench: Bench, system: System) -> float:
    """The percentage of a core used over some seconds; reports the processes that used it."""
    before, begun = _used(system), time.monotonic()
    await asyncio.sleep(IDLE_SECONDS)
    used = {process: seconds - before.get(process, 0.0) for process, seconds in _used(system).items()}
    took = time.monotonic() - begun
    said = ", ".join(f"{process[1]} {seconds:.2f} s" for process, seconds in used.items() if seconds >= SAID_SECONDS)
    bench.say(f"couchbase: in {took:.0f} s: {said or 'nothing'}")
    return 100 * sum(used.values()) / took


def _used(system: System) -> dict[tuple[int, str], float]:
    """Processor seconds of each process, by its pid and command line."""
    answer = {}
    for process in python(system):
        with suppress(psutil.NoSuchProcess):
            answer[process.pid, " ".join(" ".join(process.cmdline()).split())[-40:]] = cpu_seconds([process])
    return answer


def python(system: System) -> list[psutil.Process]:
    """Its processes without Spark's Java machine."""
    actual_python = []
    for process in system.processes():
        with suppress(psutil.NoSuchProcess):
            if process.name() != "java":
                actual_python.append(process)
    return actual_python

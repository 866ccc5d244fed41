"""Runs the benchmarks: `python -m bench [name ...]` with `tests` on the path; `make bench [BENCH=name]`."""

from __future__ import annotations

import argparse
import asyncio
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from bench import many, quickness, throughput, trickle
from bench.data import Topics, write_lines
from bench.figures import Figure, alone, compared, number, percentile, save, show
from bench.systems import Keelman, System, connect, keelman
from keelman.testing.broker import running_broker

NAMES = ("mirror-eos", "file-source", "file-sink", "trickle", "active-300", "wake", "start")
RESULTS = Path("build/bench.json")


class Bench:
    """One run: a broker, both systems started as the rows need them, and the figures so far."""

    def __init__(self, stack: AsyncExitStack, console: Console, folder: Path, bootstrap: str, options: Any) -> None:
        self.stack, self.console, self.folder, self.bootstrap, self.options = stack, console, folder, bootstrap, options
        self.topics = Topics(bootstrap)
        self.figures: list[Figure] = []
        self._systems: dict[str, System] = {}
        self._load: throughput.Load | None = None

    def say(self, text: str) -> None:
        """One line of progress, with the time."""
        self.console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {text}", highlight=False)

    @property
    def load(self) -> throughput.Load:
        """The records to copy, made when they are first needed."""
        if self._load is None:
            count, file = self.options.records, self.folder / "lines.txt"
            self.say(f"making {count:,} records of 100 bytes, in a file and in a topic")
            write_lines(file, count)
            self.topics.create("records")
            self.topics.fill("records", count)
            self._load = throughput.Load(self.topics, self.bootstrap, count, "records", file, self.folder)
        return self._load

    async def ours(self) -> Keelman:
        """Our system, started once."""
        if "ours" not in self._systems:
            self.say("starting keelman: a worker and its Spark service")
            self._systems["ours"] = await self.stack.enter_async_context(
                keelman(self.folder / "keelman", self.bootstrap)
            )
        return self._systems["ours"]  # type: ignore[return-value]

    async def peer(self, *, exactly_once: bool) -> System:
        """Kafka Connect with or without exactly-once, each started once."""
        name = "connect-eos" if exactly_once else "connect-alo"
        if name not in self._systems:
            self.say(f"starting Apache Kafka Connect, exactly-once {'enabled' if exactly_once else 'disabled'}")
            self._systems[name] = await self.stack.enter_async_context(
                connect(self.folder / name, self.bootstrap, exactly_once=exactly_once)
            )
        return self._systems[name]

    async def rates(
        self,
        name: str,
        measure: Callable[[System, throughput.Load, Mapping[str, str]], Awaitable[float]],
        variants: Mapping[str, Mapping[str, str]],
        *,
        exactly_once: bool,
    ) -> tuple[list[float], dict[str, list[float]]]:
        """Ours and each variant of the peer in turn, round after round."""
        load, ours, peer = self.load, await self.ours(), await self.peer(exactly_once=exactly_once)
        mine: list[float] = []
        theirs: dict[str, list[float]] = {variant: [] for variant in variants}
        for turn in range(self.options.rounds):
            mine.append(await measure(ours, load, {}))
            self.say(f"{name} {turn + 1}/{self.options.rounds}: keelman {number(mine[-1])}/s")
            for variant, more in variants.items():
                theirs[variant].append(await measure(peer, load, more))
                self.say(
                    f"{name} {turn + 1}/{self.options.rounds}: connect, {variant}: {number(theirs[variant][-1])}/s"
                )
        return mine, theirs

    async def mirror_eos(self) -> None:
        """Kafka to Kafka, exactly-once."""
        mine, theirs = await self.rates("mirror-eos", throughput.mirror, throughput.MIRROR_PEERS, exactly_once=True)
        shipped = {throughput.SHIPPED: ("mirror-eos-as-shipped", ">= 3.5")}
        self.figures += compared("mirror-eos", "records/s", mine, theirs, ">= 1.3", shipped)

    async def file_source(self) -> None:
        """File to Kafka; the peer is at-least-once."""
        variants = throughput.FILE_SOURCE_PEERS
        mine, theirs = await self.rates("file-source", throughput.file_source, variants, exactly_once=False)
        self.figures += compared("file-source", "records/s", mine, theirs, ">= 1.8")

    async def file_sink(self) -> None:
        """Kafka to file; the peer is at-least-once."""
        variants = throughput.FILE_SINK_PEERS
        mine, theirs = await self.rates("file-sink", throughput.file_sink, variants, exactly_once=False)
        self.figures += compared("file-sink", "records/s", mine, theirs, ">= 1.6")

    async def trickle(self) -> None:
        """Twenty records a second, exactly-once."""
        load, ours, peer = self.load, await self.ours(), await self.peer(exactly_once=True)
        variants = {throughput.SHIPPED: {}, "1 MB batches, linger 5": throughput.OVERRIDES}
        p50: dict[str, list[float]] = {}
        p99: dict[str, list[float]] = {}
        for turn in range(self.options.rounds):
            for name, system, more in (("ours", ours, {}), *((v, peer, m) for v, m in variants.items())):
                took = await trickle.trickle(system, load, more, records=self.options.trickle)
                p50.setdefault(name, []).append(statistics.median(took))
                p99.setdefault(name, []).append(percentile(took, 0.99))
                self.say(
                    f"trickle {turn + 1}/{self.options.rounds}: {name}: p50 {p50[name][-1]:.1f} ms, "
                    f"p99 {p99[name][-1]:.1f} ms"
                )
        mine50, mine99 = p50.pop("ours"), p99.pop("ours")
        self.figures += compared("trickle-p50", "ms", mine50, p50, "<= 0.9")
        self.figures += compared("trickle-p99", "ms", mine99, p99, "<= 0.9")

    async def active_300(self) -> None:
        """Many small connectors: memory. Both systems are started anew for it, one after the other."""
        count = self.options.connectors
        self.say(f"{count} connectors with a record a second on keelman")
        async with keelman(self.folder / "keelman-many", self.bootstrap) as ours:
            mine, mine_cpu = await many.active(ours, self.topics, self.folder, count, seconds=20)
        self.say(f"keelman: {mine:.0f} MB, {mine_cpu:.2f} processors; now on Apache Kafka Connect")
        async with connect(self.folder / "connect-many", self.bootstrap, exactly_once=True) as peer:
            theirs, their_cpu = await many.active(peer, self.topics, self.folder, count, seconds=20)
        self.say(f"connect: {theirs:.0f} MB, {their_cpu:.2f} processors")
        name = f"active-{count}"
        self.figures += compared(name, "MB", [mine], {throughput.SHIPPED: [theirs]}, "<= 0.35")
        self.figures += compared(f"{name}-cpu", "processors", [mine_cpu], {throughput.SHIPPED: [their_cpu]}, "")

    async def wake(self) -> None:
        """A parked task gets data."""
        samples = self.options.samples
        took = await quickness.wake(await self.ours(), self.topics, self.bootstrap, self.folder, samples=samples)
        self.figures.append(alone("wake-p50", "ms", took, statistics.median(took), ""))
        self.figures.append(alone("wake", "ms", took, percentile(took, 0.99), "<= 500"))

    async def start(self) -> None:
        """A new task on a warm slot."""
        samples = self.options.samples
        ordered, asked = await quickness.start(
            await self.ours(), self.topics, self.bootstrap, self.folder, samples=samples
        )
        self.figures.append(alone("start", "ms", ordered, statistics.median(ordered), "<= 150"))
        self.figures.append(alone("start-from-request", "ms", asked, statistics.median(asked), ""))


async def main() -> int:
    """Runs what is asked for, prints the table, writes build/bench.json; the exit code says only whether all ran."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], help="rows to measure; all when none is named")
    parser.add_argument("--records", type=int, default=5_000_000, help="records of the throughput rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trickle", type=int, default=400, help="records of one round of the trickle")
    parser.add_argument("--connectors", type=int, default=300)
    parser.add_argument("--samples", type=int, default=60, help="samples of wake and start")
    options = parser.parse_args()
    console = Console(width=200)
    folder = Path(tempfile.mkdtemp(prefix="keelman-bench-"))
    begun = time.monotonic()
    try:
        async with AsyncExitStack() as stack:
            bootstrap = await stack.enter_async_context(running_broker(folder / "broker", lasting=True))
            bench = Bench(stack, console, folder, bootstrap, options)
            try:
                for name in options.names or NAMES:
                    await getattr(bench, name.replace("-", "_"))()
            finally:
                if bench.figures:
                    show(bench.figures, console)
                    save(bench.figures, RESULTS, machine())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    bench.say(f"took {(time.monotonic() - begun) / 60:.1f} minutes; figures in {RESULTS}")
    return 0


def machine() -> dict[str, object]:
    """What it was measured on."""
    memory = round(psutil.virtual_memory().total / 2**30)
    load = [round(value, 1) for value in psutil.getloadavg()]
    when = time.strftime("%Y-%m-%d %H:%M")
    return {
        "processors": psutil.cpu_count(),
        "memory_gib": memory,
        "load": load,
        "when": when,
        "system": platform.platform(),
    }


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))

"""The rows: the measurement, the system, and the goal of each."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from bench.clusters import backlog_scaling, cluster_start, dedicated, managed, ohara, plane, scaling, state_scale
from bench.copying import avro, couchbase, data_sets, java_plugins, quickness, slow_targets, throughput, trickle
from bench.measuring.data import Topics
from bench.measuring.figures import Figure, alone, beside, compared, number, percentile
from bench.measuring.rounds import OURS, interleaved, picked, settled, slowness
from bench.measuring.sites import Site
from bench.measuring.systems import Keelman, System, connect, cpu_seconds, keelman, stolen_seconds
from bench.strangers import row as strangers
from bench.workers import assigning, failover, many, starts, ten_thousand
from support.brokers.broker import running_broker
from support.servers.postgresql import started_postgresql

THREE = "-3-brokers"
"""The suffix of a row that is measured on three brokers."""
STATE = "state-"
"""Before the number of nodes of a row that has a broker of its own."""
PLANE, OHARA = "plane-", "ohara-"
"""Before the number of nodes of a row that has agents, and before the name of one that has a system of its own."""
OWN = {"assign": assigning, "autoscale-20": backlog_scaling, "data-sets": data_sets, "dedicated": dedicated} | {
    "scale-out": scaling, "strangers": strangers,
}  # fmt: skip
"""The rows that have systems of their own."""
STOLEN_SECONDS = 0.5
MAX_WARM_UP = 8
"""Rounds of copies before those that count, where the brokers do not settle earlier."""
MANY_SECONDS = 420.0
"""The limit for a system to start its connectors of active-300."""


class Measured(NamedTuple):
    """One copy.

    Records a second, processor seconds of the system and of the brokers for a million, and seconds for which the
    machine's processors were busy for other machines of its host.
    """

    rate: float
    cpu: float
    brokers: float
    stolen: float


class Bench:
    """One run: brokers and both systems, started as the rows need them, and the figures of the row so far."""

    def __init__(self, stack: AsyncExitStack, console: Console, folder: Path, options: Any) -> None:
        self.console, self.folder, self.options = console, folder, options
        self.figures: list[Figure] = []
        self._measured: set[str] = set()
        self._one = Site(stack, folder / "one", options.records, self.say)
        self._three = Site(stack, folder / "three", options.records, self.say, brokers=3)
        self._site = self._one

    async def measure(self, name: str) -> list[Figure]:
        """The figures of a row. Raises its errors; the next row then starts with systems of its own."""
        self.figures = []
        if name.startswith(STATE):
            await self.state(int(name.removeprefix(STATE)))
            return self.figures
        if name.startswith(PLANE):
            return await plane.measured(name, int(name.removeprefix(PLANE)), self.folder / name, self.say)
        if name == "managed":
            result = await managed.measured(self.folder / name, self.options.managed, self.say)
            return result + await managed.stored(self.folder / f"{name}-stored", self.say)
        if (own := OWN.get(name)) is not None:
            return await own.measured(self.folder / name, self.options.rounds, self.say)
        if name.startswith(OHARA):
            await self.ohara(name)
            return self.figures
        site = self._three if name.endswith(THREE) else self._one
        if site is not self._site:
            await self._site.end_systems()
        self._site = site
        try:
            await site.start()
            if name in java_plugins.ROWS:
                self.figures += await java_plugins.ROWS[name](self)
            else:
                await getattr(self, name.removesuffix(THREE).replace("-", "_"))()
        except BaseException:
            await site.end_systems()
            raise
        self._measured.add(name)
        return self.figures

    def say(self, text: str) -> None:
        """One line of progress, with the time."""
        self.console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {text}", highlight=False)

    def turn(self, turn: int) -> str:
        """The number of the round."""
        return "warm-up" if turn < 0 else f"{turn + 1}/{self.options.rounds}"

    @property
    def bootstrap(self) -> str:
        """The bootstrap address of this row's brokers."""
        return self._site.bootstrap

    @property
    def topics(self) -> Topics:
        """The topics on these brokers."""
        return self._site.topics

    @property
    def load(self) -> throughput.Load:
        """The records to copy, made when they are first needed."""
        return self._site.load

    async def ours(self) -> Keelman:
        """Our system, started once."""
        return await self._site.ours()

    async def peer(self, *, exactly_once: bool) -> System:
        """Kafka Connect with or without exactly-once, each started once."""
        return await self._site.peer(exactly_once=exactly_once)

    async def rates(
        self,
        name: str,
        measure: Callable[[System, throughput.Load, Mapping[str, str]], Awaitable[float]],
        variants: Mapping[str, Mapping[str, str]],
        *,
        exactly_once: bool,
    ) -> tuple[list[float], dict[str, list[float]]]:
        """Measures ours and each variant of the peer in turn, round after round; adds their use of the processors."""
        load, ours, peer = self.load, await self.ours(), await self.peer(exactly_once=exactly_once)

        async def one(of: str) -> Measured:
            system, more = (ours, {}) if of == OURS else (peer, variants[of])
            brokers = self._site.broker_processes
            before, stolen = (cpu_seconds(system.processes()), cpu_seconds(brokers)), stolen_seconds()
            rate = await measure(system, load, more)
            after = cpu_seconds(system.processes()), cpu_seconds(brokers)
            used = [(now - then) * 1e6 / load.count for then, now in zip(before, after, strict=True)]
            return Measured(rate, *used, stolen_seconds() - stolen)

        def say(turn: int, of: str, value: Measured) -> None:
            stolen = f"; {value.stolen:.1f} s stolen by other machines" if value.stolen >= STOLEN_SECONDS else ""
            self.say(
                f"{name} {self.turn(turn)}: {of}: {number(value.rate)}/s, "
                f"{value.cpu:.2f} and the brokers' {value.brokers:.2f} processor seconds a million{stolen}"
            )

        async def warm(of: str) -> Measured:
            result = await one(of)
            say(-1, of, result)
            return result

        await settled(list(variants), warm, lambda value: value.brokers, at_most=MAX_WARM_UP * self.options.warm_up)
        rates = await interleaved(self.options.rounds, list(variants), one, slowness, say)
        self.figures += compared(f"{name}-cpu", "s/million", *picked(rates, lambda value: value.cpu), "")
        return picked(rates, lambda value: value.rate)

    async def mirror_eos(self) -> None:
        """Kafka to Kafka, exactly-once."""
        name, goal = ("mirror-eos", ">= 4.5") if self._site.brokers == 1 else (f"mirror-eos{THREE}", ">= 3")
        mine, theirs = await self.rates(name, throughput.mirror, throughput.MIRROR_PEERS, exactly_once=True)
        shipped = {throughput.SHIPPED: (f"{name}-as-shipped", ">= 3.5" if self._site.brokers == 1 else "")}
        self.figures += compared(name, "records/s", mine, theirs, goal, shipped)

    async def file_source(self) -> None:
        """File to Kafka; the peer is at-least-once."""
        name, goal, variants = "file-source", ">= 2", throughput.FILE_SOURCE_PEERS
        if self._site.brokers > 1:  # where the variant as shipped has a fifth of the other's rate
            name, goal, variants = f"file-source{THREE}", ">= 1.5", throughput.FILE_SOURCE_BEST_PEER
        mine, theirs = await self.rates(name, throughput.file_source, variants, exactly_once=False)
        self.figures += compared(name, "records/s", mine, theirs, goal)

    async def json_smt(self) -> None:
        """File to Kafka through two transforms and JSON, exactly-once on both sides."""
        variants = throughput.FILE_SOURCE_PEERS
        mine, theirs = await self.rates("json-smt", throughput.json_smt, variants, exactly_once=True)
        self.figures += compared("json-smt", "records/s", mine, theirs, ">= 2.5")

    async def avro(self) -> None:
        """File to Kafka through a transform and Avro with a registry, exactly-once on both sides."""
        self.figures += await avro.measured(self)

    async def couchbase(self) -> None:
        """Couchbase to Kafka, exactly-once, beside its Java client that counts."""
        self.figures += await couchbase.measured(self)

    async def file_sink(self) -> None:
        """Kafka to file; the peer is at-least-once."""
        variants = throughput.FILE_SINK_PEERS
        mine, theirs = await self.rates("file-sink", throughput.file_sink, variants, exactly_once=False)
        self.figures += compared("file-sink", "records/s", mine, theirs, ">= 2")

    async def trickle(self) -> None:
        """Twenty records a second, exactly-once."""
        load, ours, peer = self.load, await self.ours(), await self.peer(exactly_once=True)
        variants = {throughput.SHIPPED: {}, "1 MB batches, linger 5": throughput.OVERRIDES}

        async def one(of: str) -> list[float]:
            system, more = (ours, {}) if of == OURS else (peer, variants[of])
            return await trickle.trickle(system, load, more, records=self.options.trickle)

        self.figures += await trickle.measured("trickle", list(variants), one, "<= 0.9", self)

    async def trickle_floor(self) -> None:
        """The same beside a loop in Python that makes the same requests and does nothing else."""
        load, ours, records = self.load, await self.ours(), self.options.trickle

        async def one(of: str) -> list[float]:
            if of == OURS:
                return await trickle.trickle(ours, load, {}, records=records)
            return await trickle.bare_trickle(load, records=records)

        self.figures += await trickle.measured("trickle-floor", [trickle.BARE], one, "", self)

    async def active_300(self) -> None:
        """Many small connectors: memory. Both systems are started afresh for it, one after the other."""
        count = self.options.connectors
        self.say(f"{count} connectors with a record a second on keelman")
        async with keelman(self.folder / "keelman-many", self.bootstrap) as ours:
            mine, mine_cpu, run = await many.active(
                ours, self.topics, self.folder, count, seconds=20, patience=MANY_SECONDS
            )
        assert run == count, f"only {run} of {count} connectors run"
        self.say(f"keelman: {mine:.0f} MB, {mine_cpu:.2f} processors; now on Apache Kafka Connect")
        async with connect(self.folder / "connect-many", self.bootstrap, exactly_once=True) as peer:
            theirs, their_cpu, run = await many.active(
                peer, self.topics, self.folder, count, seconds=20, patience=MANY_SECONDS
            )
        self.say(f"connect: {theirs:.0f} MB, {their_cpu:.2f} processors, {run} of {count} connectors run")
        name, variant = f"active-{count}", throughput.SHIPPED if run == count else f"as shipped, {run} of {count}"
        self.figures += compared(name, "MB", [mine], {variant: [theirs]}, "<= 0.35")
        self.figures += compared(f"{name}-cpu", "processors", [mine_cpu], {variant: [their_cpu]}, "")

    async def wake(self) -> None:
        """A parked task gets data."""
        samples = self.options.samples
        took = await quickness.wake(await self.ours(), self.topics, self.bootstrap, self.folder, samples=samples)
        self.figures.append(alone("wake-p50", "ms", took, statistics.median(took), ""))
        self.figures.append(alone("wake", "ms", took, percentile(took, 0.99), "<= 500"))

    async def start(self) -> None:
        """Measures a new task on a warm slot."""
        samples = self.options.samples
        ordered, request = await quickness.start(
            await self.ours(), self.topics, self.bootstrap, self.folder, samples=samples
        )
        self.figures.append(alone("start", "ms", ordered, statistics.median(ordered), "<= 150"))
        self.figures.append(alone("start-from-request", "ms", request, statistics.median(request), ""))

    async def worker_start(self) -> None:
        """Workers that start by themselves, into a group whose topics exist; then the memory of an idle worker."""
        mine: list[float] = []
        theirs: list[float] = []
        for turn in range(self.options.rounds + 1):
            for took, make in ((mine, starts.alone), (theirs, starts.shipped)):
                worker = make(self.folder / f"start-{make.__name__}", self.bootstrap)
                try:
                    took.append(await starts.start(worker))
                    self.say(f"worker-start {turn}/{self.options.rounds}: {worker.name}: {took[-1]:.2f} s")
                    if turn == self.options.rounds:
                        took.append(await starts.idle_pss(worker))
                finally:
                    await worker.end()
        mb, their_mb = mine.pop(), theirs.pop()
        # Not the first of each: it makes the topics.
        self.figures += compared("worker-start", "s", mine[1:], {throughput.SHIPPED: theirs[1:]}, "<= 0.6")
        self.figures.append(beside("worker-pss", "MB", mb, their_mb, "<= 120"))

    async def cluster_start(self) -> None:
        """A worker cluster over three agents."""
        self.figures += await cluster_start.measured(
            self.folder / "cluster-start", self.bootstrap, self.options.rounds, self.say
        )

    async def create(self) -> None:
        """New connectors, four clients at once, without exactly-once and with it."""
        count = self.options.samples
        ours = await self.ours()
        plain = Keelman(
            self.folder / "keelman-alo",
            self.bootstrap,
            {"exactly.once.source.support": "disabled"},
            spark_at=ours.spark,
        )
        self.topics.create("made", 1)
        try:
            await plain.start()
            for exactly_once, system, name, goal in (
                (False, plain, "create-p50", "<= 0.3"),
                (True, ours, "create-p50-exactly-once", "<= 0.1"),
            ):
                peer = await self.peer(exactly_once=exactly_once)
                took: dict[str, list[float]] = {}
                for _ in range(self.options.rounds):
                    for item in (system, peer):
                        folder = self.folder / f"made-{item.name}"
                        median = statistics.median(await starts.creations(item, "made", folder, count))
                        took.setdefault(item.name, []).append(median)
                        self.say(f"{name}: {item.name}: {median:.0f} ms")
                self.figures += compared(name, "ms", took[system.name], {throughput.SHIPPED: took[peer.name]}, goal)
        finally:
            await plain.end()

    async def idle_10k(self) -> None:
        """One worker with very many parked tasks; then the time of their list. The peer could not hold them."""
        count = self.options.parked
        folder = self.folder / "idle"
        self.say(f"{count:,} connectors, file sources and mirrors, on one worker")
        await ten_thousand.filled(self.bootstrap, self.topics, folder, "idle", count)
        system = ten_thousand.worker(folder, self.bootstrap)
        try:
            await system.start()
            await ten_thousand.parked(system, count, self.options.patience, self.say)
            memory, all_memory, cpu, all_cpu = await ten_thousand.idle(system)
            short = f"{count // 1000}k" if count >= 1000 else str(count)
            for name, unit, value, limit in (
                (f"idle-{short}-memory", "MB", memory, "<= 1073"),
                (f"idle-{short}-cpu", "% of a core", cpu, "<= 2"),
                (f"idle-{short}-memory-with-spark", "MB", all_memory, ""),
                (f"idle-{short}-cpu-with-spark", "% of a core", all_cpu, ""),
            ):
                self.figures.append(alone(name, unit, [value], value, limit))
            self.say(f"idle-{short}: {memory:,.0f} MB, {cpu:.2f} % of a core; now the lists")
            took = await ten_thousand.lists(system, count)
            self.figures.append(alone(f"list-{short}-p50", "ms", took, statistics.median(took), ""))
            self.figures.append(alone(f"list-{short}", "ms", took, percentile(took, 0.99), "<= 300"))
        finally:
            await system.end()

    async def slow_targets(self) -> None:
        """Backlogs behind a quota, one task and fifty that share it."""
        ours = await self.ours()
        for quota, tasks in ((100_000, 1), (700_000, 1), (700_000, 50)):
            name = f"slow-{quota // 1000}k-{tasks}"
            self.say(f"{name}: {tasks} tasks with a backlog share {quota:,} bytes a second")
            took, share = await slow_targets.copied(
                ours, self.topics, self.bootstrap, self.folder, tasks=tasks, quota=quota
            )
            self.figures.append(alone(f"{name}-first-commit", "s", took, max(took), "<= 30"))
            self.figures.append(alone(f"{name}-of-quota", "%", [100 * share], 100 * share, ">= 90"))

    async def state(self, nodes: int) -> None:
        """The state service alone, with this many nodes and twice as many worker clusters."""
        size, folder = state_scale.Size(nodes), self.folder / f"state-{nodes}"
        for kind in ("sqlite", "postgresql"):
            with started_postgresql(is_safe=True) if kind != "sqlite" else nullcontext() as database:
                url = str(folder / "state.db") if database is None else database()
                name = f"state-{nodes}" if database is None else f"state-{nodes}-postgresql"
                async with running_broker(folder / f"{kind}-broker") as bootstrap:
                    self.figures += await state_scale.measured(
                        name, url, size, folder / kind, bootstrap=bootstrap, say=self.say
                    )

    async def ohara(self, name: str) -> None:
        """The Ohara API, on a system of its own."""
        folder = self.folder / name
        if name == "ohara-start":
            self.figures += await ohara.start(folder, self.options.rounds, self.say)
        else:
            self.figures += await {"ohara-calls": ohara.calls, "ohara-clients": ohara.clients}[name](folder, self.say)

    async def list_10k(self) -> None:
        """The lists of idle-10k, which measures them last."""
        if "idle-10k" not in self._measured:
            await self.idle_10k()

    async def failover(self) -> None:
        """One of three workers is killed: with its agent, without an agent, and of the peer's."""
        took: dict[str, float] = {}
        silent: dict[str, float] = {}
        for name, group in (("agent", failover.with_agent), ("alone", failover.ours), ("connect", failover.theirs)):
            self.say(f"failover: three workers, {name}")
            async with group(self.folder / f"failover-{name}", self.bootstrap) as members:
                kill_one = await failover.kill_one(name, members, self.topics, self.bootstrap, self.folder)
                took[name], silent[name] = kill_one
            self.say(f"failover: {name}: {took[name]:.1f} s, the longest silence {silent[name]:.1f} s")
        self.figures.append(beside("failover-with-agent", "s", took["agent"], took["connect"], "<= 5"))
        self.figures.append(beside("failover-without-agent", "s", took["alone"], took["connect"], "<= 15"))
        self.figures.append(beside("failover-with-agent-silence", "s", silent["agent"], silent["connect"], ""))
        self.figures.append(beside("failover-without-agent-silence", "s", silent["alone"], silent["connect"], ""))

    async def takeover(self) -> None:
        """A group of the peer's taken over by ours, and back."""
        there, back, lost, doubled = await failover.takeover(self.topics, self.bootstrap, self.folder)
        for name, unit, value, limit in (
            ("takeover-lost", "records", lost, "<= 0"),
            ("takeover-doubled", "records", doubled, "<= 0"),
            ("takeover", "s", there, ""),
            ("takeover-back", "s", back, ""),
        ):
            self.figures.append(alone(name, unit, [value], value, limit))

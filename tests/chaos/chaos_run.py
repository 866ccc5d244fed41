"""One scenario: paths copy, a fault strikes, all arrives and is stopped cleanly, and the oracle judges."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from chaos.chaos_ends import Ends
from chaos.chaos_faults import Fault
from chaos.chaos_feed import Feed, Stranger, Watch
from chaos.chaos_kafka import Topics
from chaos.chaos_paths import PATHS, Run
from chaos.chaos_scene import Scene
from chaos.chaos_system import GROUP, System
from keelman.runtime.supervise import Siblings
from support.eventually import eventually
from support.oracle import STUCK_SECONDS, Report, Sample, judge

ARRIVE_SECONDS = 300.0
STABLE_SECONDS = STUCK_SECONDS + 10
SETTLE_SECONDS = 30.0
NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Outcome:
    """The effect of a fault on one path."""

    path: str
    fault: str
    seed: int
    report: Report
    standstill_seconds: float
    latency_seconds: float | None
    """After it was got over: from fed to visible, the median."""
    notes: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """True when the oracle finds nothing."""
        return self.report.clean

    def row(self) -> dict[str, Any]:
        """The row for the table."""
        counts = {name: verdict.count for name, verdict in self.report.verdicts.items()}
        stored = {"path": self.path, "fault": self.fault, "seed": self.seed, "records": self.report.sent}
        stored |= {"clean": self.clean, **counts}
        stored |= {"standstill_seconds": self.standstill_seconds, "latency_seconds": self.latency_seconds}
        return {**stored, "told": str(self.report), "notes": self.notes}


async def scenario(
    system: System, paths: Sequence[str], fault: Fault, seed: int, *, records: int, seconds: float
) -> list[Outcome]:
    """Runs it; one outcome a path. Raises AssertionError for errors not about records, e.g. a failed start."""
    chance = random.Random(f"{fault.name}/{seed}")
    topics = await asyncio.to_thread(Topics, system.open_bootstrap)
    number = next(NUMBERS)
    chosen = [p for p in paths if p in fault.paths]
    runs = [PATHS[p](system, system.folder, f"{p.replace(' ', '-').lower()}-{number}", records, seed) for p in chosen]
    with contextlib.ExitStack() as stack:
        if fault.before is not None:
            stack.enter_context(fault.before(runs))
        for run in runs:
            await asyncio.to_thread(run.prepare, topics)
            result = await system.ask("POST", "/connectors", {"name": run.name, "config": run.config()})
            assert result.status_code == 201, result.text
        feed = Feed(runs, system.open_bootstrap, seconds, parts=fault.parts)
        mixed = [r.feed_topic for r in runs if r.aborting]
        stranger = Stranger(mixed, system.open_bootstrap) if mixed else None
        scene = Scene(system, runs, feed, Watch(runs, topics), chance, topics, stranger)
        samples = await _copied(scene, fault, topics)
        async with Siblings() as tasks:
            judging = [tasks.start(_judged(scene, run, topics, samples)) for run in runs]
            return [Outcome(r.kind, fault.name, seed, *await j) for r, j in zip(runs, judging, strict=True)]


async def _copied(scene: Scene, fault: Fault, topics: Topics) -> list[Sample]:
    """Waits until all has arrived, or the time is over, and no transaction is open any more."""
    runs, feed, watch, stranger = scene.runs, scene.feed, scene.watch, scene.stranger
    written = {f"{GROUP}-offsets", "__consumer_offsets", *(topic for run in runs for topic in run.transactional)}
    ends = Ends(topics, written)
    async with Siblings() as tasks:
        tasks.start(_in_thread(watch.work))
        tasks.start(scene.look())
        tasks.start(ends.watch())
        noise = tasks.start(_in_thread(stranger.work)) if stranger else None
        try:
            feeding = tasks.start(feed.run())
            await eventually(lambda: all(watch.visible[r.name] > 0 for r in runs), what="the first records are visible")
            await fault.strike(scene)
            with contextlib.suppress(AssertionError):
                await scene.recovered()  # so that many records follow it too
                if fault.brokers > 1:
                    scene.latencies = await scene.measured()
            feed.finish()
            await feeding
            if stranger is not None and noise is not None:
                stranger.stop()
                await noise
            with contextlib.suppress(AssertionError):  # the oracle reports missing records as lost
                await scene.arrived({r.name: r.records for r in runs}, ARRIVE_SECONDS, "all is visible")
            with contextlib.suppress(AssertionError):  # the oracle reports an open transaction as stuck
                await eventually(lambda: ends.stable, seconds=STABLE_SECONDS, every=0.2)
            ends.check()
        finally:
            watch.stop()
            if stranger is not None:
                stranger.stop()
    return ends.samples


async def _in_thread(work: Callable[[], None]) -> None:
    """Runs in a thread of its own: the loop's few threads are for short calls of all scenarios."""
    thread = ThreadPoolExecutor(1)
    try:
        await asyncio.get_running_loop().run_in_executor(thread, work)
    finally:
        thread.shutdown(wait=False)


async def _judged(
    scene: Scene, run: Run, topics: Topics, samples: list[Sample]
) -> tuple[Report, float, float | None, tuple[str, ...]]:
    """The oracle's report, the longest standstill in seconds, the latency after it, and notes.

    Stopped runs have recovered first: a sink whose task is about to come back has not yet reported to its group what it
    wrote.
    """
    system = scene.system

    async def settled() -> bool:
        rows = (await system.ask("GET", f"/connectors/{run.name}/offsets")).json()["offsets"]
        try:
            told = await asyncio.to_thread(run.says, topics, rows)
        except (AssertionError, IndexError):  # nothing exists yet
            return False
        return all(says == is_ for says, is_ in told.values())

    with contextlib.suppress(AssertionError):  # the oracle reports the remaining faults
        await eventually(settled, seconds=SETTLE_SECONDS, every=0.2)
    await system.ask("PUT", f"/connectors/{run.name}/stop")

    async def stopped() -> bool:
        status = (await system.ask("GET", f"/connectors/{run.name}/status")).json()
        return status["connector"]["state"] == "STOPPED" and not status["tasks"]

    await eventually(stopped, what=f"{run.name} is stopped")
    offsets: list[dict[str, Any]] = (await system.ask("GET", f"/connectors/{run.name}/offsets")).json()["offsets"]
    says = await asyncio.to_thread(run.says, topics, offsets)
    seen = await asyncio.to_thread(run.seen, topics)
    held = [value for at in run.read for _, value in await asyncio.to_thread(topics.read, at)]
    assert len(held) == len(set(held)), f"{run.kind}: the feed itself wrote {len(held) - len(set(held))} records twice"
    mine = tuple(f"{topic}-" for topic in run.transactional)
    own = [s for s in samples if s.partition.startswith((*mine, "__", GROUP))]
    report = judge(run.sent, seen, samples=own, offsets=says, gone=run.gone)
    await system.ask("DELETE", f"/connectors/{run.name}")
    latency = scene.latencies.get(run.name)
    return report, scene.standstills.get(run.name, 0.0), latency, tuple(scene.notes)

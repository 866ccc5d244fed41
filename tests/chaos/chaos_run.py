"""One scenario: paths copy, an accident strikes, all arrives and is stopped cleanly, and the oracle is asked."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chaos_accidents import Accident
from chaos_feed import Feed, Stranger, Watch
from chaos_kafka import Partition, Topics
from chaos_paths import PATHS, Run
from chaos_scene import Scene
from chaos_system import GROUP, System

from keelman.runtime.supervise import Siblings
from keelman.testing.eventually import eventually
from keelman.testing.oracle import STUCK_SECONDS, Report, Sample, judge

ARRIVE_SECONDS = 240.0
STABLE_SECONDS = STUCK_SECONDS + 10
SAMPLE_SECONDS = 1.0
FRESH_SECONDS = 5.0
BLIND_SECONDS = 30.0
FELT_SECONDS = 1.0
"""An accident is felt by then: what was fed before may have got through in spite of it."""
NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Outcome:
    """What an accident did to one path."""

    path: str
    accident: str
    seed: int
    report: Report
    seconds_to_recover: float | None
    notes: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """True when the oracle finds nothing."""
        return self.report.clean

    def row(self) -> dict[str, Any]:
        """For the table."""
        counts = {name: verdict.count for name, verdict in self.report.verdicts.items()}
        kept = {"path": self.path, "accident": self.accident, "seed": self.seed, "records": self.report.sent}
        kept |= {"clean": self.clean, **counts}
        return {**kept, "seconds_to_recover": self.seconds_to_recover, "told": str(self.report), "notes": self.notes}


async def scenario(
    system: System, paths: Sequence[str], accident: Accident, seed: int, *, records: int, seconds: float
) -> list[Outcome]:
    """Runs it; one outcome a path. Raises AssertionError for what is no matter of the records, e.g. no start."""
    chance = random.Random(f"{accident.name}/{seed}")
    topics = await asyncio.to_thread(Topics, system.bootstrap)
    number = next(NUMBERS)
    chosen = [p for p in paths if p in accident.paths]
    runs = [PATHS[p](system, system.folder, f"{p.replace(' ', '-').lower()}-{number}", records, seed) for p in chosen]
    with contextlib.ExitStack() as stack:
        if accident.before is not None:
            stack.enter_context(accident.before(runs))
        for run in runs:
            await asyncio.to_thread(run.prepare, topics)
            made = await system.ask("POST", "/connectors", {"name": run.name, "config": run.config()})
            assert made.status_code == 201, made.text
        feed = Feed(runs, system.bootstrap, seconds)
        scene = Scene(system, runs, feed, chance)
        samples = await _copied(scene, accident, topics)
        async with Siblings() as tasks:
            judging = [tasks.start(_judged(scene, run, topics, samples)) for run in runs]
            return [Outcome(r.kind, accident.name, seed, *await j) for r, j in zip(runs, judging, strict=True)]


async def _copied(scene: Scene, accident: Accident, topics: Topics) -> list[Sample]:
    """Until all has arrived, or has not in time, and no transaction is open any more."""
    runs, feed = scene.runs, scene.feed
    watch = Watch(runs, topics)
    mixed = [r.feed_topic for r in runs if r.aborting]
    stranger = Stranger(mixed, scene.system.bootstrap) if mixed else None
    samples: list[Sample] = []
    async with Siblings() as tasks:
        tasks.start(asyncio.to_thread(watch.work))
        tasks.start(_note_recoveries(scene, watch))
        tasks.start(_sample(topics, runs, samples))
        noise = tasks.start(asyncio.to_thread(stranger.work)) if stranger else None
        try:
            feeding = tasks.start(feed.run())
            await eventually(
                lambda: all(watch.visible[r.name] > 0 for r in runs), seconds=90, what="the first records are visible"
            )
            await accident.strike(scene)
            feed.finish()
            await feeding
            if stranger is not None and noise is not None:
                stranger.stop()
                await noise
            with contextlib.suppress(AssertionError):  # what has not arrived, the oracle calls lost
                await eventually(
                    lambda: all(watch.visible[r.name] >= r.records for r in runs), seconds=ARRIVE_SECONDS, every=0.1
                )
            with contextlib.suppress(AssertionError):  # what is still open then, the oracle calls stuck
                await eventually(lambda: _all_stable(samples), seconds=STABLE_SECONDS, every=0.2)
            looked = samples[-1].seconds if samples else 0.0
            assert time.monotonic() - looked < BLIND_SECONDS, "nobody saw whether a transaction is stuck"
        finally:
            note_recoveries(scene, watch)
            watch.stop()
            if stranger is not None:
                stranger.stop()
            scene.system.kafka.forget()
    return samples


async def _judged(
    scene: Scene, run: Run, topics: Topics, samples: list[Sample]
) -> tuple[Report, float | None, tuple[str, ...]]:
    """The oracle's report, the seconds to recover, and notes."""
    system = scene.system
    await system.ask("PUT", f"/connectors/{run.name}/stop")

    async def stopped() -> bool:
        status = (await system.ask("GET", f"/connectors/{run.name}/status")).json()
        return status["connector"]["state"] == "STOPPED" and not status["tasks"]

    await eventually(stopped, seconds=120, what=f"{run.name} is stopped")
    offsets: list[dict[str, Any]] = (await system.ask("GET", f"/connectors/{run.name}/offsets")).json()["offsets"]
    says = await asyncio.to_thread(run.says, topics, offsets)
    seen = await asyncio.to_thread(run.seen, topics)
    mine = tuple(f"{topic}-" for topic in run.transactional)
    own = [s for s in samples if s.partition.startswith((*mine, "__", GROUP))]
    report = judge(run.sent, seen, samples=own, offsets=says)
    await system.ask("DELETE", f"/connectors/{run.name}")
    marks = scene.marks.get(run.name, [])
    took = [m.recovered - m.at for m in marks if m.recovered is not None]
    worst = max(took) if took and len(took) == len(marks) else None
    return report, worst, tuple(scene.notes)


async def _note_recoveries(scene: Scene, watch: Watch) -> None:
    while True:
        note_recoveries(scene, watch)
        await asyncio.sleep(0.05)


def note_recoveries(scene: Scene, watch: Watch) -> None:
    """Which paths show a record by now that was fed after something was done to them."""
    now = time.monotonic()
    for name, marks in scene.marks.items():
        for mark in marks:
            if now - mark.at > FELT_SECONDS and mark.fed is None:
                mark.fed = scene.feed.fed[name]
            if mark.recovered is None and mark.fed is not None and watch.visible[name] > mark.fed:
                mark.recovered = now


async def _sample(topics: Topics, runs: Sequence[Run], samples: list[Sample]) -> None:
    """Where the partitions stand that are written in transactions."""
    wanted = {f"{GROUP}-offsets", "__consumer_offsets", *(topic for run in runs for topic in run.transactional)}
    partitions: list[Partition] = []
    while True:
        with contextlib.suppress(Exception):  # the broker is away: the next one will tell
            for topic in wanted - {t for t, _ in partitions}:  # some come with the first record
                partitions += await asyncio.to_thread(topics.partitions, topic)
            ends = await asyncio.to_thread(topics.all_ends, partitions)
            now = time.monotonic()
            samples += [Sample(now, f"{t}-{p}", stable, end) for (t, p), (stable, end) in ends.items()]
        await asyncio.sleep(SAMPLE_SECONDS)


def _all_stable(samples: list[Sample]) -> bool:
    """Whether the latest look found no open transaction."""
    latest = {s.partition: s for s in samples}
    now = time.monotonic()
    return bool(latest) and all(s.last_stable >= s.end and now - s.seconds < FRESH_SECONDS for s in latest.values())

"""One scenario in progress: the actions taken, their times and their effects."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chaos.chaos_feed import Feed, Stranger, Watch
from chaos.chaos_kafka import LOOK, Topics
from chaos.chaos_paths import Run
from chaos.chaos_system import System
from support.eventually import eventually
from support.numbered import parsed
from support.proxy import Tunnel

LOOK_SECONDS = 0.05
RECOVERED_SECONDS = 300.0
LATENCY_SECONDS = 2.0


@dataclass
class Scene:
    """One scenario in progress."""

    system: System
    runs: Sequence[Run]
    feed: Feed
    watch: Watch
    chance: random.Random
    topics: Topics
    stranger: Stranger | None = None
    struck: float = 0.0
    """When something was first done to it."""
    standstills: dict[str, float] = field(default_factory=dict)
    """By path, the longest time since then in which nothing new became visible though something waited."""
    latencies: dict[str, float] = field(default_factory=dict)
    """By path, the median seconds from fed to visible when it was got over, where they were measured."""
    notes: list[str] = field(default_factory=list)

    async def moment(self) -> None:
        """Returns at a random moment: when somewhat more records were fed (or the feed waits for the fault)."""
        part = self.chance.uniform(0.03, 0.12)
        most = self.feed.flows_to - 0.01
        ints = [min(int(r.records * most), self.feed.fed[r.name] + int(r.records * part)) for r in self.runs]
        there = zip(self.runs, ints, strict=True)
        targets = list(there)
        await eventually(
            lambda: all(self.feed.fed[r.name] >= n for r, n in targets), every=0.02, what="records are fed"
        )
        await self.pause(0.5)  # somewhere between two ticks and commits

    async def pause(self, most_seconds: float) -> None:
        """Returns after a random time."""
        await asyncio.sleep(self.chance.random() * most_seconds)

    def mark(self) -> None:
        """Records the present moment as the fault's."""
        self.struck = self.struck or time.monotonic()

    async def recovered(self) -> None:
        """Returns when all records fed by now are visible."""
        await self.arrived(dict(self.feed.fed), RECOVERED_SECONDS, "got over what was done")

    async def arrived(self, fed: Mapping[str, int], seconds: float, what: str) -> None:
        """Returns when so many records of each path are visible, and all that others wrote.

        Records that the source itself lost are left out.
        """
        least = {run.name: fed[run.name] - len(run.gone) + run.others for run in self.runs}
        end = time.monotonic() + seconds

        def counted() -> bool:
            return all(self.watch.visible[name] >= count for name, count in least.items())

        await eventually(counted, seconds=seconds, every=0.1, what=what)
        for run in self.runs:
            if run.gone:  # records copied before are visible too: only a look at all of them tells
                left = max(0.0, end - time.monotonic())
                await eventually(
                    lambda r=run: asyncio.to_thread(self._beside_gone, r, least[r.name]),
                    seconds=left,
                    every=1.0,
                    what=what,
                )

    def _beside_gone(self, run: Run, least: int) -> bool:
        seen = run.seen(self.topics)
        return sum(1 for lines in seen.values() for line in lines if parsed(line) not in run.gone) >= least

    async def hold(self) -> None:
        """Pauses all writers until `release`; returns when everything written is acknowledged."""
        await self.feed.hold()
        if self.stranger is not None:
            await asyncio.to_thread(self.stranger.hold)

    def release(self) -> None:
        """Resumes the writers."""
        self.feed.release()
        if self.stranger is not None:
            self.stranger.release()

    async def measured(self) -> dict[str, float]:
        """The median seconds by path from feeding a record until it is visible, while few are fed."""
        begun = time.monotonic()
        await asyncio.sleep(LATENCY_SECONDS)
        until = dict(self.feed.fed)
        with contextlib.suppress(AssertionError):
            await self.arrived(until, LATENCY_SECONDS * 10, "what was fed is visible")
        return {run.name: took for run in self.runs if (took := self._latency(run.name, begun)) is not None}

    def _latency(self, name: str, begun: float) -> float | None:
        fed = [(at, counts[name]) for at, counts in list(self.feed.history) if at >= begun]
        seen = [(at, counts[name]) for at, counts in list(self.watch.history) if at >= begun]
        took: list[float] = []
        place = 0
        for (_, before), (at, count) in itertools.pairwise(fed):
            while place < len(seen) and seen[place][1] < count:
                place += 1
            if count > before and place < len(seen):
                took.append(max(0.0, seen[place][0] - at))
        return statistics.median(took) if took else None

    async def look(self) -> None:
        """Observes the arrival of records until it is cancelled."""
        seen: dict[str, tuple[int, float]] = {}
        while True:
            now = time.monotonic()
            for name, fed in self.feed.fed.items():
                visible = self.watch.visible[name]
                before, since = seen.get(name, (0, now))
                if visible != before or visible >= fed:
                    seen[name] = visible, now
                elif self.struck:
                    stood = now - max(since, self.struck)
                    self.standstills[name] = max(stood, self.standstills.get(name, 0.0))
            await asyncio.sleep(LOOK_SECONDS)

    async def failed(self, seconds: float) -> None:
        """Returns when a task of each path has failed and its error is noted, or when the time is over."""
        with contextlib.suppress(AssertionError):
            await eventually(self._all_failed, seconds=seconds, every=0.5)

    async def _all_failed(self) -> bool:
        return all([await self._failed(run) for run in self.runs])

    async def start_failed(self) -> None:
        """Restarts failed connectors and tasks by hand."""
        for run in self.runs:
            if reason := await self._failed(run):
                self.notes.append(f"{run.kind} FAILED: {reason}")
                await self.system.ask("POST", f"/connectors/{run.name}/restart?includeTasks=true&onlyFailed=true")

    async def _failed(self, run: Run) -> str:
        """The first line of a path's first error; empty if nothing of it has failed."""
        status = (await self.system.ask("GET", f"/connectors/{run.name}/status")).json()
        traces = [task["trace"] for task in (status["connector"], *status["tasks"]) if task["state"] == "FAILED"]
        return traces[0].splitlines()[0] if traces else ""

    def shuffled(self, pids: Sequence[int]) -> list[int]:
        """The same in a random order."""
        return self.chance.sample(list(pids), len(pids))

    def of_slots(self, tunnel: Tunnel) -> bool:
        """Chooses the slots' connections to the broker."""
        return not tunnel.client_id.startswith((LOOK, "broker", "test")) and not self.of_workers(tunnel)

    def of_workers(self, tunnel: Tunnel) -> bool:
        """Chooses the workers' connections to the broker."""
        return any(w.id in tunnel.client_id for w in self.system.workers)

"""One scenario under way: what was done to it, when, and what it felt."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from chaos_feed import Feed, Watch
from chaos_kafka import LOOK
from chaos_paths import Run
from chaos_system import System

from keelman.testing.eventually import eventually
from keelman.testing.proxy import Tunnel

LOOK_SECONDS = 0.05
RECOVERED_SECONDS = 180.0


@dataclass
class Scene:
    """One scenario under way."""

    system: System
    runs: Sequence[Run]
    feed: Feed
    watch: Watch
    chance: random.Random
    struck: float = 0.0
    """When something was first done to it."""
    standstills: dict[str, float] = field(default_factory=dict)
    """By path, the longest time since then in which nothing new became visible though something waited."""
    notes: list[str] = field(default_factory=list)

    async def moment(self) -> None:
        """Returns at a random moment: when somewhat more records were fed (or the feed waits for the accident)."""
        part = self.chance.uniform(0.03, 0.12)
        most = self.feed.flows_to - 0.01
        wanted = [min(int(r.records * most), self.feed.fed[r.name] + int(r.records * part)) for r in self.runs]
        there = zip(self.runs, wanted, strict=True)
        targets = list(there)
        await eventually(
            lambda: all(self.feed.fed[r.name] >= n for r, n in targets), seconds=120, every=0.02, what="records are fed"
        )
        await asyncio.sleep(self.chance.random() * 0.5)  # somewhere between two ticks and commits

    def mark(self) -> None:
        """It happens now."""
        self.struck = self.struck or time.monotonic()

    async def recovered(self) -> None:
        """Returns when all is visible that has been fed by now."""
        fed = dict(self.feed.fed)
        await eventually(
            lambda: all(self.watch.visible[name] >= count for name, count in fed.items()),
            seconds=RECOVERED_SECONDS,
            what="got over what was done",
        )

    async def look(self) -> None:
        """Looks at how the records come, for ever."""
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

    def shuffled(self, pids: Sequence[int]) -> list[int]:
        """The same in a random order."""
        return self.chance.sample(list(pids), len(pids))

    def of_slots(self, tunnel: Tunnel) -> bool:
        """Chooses the slots' connections to the broker."""
        return not tunnel.client_id.startswith((LOOK, "broker", "test")) and not self.of_workers(tunnel)

    def of_workers(self, tunnel: Tunnel) -> bool:
        """Chooses the workers' connections to the broker."""
        return any(w.id in tunnel.client_id for w in self.system.workers)

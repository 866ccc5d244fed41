"""One scenario under way: what was done to it, when, and what it felt."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from chaos_feed import Feed
from chaos_kafka import LOOK
from chaos_paths import Run
from chaos_system import System

from keelman.testing.eventually import eventually
from keelman.testing.proxy import Tunnel


@dataclass
class Mark:
    """When something was done to a path, how many of its records had been fed when it was felt, and the recovery."""

    at: float
    fed: int | None = None
    recovered: float | None = None


@dataclass
class Scene:
    """One scenario under way."""

    system: System
    runs: Sequence[Run]
    feed: Feed
    chance: random.Random
    marks: dict[str, list[Mark]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    async def moment(self) -> None:
        """Returns at a random moment: when somewhat more records were fed (or the feed waits for the accident)."""
        part = self.chance.uniform(0.03, 0.12)
        wanted = [min(int(r.records * 0.84), self.feed.fed[r.name] + int(r.records * part)) for r in self.runs]
        there = zip(self.runs, wanted, strict=True)
        targets = list(there)
        await eventually(
            lambda: all(self.feed.fed[r.name] >= n for r, n in targets), seconds=120, every=0.02, what="records are fed"
        )
        await asyncio.sleep(self.chance.random() * 0.5)  # somewhere between two ticks and commits

    def mark(self) -> None:
        """It happens now."""
        for run in self.runs:
            self.marks.setdefault(run.name, []).append(Mark(time.monotonic()))

    def shuffled(self, pids: Sequence[int]) -> list[int]:
        """The same in a random order."""
        return self.chance.sample(list(pids), len(pids))

    def of_slots(self, tunnel: Tunnel) -> bool:
        """Chooses the slots' connections to the broker."""
        return not tunnel.client_id.startswith((LOOK, "broker", "test")) and not self.of_workers(tunnel)

    def of_workers(self, tunnel: Tunnel) -> bool:
        """Chooses the workers' connections to the broker."""
        return any(w.id in tunnel.client_id for w in self.system.workers)

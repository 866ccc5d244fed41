"""Workers are killed, frozen and ended in order, one after another, and come back."""

from __future__ import annotations

import asyncio
import math
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from support.worker.groups import Workers

FIRST_SECONDS = 3.0
WAYS = {"killed": signal.SIGKILL, "ended": signal.SIGTERM, "frozen": signal.SIGSTOP}
AWAY_SECONDS = (0.0, 0.0, 2.0, 8.0)
FROZEN_SECONDS = 3.0, 12.0
BETWEEN_SECONDS = 1.0, 7.0
BEFORE_SECONDS, AFTER_SECONDS = 0.5, 2.0
STARTING_SECONDS = 5.0
"""A worker counts as disturbed somewhat longer than it is away.

A request may have been in transit, and a worker that has just started may still answer so.
"""
SELDOM = 0.02


@dataclass
class Faults:
    """The faults of one round's workers; `odd` is called for a worker that does not end well."""

    workers: Workers
    odd: Callable[[str], None]
    count: int = 0
    _away: set[int] = field(default_factory=set)
    _spans: list[tuple[int, list[float]]] = field(default_factory=list)

    def someone(self, chance: random.Random) -> int:
        """A worker for a request: seldom an unavailable one."""
        everyone = range(len(self.workers.processes))
        there = [n for n in everyone if n not in self._away] if chance.random() > SELDOM else []
        return chance.choice(there or everyone)

    def disturbed(self, worker: int, begun: float, ended: float) -> bool:
        """Whether a request to the worker may have felt a fault."""
        mine = [span for number, span in self._spans if number == worker]
        return any(a - BEFORE_SECONDS <= ended and begun <= b + AFTER_SECONDS for a, b in mine)

    async def run(self, chance: random.Random, end: float) -> None:
        """Runs faults until that time, half of them on the group's leader."""
        await asyncio.sleep(FIRST_SECONDS)
        while time.monotonic() < end:
            processes = self.workers.processes
            leader = processes.index(self.workers.leader)
            await self._strike(chance.choice((leader, chance.randrange(len(processes)))), chance)
            await asyncio.sleep(chance.uniform(*BETWEEN_SECONDS))

    async def _strike(self, number: int, chance: random.Random) -> None:
        worker = self.workers.processes[number]
        way = chance.choice(list(WAYS))
        span = [time.monotonic(), math.inf]
        self._spans.append((number, span))
        self._away.add(number)
        self.count += 1
        if way == "frozen":
            assert worker.child is not None
            worker.child.send_signal(signal.SIGSTOP)
            try:
                await asyncio.sleep(chance.uniform(*FROZEN_SECONDS))
            finally:
                worker.child.send_signal(signal.SIGCONT)
        else:
            code = await worker.end(WAYS[way])
            if way == "ended" and code != 0:
                self.odd(f"worker {number} ended with {code}")
            await asyncio.sleep(chance.choice(AWAY_SECONDS))
            await worker.start()
        span[1] = time.monotonic() + (0.0 if way == "frozen" else STARTING_SECONDS)
        self._away.discard(number)

"""The fate of a host's work when its cable is pulled, and the time of the takeover."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from support.eventually import eventually
from support.hosts.lines import Lines
from support.hosts.networks import Host, System

GOAL_SECONDS, LATE_SECONDS = 15.0, 30.0
"""The goal for its work to be copied elsewhere; and the limit for another process of its worker to run there.

The latter copies nothing at first, or the machine is busy.
"""
BUSY_LOAD = 16.0
WAIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds from the pulling on: until its worker runs elsewhere, its tasks copy, and all tasks copy."""

    worker: float
    own: float
    all: float

    def __str__(self) -> str:
        return (
            f"its worker runs elsewhere after {self.worker:.1f} s, its tasks copy after {self.own:.1f} s, "
            f"all copy after {self.all:.1f} s (goal: {GOAL_SECONDS:g} s)"
        )

    def check(self) -> None:
        """Asserts the goal, on a machine that is not busy."""
        assert self.worker < LATE_SECONDS, self
        goal = GOAL_SECONDS if os.getloadavg()[0] < BUSY_LOAD else LATE_SECONDS
        assert self.own < goal, self
        assert self.all < goal, f"the others' tasks too: one of the topics is led by the lost broker; {self}"


async def pulled(system: System, lines: Lines, topics: Sequence[str], lost: Host) -> Took:
    """Pulls the cable of a host with a worker of the cluster `demo`, and waits until all tasks copy without it."""
    owners = await system.owners("demo", topics)
    orphans = [topic for topic, worker in owners.items() if worker.startswith(f"{lost.address}:")]
    count = len(await system.workers("demo"))
    lost.pull_cable()
    begun = time.monotonic()

    async def elsewhere() -> bool:
        workers = await system.workers("demo")
        assert len(workers) == count, workers
        assert lost.name not in workers.values(), workers
        return True

    async def passed(of: Sequence[str]) -> float:
        await lines.passes(of, seconds=WAIT_SECONDS)
        return time.monotonic() - begun

    async with asyncio.TaskGroup() as tasks:
        own, all_of_them = tasks.create_task(passed(orphans)), tasks.create_task(passed(topics))
        await eventually(elsewhere, seconds=WAIT_SECONDS, what="its worker runs elsewhere")
        moved = time.monotonic() - begun
    return Took(moved, own.result(), all_of_them.result())


async def spread(system: System, topics: Sequence[str], *, over: int) -> None:
    """Returns when the tasks of these connectors run on so many workers."""

    async def there() -> bool:
        return len(set((await system.owners("demo", topics)).values())) == over

    await eventually(there, what=f"{over} workers copy")


async def longest_stands(lines: Lines, topics: Sequence[str], over: asyncio.Event) -> dict[str, float]:
    """The longest time without a record of each topic, until the event."""
    now = time.monotonic()
    counts, since, longest = dict.fromkeys(topics, 0), dict.fromkeys(topics, now), dict.fromkeys(topics, 0.0)
    while not over.is_set():
        now = time.monotonic()
        for topic in topics:
            longest[topic] = max(longest[topic], now - since[topic])
            if len(lines.seen[topic]) != counts[topic]:
                counts[topic], since[topic] = len(lines.seen[topic]), now
        await asyncio.sleep(0.05)
    return longest

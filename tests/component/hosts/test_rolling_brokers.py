"""Three brokers on three hosts are restarted one after the other while records are copied: the time without records."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.eventually import eventually
from support.hosts.lines import Lines
from support.hosts.networks import RUNNING, System, running_hosts
from support.hosts.pulled import longest_stands

pytestmark = [pytest.mark.component, pytest.mark.slow]
NODES = ("n1", "n2", "n3")
BROKERS = [f"broker/default/{n}" for n in range(3)]
TOPICS = ("lines-0", "lines-1", "lines-2")
LOAD = "load"
LOAD_PER_SECOND, LOAD_LINES = 20_000, 6_000_000
GOAL_SECONDS = 10.0
BUSY_LOAD = 16.0


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[System]:
    async with running_hosts(tmp_path, NODES) as hosts:
        yield hosts


async def test_nothing_is_lost_or_doubled_and_copying_stands_still_for_seconds_only(system: System) -> None:
    brokers = await system.brokers_and_workers(*NODES)
    load = system.folder / "load.txt"
    with load.open("w") as stream:
        stream.writelines(f"{number:060}\n" for number in range(LOAD_LINES))
    lines = Lines(system.folder, brokers, TOPICS)
    with lines.flowing():
        for topic in TOPICS:
            await system.configure("demo", topic, lines.config(topic))
        limit = {"keelman.limit.records.per.second": str(LOAD_PER_SECOND)}
        await system.configure("demo", LOAD, {**lines.config(TOPICS[0]), "file": str(load), "topic": LOAD, **limit})
        await lines.passes(seconds=300)

        over = asyncio.Event()
        watching = asyncio.create_task(longest_stands(lines, TOPICS, over))
        begun = time.monotonic()
        await system.update_brokers("default", "managed.properties", properties={"log.retention.hours": "5"})

        async def restarted() -> bool:
            workloads = await system.of.workloads()
            fresh = [workloads[n] for n in BROKERS if workloads[n].status.state == RUNNING]
            return [workload.status.generation for workload in fresh] == [2, 2, 2]

        await eventually(restarted, seconds=300, what="all brokers have the change")
        await system.in_state("default", "RUNNING")
        took = time.monotonic() - begun
        await lines.passes()
        over.set()
        longest = await watching
        report = await lines.judged()
    assert report.clean, report
    summary = ", ".join(f"{topic} {seconds:.1f} s" for topic, seconds in longest.items())
    print(f"\nthree brokers restarted in {took:.0f} s; longest stand-stills: {summary} (goal: {GOAL_SECONDS:g} s)")
    assert max(longest.values()) < GOAL_SECONDS or os.getloadavg()[0] >= BUSY_LOAD, summary

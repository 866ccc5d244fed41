"""Many small connectors of the managed Connect API on one node: the time until all run, and their cost when idle.

Also the time of a page of a list; and the same list of many that are only stored.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from bench.measuring.figures import Figure, alone, percentile
from bench.measuring.systems import cpu_seconds, pss_mb
from keelman.model.errors import Unavailable
from keelman.runtime.processes.ports import free_row
from support.gateway.managed_connect.world import World, connector, file_source, managed_connect_world

CREATES_AT_ONCE = 4
PATIENCE_SECONDS = 3600.0
LOOK_SECONDS, IDLE_SECONDS = 2.0, 45.0
PAGE, LISTS = 100, 100
STORED, ROUNDS = 1_000, 10
NOWHERE = "127.0.0.1:1"
"""An address without brokers: their connectors are stored, and FAILED."""
MIN_AVAILABLE = 1 << 30
"""With less available memory on the host the measurement is given up: other processes need it too."""
MAX_MB = 25_770
"""24 GiB."""


async def measured(folder: Path, count: int, say: Callable[[str], None]) -> list[Figure]:
    """Each connector copies a file of its own by one task, and has nothing to copy then."""
    folder.mkdir(parents=True)
    ports = free_row(count + 8)
    async with managed_connect_world(folder, f"state.worker_ports={ports[0]}-{ports[-1]}") as world:
        bare = pss_mb(world.keelman.processes())
        took = await _all_run(world, folder, count, say)
        await asyncio.sleep(IDLE_SECONDS)
        processes = world.keelman.processes()
        before, begun = cpu_seconds(processes), time.monotonic()
        await asyncio.sleep(IDLE_SECONDS)
        idle = (cpu_seconds(processes) - before) / (time.monotonic() - begun)
        memory = pss_mb(processes)
        pages = [await asyncio.to_thread(_page, world) for _ in range(LISTS)]
        name, each = f"managed-{count}", (memory - bare) / count
        return [
            alone(f"{name}-running", "s", [took], took, ""),
            alone(f"{name}-memory", "MB", [memory], memory, f"<= {MAX_MB}"),
            alone(f"{name}-memory-each", "MB", [each], each, ""),
            alone(f"{name}-idle", "processors", [idle], idle, ""),
            alone(f"{name}-list-p99", "ms", pages, percentile(pages, 0.99), "<= 200"),
        ]


async def stored(folder: Path, say: Callable[[str], None]) -> list[Figure]:
    """The pages of a list of many that are only stored."""
    folder.mkdir(parents=True)
    async with managed_connect_world(folder) as world:
        turns = asyncio.Semaphore(CREATES_AT_ONCE)

        async def create(number: int) -> None:
            async with turns:
                body = connector(f"stored-{number:04d}", NOWHERE, file_source(folder / f"{number}", "lines"))
                await asyncio.to_thread(lambda: world.sdk.create_connector(**body))

        begun = time.monotonic()
        await asyncio.gather(*map(create, range(STORED)))
        say(f"managed: {STORED} are stored after {time.monotonic() - begun:.0f} s")
        while any(entry["connectorState"] != "FAILED" for entry in await asyncio.to_thread(_all, world)):
            if time.monotonic() - begun > PATIENCE_SECONDS:
                raise Unavailable(f"not all of {STORED} have ended their creation")
            await asyncio.sleep(LOOK_SECONDS)
        pages: list[float] = []
        for _ in range(ROUNDS):
            result = await asyncio.to_thread(_all, world, pages)
            assert len(result) == STORED
        return [alone(f"managed-{STORED}-stored-list-p99", "ms", pages, percentile(pages, 0.99), "<= 200")]


def _page(world: World) -> float:
    """Milliseconds of one call."""
    begun = time.monotonic()
    world.sdk.list_connectors(maxResults=PAGE)
    return 1000 * (time.monotonic() - begun)


async def _all_run(world: World, folder: Path, count: int, say: Callable[[str], None]) -> float:
    """Seconds until all are RUNNING, from the first create on.

    Raises Unavailable for a host that is full, and when one has failed or it takes too long.
    """
    begun, turns = time.monotonic(), asyncio.Semaphore(CREATES_AT_ONCE)

    async def create(number: int) -> None:
        async with turns:
            path = folder / f"in-{number}.txt"
            path.write_text(f"{number}\n")
            body = connector(f"small-{number:03d}", world.bootstrap, file_source(path, "lines"))
            await asyncio.to_thread(lambda: world.sdk.create_connector(**body))

    creating = asyncio.gather(*map(create, range(count)))
    last = 0
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        result = await asyncio.to_thread(_all, world)
        states = [entry["connectorState"] for entry in result]
        seconds, free = time.monotonic() - begun, psutil.virtual_memory().available
        if (running := states.count("RUNNING")) >= last + 10 or running == count:
            last = running
            say(f"managed: {running} of {count} run after {seconds:.0f} s; {free / 2**30:.1f} GiB are left")
        if creating.done():
            creating.result()
        if running == count:
            return seconds
        if "FAILED" in states or seconds > PATIENCE_SECONDS or free < MIN_AVAILABLE:
            failed = [entry["connectorArn"] for entry in result if entry["connectorState"] == "FAILED"]
            connectors = [world.sdk.describe_connector(connectorArn=arn).get("stateDescription") for arn in failed[:3]]
            raise Unavailable(f"{running} of {count} run after {seconds:.0f} s, {free} bytes are left; {connectors}")


def _all(world: World, pages: list[float] | None = None) -> list[dict[str, str]]:
    """All of them; appends the milliseconds of each page to `pages`."""
    results: list[dict[str, str]] = []
    token: dict[str, str] = {}
    while True:
        begun = time.monotonic()
        answer = world.sdk.list_connectors(maxResults=PAGE, **token)
        if pages is not None:
            pages.append(1000 * (time.monotonic() - begun))
        results += answer["connectors"]
        if not answer.get("nextToken"):
            return results
        token = {"nextToken": answer["nextToken"]}

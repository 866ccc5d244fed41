"""Three hundred connectors, each with a record a second: the memory of all the processes that carry them."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from bench.copying.throughput import FILE, STRING
from bench.measuring.data import Topics, line
from bench.measuring.systems import System, cpu_seconds, create, pss_mb

TOPIC = "many"


async def active(
    system: System, topics: Topics, folder: Path, count: int, *, seconds: float, patience: float
) -> tuple[float, float, int]:
    """MB of PSS, and processors used, while `count` file sources have a line a second, and how many of them run.

    They are fewer if a system has not begun them all when the patience, in seconds, is over: that many need no less
    than the measured value.
    """
    topic, files = f"{TOPIC}-{system.name}", [folder / f"{system.name}-{n}.txt" for n in range(count)]
    topics.create(topic, 1)
    for file in files:
        file.write_bytes(line(0) + b"\n")
    stop = asyncio.Event()
    trickle = asyncio.create_task(_trickle(files, stop))
    try:
        gate = asyncio.Semaphore(4)

        async def make(number: int) -> None:
            async with gate:
                config = {"connector.class": f"{FILE}SourceConnector", "file": str(files[number]), "topic": topic}
                config |= {"key.converter": STRING, "value.converter": STRING}
                await create(system, f"many-{number}", config)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await asyncio.gather(*(make(number) for number in range(count)))
                await _flows(system, topics, topic, count)
        running = await _running(system)
        used, begun = cpu_seconds(system.processes()), asyncio.get_running_loop().time()
        await asyncio.sleep(seconds)
        processors = (cpu_seconds(system.processes()) - used) / (asyncio.get_running_loop().time() - begun)
        return pss_mb(system.processes()), processors, running
    finally:
        stop.set()
        await trickle


async def _trickle(files: list[Path], stop: asyncio.Event) -> None:
    """A line a second for each file, spread over the second."""
    number = 0
    while not stop.is_set():
        number += 1
        for first in range(0, len(files), 30):
            for file in files[first : first + 30]:
                with file.open("ab") as stream:
                    stream.write(line(number) + b"\n")
            await asyncio.sleep(30 / len(files))


async def _flows(system: System, topics: Topics, topic: str, count: int) -> None:
    """Waits until all tasks report that they run and, for five seconds, as many records come as are written.

    A system that is short of time commits several records of a file in one transaction: so their markers count little.
    """
    seen, good = 0, 0
    while True:
        await asyncio.sleep(1)
        now = await asyncio.to_thread(topics.visible, topic, [0])
        good = good + 1 if now - seen >= 1.1 * count else 0
        seen = now
        if good >= 5:
            if await _running(system) == count:
                return
            good = 0


async def _running(system: System) -> int:
    """The number of running tasks."""
    answer = await system.ask("GET", "/connectors?expand=status")
    told = answer.json().values() if answer.status_code == 200 else []
    return sum(task["state"] == "RUNNING" for entry in told for task in entry["status"]["tasks"])

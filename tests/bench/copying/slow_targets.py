"""Backlogs behind a quota: the time until each task has committed, and the used part of the quota."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path

from bench.copying.throughput import FILE, STRING
from bench.measuring.data import Topics
from bench.measuring.systems import System, create, delete
from support.brokers.quotas import limit_producer

NUMBERS = itertools.count(1)
LINE_BYTES = 1_000
"""The size of a line, to which a record batch adds one hundredth."""
WARM_SECONDS = 30.0
"""A broker lets ten seconds' worth pass at once, and counts it for eleven."""
MEASURED_SECONDS = 66.0
"""Six times those eleven."""


async def copied(
    system: System, topics: Topics, bootstrap: str, folder: Path, *, tasks: int, quota: int
) -> tuple[list[float], float]:
    """Seconds until each task's first commit, and the part of a quota that they use once they are warm.

    The connectors start together and share a quota of so many bytes a second.
    """
    number = next(NUMBERS)
    client_id, names = f"slow-{number}", [f"slow-{number}-{task}" for task in range(tasks)]
    await limit_producer(bootstrap, client_id, quota)
    file = folder / f"{client_id}.txt"
    lines = int(quota * (WARM_SECONDS + MEASURED_SECONDS + 60)) // LINE_BYTES
    file.write_bytes(b"".join(b"%0999d\n" % line for line in range(lines)))
    for name in names:
        topics.create(name, 1)
    begun = time.monotonic()
    try:
        await asyncio.gather(*(create(system, name, config(name, file, client_id)) for name in names))
        first: dict[str, float] = {}
        marks: list[tuple[float, int]] = []
        while not marks or marks[-1][0] < begun + WARM_SECONDS + MEASURED_SECONDS:
            visible = {name: await asyncio.to_thread(topics.visible, name, [0]) for name in names}
            now = time.monotonic()
            for name in names:
                if visible[name]:
                    first.setdefault(name, now - begun)
            if now >= begun + WARM_SECONDS:
                marks.append((now, sum(visible.values())))
            await asyncio.sleep(0.2)
    finally:
        for name in names:
            await delete(system, name)
            topics.delete(name)
    (since, before), (until, after) = marks[0], marks[-1]
    rate = (after - before) * LINE_BYTES / (until - since)
    return [first.get(name, until - begun) for name in names], rate / quota


def config(name: str, file: Path, client_id: str) -> dict[str, str]:
    """A file to its own topic, by a producer that shares its client id."""
    return {
        "connector.class": f"{FILE}SourceConnector",
        "file": str(file),
        "topic": name,
        "key.converter": STRING,
        "value.converter": STRING,
        "producer.override.client.id": client_id,
    }

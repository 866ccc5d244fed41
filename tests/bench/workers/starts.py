"""Workers beside Kafka Connect's: their start time, their memory, and how soon they accept requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil

from bench.copying.throughput import FILE, STRING
from bench.measuring.systems import Connect, Keelman, System, delete, pss_mb
from support.eventually import eventually
from support.servers.connect_worker import ConnectProcess

CLIENTS = 4
IDLE_SECONDS = 15.0
NOBODY = "127.0.0.1:9"  # where no Spark service answers: for figures of a worker alone


def alone(folder: Path, bootstrap: str) -> Keelman:
    """A worker of ours without a Spark service."""
    return Keelman(folder, bootstrap, spark_at=NOBODY)


def shipped(folder: Path, bootstrap: str) -> Connect:
    """A worker of Kafka Connect's."""
    return Connect(ConnectProcess(folder, bootstrap, folder.name))


async def start(worker: Keelman | Connect) -> float:
    """Starts a worker; the seconds from the start of its process until it reports its place in its group."""
    beginning = asyncio.create_task(worker.start())
    try:
        async with httpx.AsyncClient(timeout=5, trust_env=False) as client:
            while not await _placed(client, f"{worker.url}/health"):
                assert not (beginning.done() and beginning.exception()), beginning.exception()
                await asyncio.sleep(0.01)
        return time.time() - psutil.Process(worker.pid).create_time()
    finally:
        await beginning


async def _placed(client: httpx.AsyncClient, url: str) -> bool:
    """Whether its health reports a finished start, even without a Spark service. Kafka Connect's server first answers
    with a page of its own."""
    try:
        return str((await client.get(url)).json()["status"]) != "starting"
    except (httpx.HTTPError, ValueError):
        return False


async def idle_pss(worker: Keelman | Connect) -> float:
    """MB of a worker that has been idle for IDLE_SECONDS."""
    await asyncio.sleep(IDLE_SECONDS)
    return pss_mb([psutil.Process(worker.pid)])


async def creations(system: System, topic: str, folder: Path, count: int) -> list[float]:
    """Milliseconds of each `POST /connectors`, four at a time; a request that is answered with 409 is repeated."""
    folder.mkdir(parents=True, exist_ok=True)
    gate, names = asyncio.Semaphore(CLIENTS), [f"made-{number}" for number in range(count)]

    async def one(name: str) -> float:
        file = folder / f"{name}.txt"
        file.write_bytes(b"0\n")
        async with gate:
            begun = time.perf_counter()
            await eventually(lambda: _created(system, name, file_source(file, topic)), seconds=120, every=0.02)
            return (time.perf_counter() - begun) * 1000

    try:
        return list(await asyncio.gather(*(one(name) for name in names)))
    finally:
        for name in names:
            await delete(system, name)


async def _created(system: System, name: str, config: Mapping[str, str]) -> bool:
    answer = await system.ask("POST", "/connectors", {"name": name, "config": dict(config)})
    if answer.status_code == 409 and "already exists" not in answer.text:
        return False
    # A client whose first try was answered too late finds that its connector exists.
    assert answer.status_code in (201, 409), f"{system.name}: {answer.status_code} {answer.text}"
    return True


def file_source(file: Path, topic: str, **more: Any) -> dict[str, str]:
    """Lines of a file as texts."""
    config = {"connector.class": f"{FILE}SourceConnector", "tasks.max": "1", "file": str(file), "topic": topic}
    return {**config, "key.converter": STRING, "value.converter": STRING, **more}

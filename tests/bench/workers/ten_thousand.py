"""One worker with ten thousand connectors that have nothing to copy: its memory, and how soon it lists them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil

from bench.measuring.data import Topics
from bench.measuring.systems import Keelman, cpu_seconds, pss_mb
from bench.workers.starts import file_source
from keelman.api.copy.v1.copy_run_service_pb2 import ListCopyRunsRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.kafka.writer import TopicWriter
from keelman.rpc.channels import channel
from keelman.worker.storage import config_records as records

MIRROR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
TOPICS = 50  # that the mirrors share
AT_ONCE = 1000
PARK_MS = 1000
SETTLED_SECONDS = 15.0
IDLE_SECONDS = 660.0  # mirrors look at their clusters each ten minutes: all of them once, whenever they began
LISTS = 200
CHANGE_SECONDS = 0.25


async def filled(bootstrap: str, topics: Topics, folder: Path, group: str, count: int) -> None:
    """A config topic with that many connectors, file sources and mirrors by turns, and their inputs.

    Written as Connect's workers write it: the time to create them is another row's figure.
    """
    topics.create(f"{group}-configs", 1, cleanup_policy="compact")
    topics.create(f"{group}-out", 1)
    for number in range(TOPICS):
        topics.create(f"{group}-{number}", 1)
        topics.create(f"a.{group}-{number}", 1)
    lines = folder / "lines"
    lines.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(count):
        name = f"connector-{number:05}"
        if number % 2:
            config = mirror(bootstrap, f"{group}-{number // 2 % TOPICS}")
        else:
            (lines / name).write_bytes(b"0\n")
            config = file_source(lines / name, f"{group}-out")
        rows.append(records.connector_record(name, {**config, "name": name}))
    async with TopicWriter.open({"bootstrap.servers": bootstrap}, client_id="bench") as writer:
        for first in range(0, count, AT_ONCE):
            await writer.write(f"{group}-configs", rows[first : first + AT_ONCE])


def mirror(bootstrap: str, topic: str) -> dict[str, str]:
    """A mirror of one topic of the cluster into itself."""
    return {
        "connector.class": MIRROR,
        "tasks.max": "1",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "topics": topic,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
    }


def worker(folder: Path, bootstrap: str) -> Keelman:
    """The worker for all of them, with a Spark service."""
    return Keelman(folder, bootstrap, {"keelman.park.after.ms": str(PARK_MS)})


async def parked(system: Keelman, count: int, seconds: float, say: Callable[[str], None]) -> None:
    """Waits until all have run and none has a copy run any more. Raises AssertionError after the time."""
    begun, quiet, told = time.monotonic(), 0.0, 0.0
    while True:
        run, live = await _states(system)
        now = time.monotonic()
        quiet = (quiet or now) if run == count and live == 0 else 0.0
        if quiet and now - quiet >= SETTLED_SECONDS:
            return
        if now - told >= 30:
            told = now
            say(f"idle-10k: {run:,} of {count:,} have run, {live} copy runs are under way")
        assert now - begun < seconds, f"after {seconds:g} s {run} of {count} have run, {live} are under way"
        await asyncio.sleep(2)


async def _states(system: Keelman) -> tuple[int, int]:
    """The numbers of tasks that run by their status, and of copy runs."""
    answer = await system.ask("GET", "/connectors?expand=status")
    told = answer.json().values() if answer.status_code == 200 else []
    run = sum(task["state"] == "RUNNING" for entry in told for task in entry["status"]["tasks"])
    async with channel(system.spark) as opened:
        listed = await CopyRunServiceStub(opened).ListCopyRuns(ListCopyRunsRequest(page_size=1000))
    return run, len(listed.copy_runs)


async def idle(system: Keelman) -> tuple[float, float, float, float]:
    """MB of the worker and of all its processes, per cent of a processor that the worker and all of them use."""
    worker, whole = psutil.Process(system.pid), system.processes()
    before, begun = {item: cpu_seconds([item]) for item in whole}, time.monotonic()
    await asyncio.sleep(IDLE_SECONDS)
    took = time.monotonic() - begun
    used = {item: cpu_seconds([item]) - before[item] for item in whole if item.is_running()}  # slots may end meanwhile
    return pss_mb([worker]), pss_mb(whole), 100 * used[worker] / took, 100 * sum(used.values()) / took


async def lists(system: Keelman, count: int) -> list[float]:
    """Milliseconds of the list of all connectors, with the details of each, while some are paused and resumed."""
    took = []
    changing = asyncio.create_task(_change(system, count))
    try:
        for _ in range(LISTS):
            begun = time.perf_counter()
            answer = await system.ask("GET", "/connectors?expand=status&expand=info")
            took.append((time.perf_counter() - begun) * 1000)
            assert len(answer.json()) == count, f"{len(answer.json())} of {count}"
            assert not changing.done(), changing.exception()
        return took
    finally:
        changing.cancel()
        await asyncio.wait([changing])


async def _change(system: Keelman, count: int) -> None:
    """Pauses and resumes one connector after the other, four times a second."""
    async with httpx.AsyncClient(timeout=95, trust_env=False) as client:
        while True:
            for number in range(count):
                for verb in ("pause", "resume"):
                    answer = await client.put(f"{system.url}/connectors/connector-{number:05}/{verb}")
                    assert answer.status_code == 202, answer.text
                    await asyncio.sleep(CHANGE_SECONDS)

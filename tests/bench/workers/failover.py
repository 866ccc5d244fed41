"""Workers that die, and workers whose tasks others take: the time without copying, and the fate of the records."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from bench.copying.trickle import Reader
from bench.measuring.data import Topics, line
from bench.measuring.systems import Connect, Keelman
from bench.workers.starts import file_source
from support.eventually import eventually
from support.servers.connect_worker import ConnectProcess

TASKS = 6
EVERY_SECONDS = 0.1
SPAN = 10_000_000  # numbers of one file's lines
PATIENCE_SECONDS = 600.0
MOVED_BACK_SECONDS = 15.0  # afterwards the tasks are balanced again, if the worker comes back


@dataclass(frozen=True, slots=True)
class Member:
    """One worker of a group."""

    url: str
    pid: int

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """One request."""
        async with httpx.AsyncClient(timeout=95, trust_env=False) as client:
            return await client.request(method, f"{self.url}{path}", json=body)


class Growing:
    """Files that get a numbered line every tenth of a second, each with numbers of its own."""

    def __init__(self, folder: Path, count: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.files = [folder / f"{number}.txt" for number in range(count)]
        self.written = [0] * count
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Growing:
        self._task = asyncio.create_task(self._grow())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _grow(self) -> None:
        while True:
            for index, file in enumerate(self.files):
                with file.open("ab") as stream:
                    stream.write(line(index * SPAN + self.written[index]) + b"\n")
                self.written[index] += 1
            await asyncio.sleep(EVERY_SECONDS)


async def kill_one(
    name: str, members: Sequence[Member], topics: Topics, bootstrap: str, folder: Path
) -> tuple[float, float]:
    """The seconds from kill -9 of a worker until its tasks copy again, and the longest time without a line.

    The first figure ends with the last of the tasks that the worker had. The second covers the same tasks, until they
    move back to the worker's successor. A task's copy run may continue for as long as its dead worker's lease: it
    copies again with the first line that comes after its status names a living worker.
    """
    topic = f"failover-{name}"
    topics.create(topic, 1)
    reader = Reader(bootstrap, topic)
    first, last = members[0], members[-1]
    try:
        async with Growing(folder / topic, TASKS) as growing:
            for index, file in enumerate(growing.files):
                await created(first, f"{topic}-{index}", file_source(file, topic))
            for index in range(TASKS):
                await eventually(lambda index=index: _newest(reader, index) > 0, seconds=300, what="all copy")
            owned = await eventually(lambda: _tasks_of(first, topic, last), seconds=300, every=0.5, what="it has tasks")
            begun = time.perf_counter()
            os.kill(last.pid, signal.SIGKILL)
            again = await asyncio.gather(*(_copied_again(first, topic, index, last, reader) for index in owned))
            await asyncio.sleep(max(0.0, begun + MOVED_BACK_SECONDS - time.perf_counter()))
            return max(again) - begun, max(_silence(reader, index, begun) for index in owned)
    finally:
        reader.close()


async def _copied_again(member: Member, topic: str, index: int, dead: Member, reader: Reader) -> float:
    """The time of the file's first line after a worker other than the dead one reported that the task runs there."""

    async def moved() -> bool:
        answer = await member.ask("GET", f"/connectors/{topic}-{index}/status")
        tasks = answer.json().get("tasks", []) if answer.status_code == 200 else []
        return [task["state"] for task in tasks] == ["RUNNING"] and not _is(dead, tasks[0]["worker_id"])

    what = f"task {index} runs elsewhere"
    await eventually(moved, seconds=PATIENCE_SECONDS, every=0.02, what=what)
    since = time.perf_counter()

    def came() -> float:
        return min((at for n, at in reader.came.copy().items() if n // SPAN == index and at > since), default=0.0)

    return await eventually(came, seconds=PATIENCE_SECONDS, every=0.01, what=f"task {index} copies again")


def _silence(reader: Reader, index: int, begun: float) -> float:
    """The longest time without a line of this file."""
    came = sorted(when for number, when in reader.came.copy().items() if number // SPAN == index)
    return max(after - max(before, begun) for before, after in itertools.pairwise(came) if after > begun)


def _is(member: Member, worker_id: str) -> bool:
    return worker_id.rpartition(":")[2] == member.url.rpartition(":")[2]


def _newest(reader: Reader, index: int) -> int:
    mine = [number - index * SPAN for number in reader.came.copy() if number // SPAN == index]
    return max(mine, default=-1)


def _came(reader: Reader, index: int, number: int) -> float:
    return min(when for n, when in reader.came.items() if n // SPAN == index and n - index * SPAN > number)


async def _tasks_of(requested_member: Member, topic: str, member: Member) -> list[int]:
    """Files of the tasks that this worker has, once every task is somewhere and runs."""
    owned = []
    for index in range(TASKS):
        answer = await requested_member.ask("GET", f"/connectors/{topic}-{index}/status")
        tasks = answer.json().get("tasks", []) if answer.status_code == 200 else []
        if [task["state"] for task in tasks] != ["RUNNING"]:
            return []
        if _is(member, tasks[0]["worker_id"]):
            owned.append(index)
    return owned


async def created(member: Member, name: str, config: dict[str, str]) -> None:
    """Creates the connector through this worker."""

    async def put() -> bool:
        answer = await member.ask("PUT", f"/connectors/{name}/config", {**config, "name": name})
        assert answer.status_code in (200, 201, 409), answer.text
        return answer.status_code != 409

    await eventually(put, seconds=120, every=0.2, what=f"{name} is created")


@contextlib.asynccontextmanager
async def ours(folder: Path, bootstrap: str) -> AsyncIterator[list[Member]]:
    """Three workers that share a Spark service, without an agent."""
    async with contextlib.AsyncExitStack() as stack:
        results, spark = [], ""
        for number in range(3):
            worker = Keelman(folder / f"worker-{number}", bootstrap, group="failover-ours", spark_at=spark)
            stack.push_async_callback(worker.end)
            await worker.start()
            spark = worker.spark
            results.append(Member(worker.url, worker.pid))
        yield results


@contextlib.asynccontextmanager
async def theirs(folder: Path, bootstrap: str) -> AsyncIterator[list[Member]]:
    """Three workers of Kafka Connect's, as shipped."""
    async with contextlib.AsyncExitStack() as stack:
        results = []
        for number in range(3):
            process = ConnectProcess(folder / f"connect-{number}", bootstrap, "failover-theirs")
            await process.start()
            stack.push_async_callback(process.end, signal.SIGKILL)
            results.append(Member(process.url, process.pid))
        yield results


@contextlib.asynccontextmanager
async def with_agent(home: Path, bootstrap: str) -> AsyncIterator[list[Member]]:
    """A whole system with three workers, as a user starts it."""

    async def keelman(*words: str) -> str:
        command = [sys.executable, "-m", "keelman.cli", *words, "--home", str(home)]
        child = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, "KEELMAN_HOME": str(home)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await child.communicate()
        assert child.returncode == 0, f"keelman {' '.join(words)}: {out.decode()}"
        return out.decode()

    try:
        await keelman("up", "--detach", "--free-ports", "--no-broker")
        await keelman("create", "bc", "bench", "--bootstrap-servers", bootstrap)
        more = ("--broker-cluster", "bench", "--count", "3", "--start", "--wait")
        await keelman("create", "wc", "failover-agent", *more)
        workers = json.loads(await keelman("get", "workers", "--cluster", "failover-agent", "-o", "json"))["items"]
        yield [_member(home, worker) for worker in workers]
    finally:
        await keelman("down")


def _member(home: Path, worker: dict[str, Any]) -> Member:
    """The process that listens on the worker's port."""
    url = worker["rest_url"].rstrip("/")
    port = int(url.rpartition(":")[2])
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            listening = [c.laddr.port for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
            if port in listening:
                return Member(url, process.pid)
    raise AssertionError(f"nobody in {home} listens at {url}")


async def takeover(topics: Topics, bootstrap: str, folder: Path) -> tuple[float, float, int, int]:
    """A group of Kafka Connect's taken over by ours, and back. Exactly-once.

    The seconds of each until records flow again, and the numbers of lost and doubled records.
    """
    group, topic = "takeover", "takeover"
    topics.create(topic, 1)
    support = {"exactly.once.source.support": "enabled"}
    java = ConnectProcess(folder / "takeover-java", bootstrap, group, support)
    mine = Keelman(folder / "takeover-ours", bootstrap, support, group=group)
    reader = Reader(bootstrap, topic)
    try:
        async with Growing(folder / "takeover-in", 1) as growing:
            await java.start()
            await created(Member(java.url, java.pid), "takeover", file_source(growing.files[0], topic))
            await _flows(reader, growing)
            await java.end()
            there = await _until_flow(reader, growing, mine)
            await mine.end()
            back = await _until_flow(reader, growing, Connect(java))
        expected = growing.written[0]
        await eventually(lambda: _newest(reader, 0) == expected - 1, seconds=120, what="the last line is copied")
        seen = Counter(reader.all)
        return there, back, sum(n not in seen for n in range(expected)), sum(count - 1 for count in seen.values())
    finally:
        reader.close()
        await mine.end()
        if java.child is not None:
            await java.end(signal.SIGKILL)


async def _flows(reader: Reader, growing: Growing) -> None:
    """Waits until some lines that are written from now on arrive."""
    number = growing.written[0] + 20
    await eventually(lambda: _newest(reader, 0) > number, seconds=PATIENCE_SECONDS, what="lines are copied")


async def _until_flow(reader: Reader, growing: Growing, worker: Keelman | Connect) -> float:
    number, begun = growing.written[0], time.perf_counter()
    await worker.start()
    await eventually(lambda: _newest(reader, 0) > number, seconds=PATIENCE_SECONDS, what="lines are copied again")
    seconds = _came(reader, 0, number) - begun
    await _flows(reader, growing)
    return seconds

"""The base of the tests of groups: workers on one Spark service, and numbered records that flow through them."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiokafka.admin import NewTopic

from keelman.kafka.clients import admin_client
from keelman.runtime.supervise import Siblings, supervise
from support.eventually import eventually
from support.numbered import Stream
from support.oracle import Report, judge
from support.worker.processes import WorkerProcess

TICK_SECONDS = 0.02
PER_TICK = 20


@dataclass
class Flow:
    """A file that grows, copied to a topic, and from there to a file: a source and a sink, both exactly once."""

    folder: Path
    name: str
    fed: int = 0
    stopping: bool = False
    _lines: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lines = list(Stream(0, 200_000))
        self.source.touch()

    @property
    def source(self) -> Path:
        """The source's file."""
        return self.folder / f"{self.name}.in"

    @property
    def target(self) -> Path:
        """The sink's file."""
        return self.folder / f"{self.name}.out"

    @property
    def seen(self) -> list[bytes]:
        """The whole lines in the sink's file."""
        return self.target.read_bytes().split(b"\n")[:-1] if self.target.exists() else []

    @property
    def connectors(self) -> dict[str, dict[str, str]]:
        """The connectors' configurations by name."""
        return {
            f"{self.name}-in": {"connector.class": "FileStreamSource", "file": str(self.source), "topic": self.name},
            f"{self.name}-out": {"connector.class": "FileStreamSink", "file": str(self.target), "topics": self.name},
        }

    async def feed(self) -> None:
        """Appends to the file until it is stopped."""
        with self.source.open("ab") as file:
            while not self.stopping:
                file.write(b"".join(line + b"\n" for line in self._lines[self.fed : self.fed + PER_TICK]))
                file.flush()
                self.fed += PER_TICK
                await asyncio.sleep(TICK_SECONDS)

    async def passes(self, *, seconds: float = 300.0) -> float:
        """Returns when the records fed by now have come out; the seconds that it took."""
        begun, fed = time.monotonic(), self.fed + 1
        await eventually(lambda: len(self.seen) >= fed, seconds=seconds, what=f"{self.name} flows")
        return time.monotonic() - begun

    def judged(self) -> Report:
        """The oracle's report on the records."""
        return judge({0: self.fed}, {self.target.name: self.seen})


@dataclass
class Workers:
    """Workers of one group; any of them answers requests."""

    processes: list[WorkerProcess]

    @classmethod
    def of(cls, folder: Path, bootstrap: str, group: str, spark: str, count: int, **extra: str) -> Workers:
        """Workers that are not started yet."""
        results = []
        for number in range(count):
            home = folder / f"{group}{number}"
            flags = ("--member-file", str(home / "member.json"))
            properties = {key.replace("_", "."): value for key, value in extra.items()}
            results.append(WorkerProcess(home, bootstrap, group, spark, properties, flags=flags))
        return cls(results)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Workers]:
        """Starts all at once, and kills the remaining processes at the end."""
        try:
            await supervise(*(process.start for process in self.processes))
            yield self
        finally:
            for process in self.processes:
                if process.child is not None and process.child.returncode is None:
                    process.child.kill()
                    await process.child.wait()

    def of_task(self, worker_id: str) -> WorkerProcess:
        """The worker with this id."""
        (result,) = [process for process in self.processes if process.id == worker_id]
        return result

    async def owner(self, connector: str, task: int = 0) -> WorkerProcess:
        """The worker that has the task, by its status."""
        return self.of_task((await self.status(connector))["tasks"][task]["worker_id"])

    async def status(self, connector: str) -> dict[str, Any]:
        """The connector's status, by whichever worker answers."""
        actual_status: dict[str, Any] = {}

        async def told() -> bool:
            for process in self.processes:
                with contextlib.suppress(Exception):
                    answer = await process.ask("GET", f"/connectors/{connector}/status")
                    if answer.status_code == 200 and (status := answer.json())["tasks"]:
                        actual_status.update(status)
                        return True
            return False

        await eventually(told, what=f"{connector} has a status")
        return actual_status

    @property
    def leader(self) -> WorkerProcess:
        """The leader of the last round."""

        def last(process: WorkerProcess) -> str:
            result = re.findall(r"^(\S+) .*joined .*leader=True", process.output, re.M)
            return result[-1] if result else ""

        return max(self.processes, key=last)

    async def begin(self, bootstrap: str, flow: Flow, *, partitions: int = 1) -> None:
        """Makes the flow's topic and connectors and waits until it flows."""
        async with admin_client({"bootstrap.servers": bootstrap}, client_id="test") as admin:
            await admin.create_topics([NewTopic(flow.name, partitions, 1)])
        for name, config in flow.connectors.items():
            result = await self.processes[0].ask("POST", "/connectors", {"name": name, "config": config})
            assert result.status_code == 201, result.text


@contextlib.asynccontextmanager
async def feeding(*flows: Flow) -> AsyncIterator[None]:
    """Feeds for the block; then waits until all has come out."""
    async with Siblings() as siblings:
        tasks = [siblings.start(flow.feed()) for flow in flows]
        yield
        for flow in flows:
            flow.stopping = True
        for task in tasks:
            await task
        for flow in flows:
            await eventually(lambda flow=flow: len(flow.seen) >= flow.fed, what="all has come out")

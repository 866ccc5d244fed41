"""The two systems under measurement, each a group of real processes with Connect's REST API in front."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx
import psutil

from keelman.rpc.health import is_serving
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports
from support.eventually import eventually
from support.servers.connect_worker import ConnectProcess

BATCHES = {"batch.size": "1000000", "linger.ms": "5"}
REST_SECONDS, REST_SHARE = 0.5, 0.2
"""A system rests that takes less than this share of a processor for so long."""


class System(Protocol):
    """The interface that a benchmark uses of either system."""

    name: str

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """One request to Connect's REST API."""

    def processes(self) -> list[psutil.Process]:
        """All its processes."""


@dataclass
class Connect:
    """Apache Kafka Connect as shipped: one distributed worker."""

    worker: ConnectProcess
    name: str = "connect"

    @property
    def url(self) -> str:
        """Its REST API."""
        return self.worker.url

    @property
    def pid(self) -> int:
        """Process id of its JVM."""
        return self.worker.pid

    async def start(self) -> None:
        """Starts it and waits until it answers."""
        await self.worker.start()

    async def end(self) -> None:
        """Ends it."""
        await self.worker.end()

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """One request."""
        return await self.worker.ask(method, path, body)

    def processes(self) -> list[psutil.Process]:
        """Its JVM."""
        return [psutil.Process(self.worker.pid)]


@dataclass
class Keelman:
    """One worker and its Spark service, as an agent launches them."""

    folder: Path
    bootstrap: str
    properties: Mapping[str, str] = field(default_factory=dict)
    name: str = "keelman"
    group: str = ""
    """Its group.id; the folder's name when empty."""
    spark_at: str = ""
    """Address of the Spark service that it uses; its own is started when empty."""

    def __post_init__(self) -> None:
        self.rest_port, self.spark_port = free_ports(2)
        self.children: list[asyncio.subprocess.Process] = []
        self.client = httpx.AsyncClient(timeout=95, trust_env=False)

    @property
    def spark(self) -> str:
        """Address of the Spark service."""
        return self.spark_at or f"127.0.0.1:{self.spark_port}"

    @property
    def url(self) -> str:
        """The worker's REST API."""
        return f"http://127.0.0.1:{self.rest_port}"

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self.children[-1].pid

    async def start(self) -> None:
        """Starts both and waits until they serve."""
        self.folder.mkdir(parents=True, exist_ok=True)
        group = self.group or self.folder.name
        properties = {
            "bootstrap.servers": self.bootstrap,
            "group.id": group,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "config.storage.topic": f"{group}-configs",
            "offset.storage.topic": f"{group}-offsets",
            "status.storage.topic": f"{group}-status",
            "listeners": f"http://127.0.0.1:{self.rest_port}",
            **self.properties,
        }
        file = self.folder / "worker.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        if not self.spark_at:
            await self._spawn("spark", "--port", str(self.spark_port), "--work-folder", str(self.folder / "work"))
        socket = self.folder / "health.sock"
        await self._spawn(
            *("worker", "--properties-file", str(file), "--spark-address", self.spark, "--health-socket", str(socket))
        )
        if not self.spark_at:
            await eventually(lambda: is_serving(self.spark), seconds=120, what=f"Spark service; see {self.folder}")
        await eventually(lambda: is_serving(f"unix:{socket}"), seconds=120, what=f"worker; see {self.folder}")

    async def _spawn(self, service: str, *flags: str) -> None:
        plain = {key: value for key, value in os.environ.items() if not key.startswith("KEELMAN_")}
        command = tethered([sys.executable, "-m", f"keelman.{service}", "run", *flags])
        with (self.folder / f"{service}.log").open("ab") as log:
            self.children.append(
                await asyncio.create_subprocess_exec(
                    *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=plain
                )
            )

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """One request."""
        return await self.client.request(method, f"{self.url}{path}", json=body)

    def processes(self) -> list[psutil.Process]:
        """Worker, Spark service, its JVM, daemon and slots."""
        return [process for child in self.children for process in family(child.pid)]

    async def end(self) -> None:
        """Ends both, the worker first."""
        await self.client.aclose()
        for child in reversed(self.children):
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(60):
                    await child.wait()
            except TimeoutError:
                child.kill()
                await child.wait()


@contextlib.asynccontextmanager
async def keelman(folder: Path, bootstrap: str, **properties: str) -> AsyncIterator[Keelman]:
    """Our system for the block; keys of `properties` have `_` for `.`."""
    new_keelman = Keelman(folder, bootstrap, {key.replace("_", "."): value for key, value in properties.items()})
    try:
        await new_keelman.start()
        yield new_keelman
    finally:
        await new_keelman.end()


@contextlib.asynccontextmanager
async def connect(
    folder: Path, bootstrap: str, *, exactly_once: bool, properties: Mapping[str, str] | None = None
) -> AsyncIterator[Connect]:
    """The peer for the block; `properties` besides those as shipped."""
    support = {"exactly.once.source.support": "enabled"} if exactly_once else {}
    process = ConnectProcess(folder, bootstrap, folder.name, {**support, **(properties or {})})
    await process.start()
    try:
        yield Connect(process)
    finally:
        await process.end()


async def create(system: System, name: str, config: Mapping[str, str]) -> None:
    """Creates a connector, and retries while the system answers 409. Raises AssertionError with its answer."""

    async def created() -> bool:
        answer = await system.ask("PUT", f"/connectors/{name}/config", {**config, "name": name})
        assert answer.status_code in (200, 201, 409), f"{system.name}: {answer.status_code} {answer.text}"
        return answer.status_code != 409

    await eventually(created, seconds=120, every=0.2, what=f"{system.name} takes the connector {name}")


async def running(system: System, name: str, *, seconds: float = 120) -> None:
    """Waits until the connector and at least one task run. Raises AssertionError with its trace when one failed."""

    async def all_run() -> bool:
        answer = await system.ask("GET", f"/connectors/{name}/status")
        if answer.status_code != 200:
            return False
        status = answer.json()
        states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
        if "FAILED" in states:
            raise SystemExit(f"{system.name}: {name} failed: {answer.text}")
        return len(states) > 1 and set(states) == {"RUNNING"}

    await eventually(all_run, seconds=seconds, every=0.1, what=f"{system.name}: {name} runs")


async def delete(system: System, name: str) -> None:
    """Deletes a connector and waits until it is gone."""

    async def gone() -> bool:
        answer = await system.ask("DELETE", f"/connectors/{name}")
        return answer.status_code in (204, 404)

    await eventually(gone, seconds=120, every=0.2, what=f"{system.name}: {name} is deleted")


def family(pid: int) -> list[psutil.Process]:
    """A process and all its descendants."""
    own = psutil.Process(pid)
    return [own, *own.children(recursive=True)]


def pss_mb(processes: list[psutil.Process]) -> float:
    """Proportional set size of all of them together, in MB of 1,000,000 bytes."""
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):
            text = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")
            total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total * 1024 / 1e6


def cpu_seconds(processes: list[psutil.Process]) -> float:
    """Processor seconds used so far."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


async def at_rest(*systems: System) -> None:
    """Waits until these systems have next to nothing left to do for earlier measurements.

    A task that ends has its slot, or its thread, a little longer than its connector can be seen.
    """

    async def rests() -> bool:
        before = [cpu_seconds(system.processes()) for system in systems]
        await asyncio.sleep(REST_SECONDS)
        used = (cpu_seconds(system.processes()) - then for system, then in zip(systems, before, strict=True))
        return max(used) < REST_SHARE * REST_SECONDS

    await eventually(rests, seconds=60, what="the systems rest")


def stolen_seconds() -> float:
    """Processor seconds so far that the host of this machine gave to others; 0 if it does not report them."""
    return float(getattr(psutil.cpu_times(), "steal", 0.0))

"""The smallest real system that copies: broker, Spark service and two workers, with proxies on their links.

Whatever is killed is started again at once, as its agent would do. Slots are children of the Spark service's own JVM
or, on a `cluster`, of the executors of a standalone cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import psutil

from keelman.rpc.health import is_serving
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.supervise import Siblings
from keelman.testing.brokers.broker import BrokerProcess
from keelman.testing.brokers.broker_cluster import BrokerCluster
from keelman.testing.brokers.kafka_proxy import KafkaProxy
from keelman.testing.eventually import eventually
from keelman.testing.proxy import Proxy
from support.spark.cluster import Cluster
from support.worker.processes import WorkerProcess

AGAIN_SECONDS = 0.3
START_SECONDS = 120.0
GROUP = "wc"
WORKERS = 2
HOSTS, HOST_CORES = 2, 8
"""Of a standalone cluster: two executors each, so that the slots of a lost one find room."""
# What sinks do not write again, their groups lose within a test.
PROPERTIES = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "2000"}


class SparkProcess:
    """The Spark service; its slots call home through a proxy."""

    def __init__(self, folder: Path, cluster: Cluster | None = None) -> None:
        self.folder, self.cluster = folder, cluster
        self.port = free_ports(1)[0]
        self.child: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> str:
        """What workers are told."""
        return f"127.0.0.1:{self.port}"

    @property
    def output(self) -> str:
        """All that it wrote."""
        return (self.folder / "output.log").read_text(errors="replace")

    async def spawn(self, home: str) -> None:
        """Starts it; `home` is what slots call."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(Path(__file__).with_name("spark_rerouted.py")), home]
        command += [f"port={self.port}", f"work_folder={self.folder / 'w'}"]
        if self.cluster is not None:
            command += [f"master={self.cluster.master}", f"spark_properties={self.cluster.properties()}"]
        with (self.folder / "output.log").open("ab") as output:
            self.child = await asyncio.create_subprocess_exec(
                *tethered(command), stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    @property
    def below(self) -> list[psutil.Process]:
        """Every process below the service."""
        assert self.child is not None
        try:
            return below(psutil.Process(self.child.pid))
        except psutil.NoSuchProcess:
            return []

    def slots(self) -> list[psutil.Process]:
        """The processes of its slots."""
        where = self.below if self.cluster is None else [p for e in self.cluster.executors() for p in below(e)]
        return [p for p in where if holds_slot(p)]

    def jvm(self) -> list[psutil.Process]:
        """Spark's Java process."""
        return [p for p in self.below if _name(p) == "java"]


def holds_slot(process: psutil.Process) -> bool:
    """Whether it is a slot's process."""
    return _title(process).startswith("keelman slot-")


def below(process: psutil.Process) -> list[psutil.Process]:
    """Every process below one."""
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


class System:
    """Everything, in one folder. Used as `async with`."""

    def __init__(self, folder: Path, *, cluster: bool = False, workers: int = WORKERS, brokers: int = 1) -> None:
        """With three `brokers` they are reached without a proxy, and forget groups' offsets after a minute."""
        self.folder = folder
        self._count = workers
        self._brokers = BrokerCluster(folder / "brokers", PROPERTIES, brokers) if brokers > 1 else None
        self.broker = BrokerProcess(folder / "broker")
        self.kafka = KafkaProxy("127.0.0.1", self.broker.port)
        self.cluster = Cluster(folder, free_ports(1)[0]) if cluster else None
        self.spark = SparkProcess(folder / "spark", self.cluster)
        self.slot_link = Proxy("127.0.0.1", self.spark.port)
        self.worker_link = Proxy("127.0.0.1", self.spark.port)
        self.workers: list[WorkerProcess] = []
        self.restarts = 0
        self._retired = False
        self._stack = contextlib.AsyncExitStack()

    @property
    def bootstrap(self) -> str:
        """What clients connect to: the proxy, or all brokers."""
        return self.kafka.address if self._brokers is None else self._brokers.bootstrap

    @property
    def trio(self) -> BrokerCluster:
        """The three brokers, where there are three."""
        assert self._brokers is not None
        return self._brokers

    @property
    def replicas(self) -> int:
        """How many replicas topics have."""
        return 1 if self._brokers is None else len(self._brokers.brokers)

    async def __aenter__(self) -> System:
        try:
            await self._start()
        except AssertionError as error:
            told = self.logs()
            await self._stack.aclose()
            raise AssertionError(f"{error}\n{told}") from error
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def _start(self) -> None:
        enter = self._stack.enter_async_context
        await enter(self.slot_link)
        await enter(self.worker_link)
        if self._brokers is None:
            await enter(self.kafka)
            self.broker.flags = ("--advertised", self.kafka.address)
            await self.broker.start()
            self._stack.push_async_callback(self.broker.end)
        else:
            await self._brokers.start()
            self._stack.push_async_callback(self._brokers.end)
        if self.cluster is not None:
            self._stack.callback(self.cluster.stop)
            await self.cluster.start(workers=HOSTS, cores=HOST_CORES)
        await self._spark()
        self._stack.push_async_callback(_ended, self.spark)
        extra = {"offset.flush.interval.ms": "1000"}
        for number in range(self._count):
            folder = self.folder / f"worker{number}"
            worker = WorkerProcess(folder, self.bootstrap, GROUP, self.worker_link.address, extra)
            self.workers.append(worker)
            await worker.spawn()
            self._stack.push_async_callback(_ended, worker)
        await self.serving()
        keepers = await enter(Siblings())
        keepers.start(self._keep(self.spark, self._spark))
        for worker in self.workers:
            keepers.start(self._keep(worker, worker.spawn))

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.aclose()

    async def _spark(self) -> None:
        await self.spark.spawn(self.slot_link.address)

    async def _keep(self, process: SparkProcess | WorkerProcess, again: Callable[[], Awaitable[None]]) -> None:
        while True:
            assert process.child is not None
            await process.child.wait()
            if self._retired:
                return
            self.restarts += 1
            await asyncio.sleep(AGAIN_SECONDS)
            await again()

    async def serving(self) -> None:
        """Returns when Spark service and workers serve."""
        await eventually(lambda: is_serving(self.spark.address), seconds=START_SECONDS, what="the Spark service serves")
        for worker in self.workers:
            socket = f"unix:{worker.folder / 'h.sock'}"
            await eventually(lambda s=socket: is_serving(s), seconds=START_SECONDS, what="a worker serves")

    async def retire(self) -> None:
        """Ends all workers in order, for good. Raises AssertionError when one does not end well."""
        self._retired = True
        for worker in self.workers:
            assert await worker.end() == 0, worker.output[-3000:]

    async def ask(self, method: str, path: str, body: Any = None, *, seconds: float = 120.0) -> httpx.Response:
        """One REST request, to whichever worker answers, again while they find each other."""

        async def answer() -> httpx.Response | None:
            for worker in self.workers:
                with contextlib.suppress(httpx.HTTPError):
                    given = await worker.ask(method, path, body)
                    if given.status_code not in (409, 500, 503):
                        return given
            return None

        return await eventually(answer, seconds=seconds, every=0.3, what=f"{method} {path} is answered")

    def logs(self, lines: int = 40) -> str:
        """The ends of all logs."""
        texts = {"spark": self.spark.output, "broker": (self._brokers or self.broker).output[-3000:]}
        texts |= {worker.id: worker.output for worker in self.workers}
        return "\n".join(f"--- {name}\n" + "\n".join(t.splitlines()[-lines:]) for name, t in texts.items())


async def _ended(process: SparkProcess | WorkerProcess) -> None:
    child = process.child
    if child is None or child.returncode is not None:
        return
    for number, seconds in ((signal.SIGCONT, 0.0), (signal.SIGTERM, 45.0), (signal.SIGKILL, 30.0)):
        with contextlib.suppress(ProcessLookupError, TimeoutError):
            child.send_signal(number)
            async with asyncio.timeout(seconds):
                await child.wait()


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name()) if process.status() != psutil.STATUS_ZOMBIE else ""
    except psutil.Error:
        return ""


def strike(number: int, pid: int) -> bool:
    """Sends a signal; False when the process is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True

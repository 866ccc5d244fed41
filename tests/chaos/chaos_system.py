"""The smallest real system that copies: broker, Spark service and two workers, with proxies on their links.

A killed process is restarted at once, as its agent would do. Slots are children of the Spark service's own JVM or, on a
`cluster`, of the executors of a standalone cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from keelman.kafka.security.jaas import SCRAM
from keelman.rpc.health import is_serving
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.supervise import Siblings
from support.brokers.broker import BrokerProcess
from support.brokers.broker_cluster import BrokerCluster
from support.brokers.kafka_proxy import KafkaProxy
from support.brokers.secure_broker import SECRET, USER, SecureBroker, secure_broker
from support.certificates import PASSWORD
from support.clock import Clock
from support.eventually import eventually
from support.java.kit import packed
from support.proxy import Proxy
from support.spark.cluster import Cluster
from support.worker.processes import WorkerProcess

AGAIN_SECONDS = 0.3
START_SECONDS = 300.0
GROUP = "wc"
WORKERS = 2
HOSTS, HOST_CORES = 2, 8
"""The hosts and cores of a standalone cluster: two executors each, so that the slots of a lost executor find room."""
# Offsets that sinks do not write again expire within a test.
PROPERTIES = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "2000"}


LISTENER = "SHORTTLS"
"""The secure broker's listener for the system."""
PLAIN, OWN_DISK, SECURE, CLOCKS = "plain", "own disk", "secure", "clocks"
NEW = "keelman.broker"
OLD, OLDER = "support.brokers.broker_3_9", "support.brokers.broker_3_7"
"""The kinds of a broker.

A broker reached by a proxy; a broker whose data has a file system of its own, of DISK_MB, which only root can create; a
broker with TLS, logins, sessions of a few seconds and ACLs; a broker whose clock can be set, as can that of all others;
a broker of Kafka 3.9 and one of 3.7, of which there may be three.
"""
DISK_MB = 512


@dataclass(frozen=True, slots=True)
class Shape:
    """The parts of a system: slots in the executors of a standalone `cluster`, the numbers of workers and brokers.

    `broker` is the kind of a single broker.
    """

    cluster: bool = False
    workers: int = WORKERS
    brokers: int = 1
    broker: str = PLAIN


class SparkProcess:
    """The Spark service; its slots call home through a proxy."""

    def __init__(self, folder: Path, cluster: Cluster | None = None, env: Mapping[str, str] | None = None) -> None:
        self.folder, self.cluster, self.env = folder, cluster, {**os.environ, **(env or {})}
        self.port = free_ports(1)[0]
        self.child: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> str:
        """The Spark service's address for workers."""
        return f"127.0.0.1:{self.port}"

    @property
    def output(self) -> str:
        """All its output."""
        file = self.folder / "output.log"
        return file.read_text(errors="replace") if file.exists() else ""

    async def spawn(self, home: str) -> None:
        """Starts it; `home` is the address that slots call."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(Path(__file__).with_name("spark_rerouted.py")), home]
        command += [f"port={self.port}", f"work_folder={self.folder / 'w'}"]
        if self.cluster is not None:
            command += [f"master={self.cluster.master}", f"spark_properties={self.cluster.properties()}"]
        with (self.folder / "output.log").open("ab") as output:
            self.child = await asyncio.create_subprocess_exec(
                *tethered(command), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=self.env
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
    """Whether the process holds a slot."""
    return _title(process).startswith("keelman slot-")


def below(process: psutil.Process) -> list[psutil.Process]:
    """Every process below this process."""
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


class System:
    """The whole system, in one folder. Used as `async with`."""

    def __init__(self, folder: Path, shape: Shape = Shape()) -> None:
        """Three brokers are reached without a proxy, and delete groups' offsets after a minute."""
        self.folder, self.shape = folder, shape
        self._brokers = BrokerCluster(folder / "brokers", PROPERTIES, shape.brokers) if shape.brokers > 1 else None
        self._secure: SecureBroker | None = None
        self.secure_link = Proxy("127.0.0.1", free_ports(1)[0])
        self.broker = BrokerProcess(folder / "broker")
        if shape.broker in (OLD, OLDER):
            for broker in (self.broker, *(self._brokers.brokers.values() if self._brokers else ())):
                broker.module = shape.broker
        self.kafka = KafkaProxy("127.0.0.1", self.broker.port)
        self.cluster = Cluster(folder, free_ports(1)[0]) if shape.cluster else None
        self.clocks: dict[str, Clock] = {}
        """The clocks of the `broker` and of the `others`, if they can be set."""
        if shape.broker == CLOCKS:
            self.clocks = {name: Clock(folder / f"{name}.clock") for name in ("broker", "others")}
            self.broker.env = self.clocks["broker"].env
        self._env = self.clocks["others"].env if self.clocks else {}
        self.spark = SparkProcess(folder / "spark", self.cluster, self._env)
        self.slot_link = Proxy("127.0.0.1", self.spark.port)
        self.worker_link = Proxy("127.0.0.1", self.spark.port)
        self.workers: list[WorkerProcess] = []
        self.restarts = 0
        self._retired = False
        self._stack = contextlib.AsyncExitStack()

    @property
    def bootstrap(self) -> str:
        """The system's bootstrap address: the proxy, that of a listener of the secure broker, or all brokers."""
        if self._secure is not None:
            return self.secure_link.address
        return self.kafka.address if self._brokers is None else self._brokers.bootstrap

    @property
    def open_bootstrap(self) -> str:
        """The harness's bootstrap address: the same, but of the secure broker the listener without a login."""
        return self.bootstrap if self._secure is None else self._secure.at("PLAINTEXT")

    @property
    def client(self) -> dict[str, str]:
        """The properties by which the system logs in to the brokers."""
        if self._secure is None:
            return {}
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{SCRAM} required username="{USER}" password="{SECRET}";',
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(self.secure.trust),
            "ssl.truststore.password": PASSWORD,
        }

    @property
    def secure(self) -> SecureBroker:
        """The secure broker, with TLS, logins and ACLs. Only for systems that have one."""
        assert self._secure is not None
        return self._secure

    @property
    def trio(self) -> BrokerCluster:
        """The three brokers. Only for a system that has them."""
        assert self._brokers is not None
        return self._brokers

    @property
    def replicas(self) -> int:
        """The number of replicas of topics."""
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
        await self._start_brokers()
        if self.cluster is not None:
            self._stack.callback(self.cluster.stop)
            await self.cluster.start(workers=HOSTS, cores=HOST_CORES)
        await self._spark()
        self._stack.push_async_callback(_ended, self.spark)
        extra = {"offset.flush.interval.ms": "1000", "plugin.path": str(await packed(self.folder / "java"))}
        for prefix in ("", "producer.", "consumer.", "admin."):
            extra |= {f"{prefix}{key}": value for key, value in self.client.items()}
        for number in range(self.shape.workers):
            folder = self.folder / f"worker{number}"
            worker = WorkerProcess(folder, self.bootstrap, GROUP, self.worker_link.address, extra, env=self._env)
            self.workers.append(worker)
            await worker.spawn()
            self._stack.push_async_callback(_ended, worker)
        await self.serving()
        keepers = await enter(Siblings())
        keepers.start(self._keep(self.spark, self._spark))
        for worker in self.workers:
            keepers.start(self._keep(worker, worker.spawn))

    async def _start_brokers(self) -> None:
        enter = self._stack.enter_async_context
        if self._brokers is not None:
            await self._brokers.start()
            self._stack.push_async_callback(self._brokers.end)
        elif self.shape.broker == SECURE:
            await enter(self.secure_link)
            self._secure = await enter(secure_broker(self.folder / "broker", proxies={LISTENER: self.secure_link}))
        else:
            await enter(self.kafka)
            if self.shape.broker == OWN_DISK:
                self._stack.callback(subprocess.run, ["umount", "-l", str(self.data)], check=True)
                self.data.mkdir(parents=True)
                subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(self.data)], check=True)
            self.broker.flags = ("--advertised", self.kafka.address)
            await self.broker.start()
            self._stack.push_async_callback(self.broker.end)

    @property
    def data(self) -> Path:
        """The data folder of a single broker."""
        return self.broker.home / "data"

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

    async def ask(self, method: str, path: str, body: Any = None, *, seconds: float = 300.0) -> httpx.Response:
        """Sends one REST request to whichever worker answers, repeatedly while the workers find each other."""

        async def answer() -> httpx.Response | None:
            for worker in self.workers:
                with contextlib.suppress(httpx.HTTPError):
                    answer = await worker.ask(method, path, body)
                    if answer.status_code not in (409, 500, 503):
                        return answer
            return None

        return await eventually(answer, seconds=seconds, every=0.3, what=f"{method} {path} is answered")

    def logs(self, lines: int = 40) -> str:
        """The ends of all logs."""
        broker = self._brokers or (self.broker if self._secure is None else self._secure.program)
        texts = {"spark": self.spark.output, "broker": broker.output[-3000:]}
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

"""Two drivers of one standalone cluster, a worker linked to them over TLS, and a mirror that copies on when the first
driver dies: the real service, worker, broker and Spark programs."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer

from keelman.rpc.health import is_serving
from keelman.rpc.identity import Identity, IdentityKind
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports
from support.brokers.broker import running_broker
from support.certificates import Authority, Issued
from support.eventually import eventually
from support.kafka.topics import create_topic
from support.numbered import Number, line
from support.oracle import judge
from support.places import with_tests
from support.spark.cluster import Cluster
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, pytest.mark.slow, pytest.mark.timeout(900)]
GROUP = "of-drivers"
RECORDS_A_SECOND = 100
COPIES_SECONDS = 5.0
STANDS_STILL_SECONDS = 60.0  # on a busy machine; without a standby it would be for ever


def write(folder: Path, prefix: str, issued: Issued, authority: Authority) -> dict[str, Path]:
    """Writes certificate, key and CA; returns their files."""
    texts = {"certificate": issued.chain_pem, "key": issued.key_pem, "ca": authority.pem}
    files = {name: folder / f"{prefix}-{name}.pem" for name in texts}
    for name, file in files.items():
        file.write_text(texts[name])
    return files


@dataclass
class Driver:
    """A Spark service as an agent starts it for a Spark cluster."""

    folder: Path
    master: str
    files: dict[str, Path]
    port: int = field(default_factory=lambda: free_ports(1)[0])

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.socket, self.log = self.folder / "h.sock", self.folder / "output.log"
        fields = {
            "master": self.master,
            "port": self.port,
            "standby": "true",
            "health_socket": self.socket,
            "advertised_address": f"127.0.0.1:{free_ports(1)[0]}",
            "work_folder": self.folder / "work",
            "link_tls_certificate": self.files["certificate"],
            "link_tls_key": self.files["key"],
            "link_client_ca": self.files["ca"],
            "log_json": "true",
            "max_slots": 4,
        }
        words = [f"--{key.replace('_', '-')}={value}" for key, value in fields.items()]
        plain = {k: v for k, v in with_tests().items() if not k.startswith("KEELMAN_SPARK_")}
        with self.log.open("wb") as output:
            command = tethered([sys.executable, "-m", "keelman.spark", "run", *words])
            self.process = subprocess.Popen(command, stdout=output, stderr=output, env=plain)

    @property
    def address(self) -> str:
        """The address for links."""
        return f"127.0.0.1:{self.port}"

    async def serving(self) -> None:
        """Waits until it serves."""

        async def ready() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return await is_serving(f"unix:{self.socket}")

        await eventually(ready, seconds=90, what="the driver serves")

    def has_spark(self) -> bool:
        """Whether it has a virtual machine."""
        return any(child.name() == "java" for child in psutil.Process(self.process.pid).children(recursive=True))

    def end(self) -> None:
        """Kills it."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait(60)

    def facts(self) -> str:
        """How long its Spark and its slots took to start."""
        lines = re.findall(
            r'"seconds": ([\d.]+), "event": "(\w+)"|"event": "(\w+)".*?"seconds": ([\d.]+)', self.log.read_text()
        )
        found = [f"{a or d} {b or c}" for a, b, c, d in lines]
        return ", ".join(found)


@contextlib.contextmanager
def fed(bootstrap: str, topic: str) -> Iterator[list[int]]:
    """Numbered records come into a topic, some each second, until the block ends; how many."""
    count, ends = [0], threading.Event()
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})

    def feed() -> None:
        while not ends.wait(1 / RECORDS_A_SECOND):
            producer.produce(topic, line(Number(0, count[0]), 100))
            producer.poll(0)
            count[0] += 1

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield count
    finally:
        ends.set()
        thread.join()
        assert producer.flush(300) == 0


@dataclass
class Seen:
    """The committed records of a topic, and when each was read."""

    bootstrap: str
    topic: str
    records: list[bytes | None] = field(default_factory=list)
    at: list[float] = field(default_factory=list)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Seen]:
        """Reads until the block ends."""
        ends = threading.Event()
        reads = threading.Thread(target=self._read, args=(ends,))
        reads.start()
        try:
            yield self
        finally:
            ends.set()
            reads.join()

    def _read(self, ends: threading.Event) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"seen-{self.topic}",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": "500",
            }
        )
        consumer.subscribe([self.topic])
        try:
            while not ends.is_set():
                for message in consumer.consume(1_000, 0.1):
                    if message.error() is None:
                        self.records.append(message.value())
                        self.at.append(time.time())
        finally:
            consumer.close()

    def stood_still(self, since: float) -> float:
        """The longest time without a record after `since`."""
        return max(later - max(earlier, since) for earlier, later in pairwise(self.at) if later > since)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    new_cluster = Cluster(tmp_path, free_ports(1)[0])
    try:
        await new_cluster.start(workers=1, cores=8)
        yield new_cluster
    finally:
        new_cluster.stop()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
async def test_a_mirror_copies_on_through_the_standby(cluster: Cluster, tmp_path: Path, number: signal.Signals) -> None:
    authority = Authority()
    of_drivers = write(tmp_path, "driver", authority.issue("driver", "127.0.0.1"), authority)
    worker_identity = Identity(IdentityKind.WORKER, f"{GROUP}.0f8fad5b-d9cb-469f-a165-70867728950e").uri
    of_worker = write(tmp_path, "worker", authority.issue("worker", worker_identity), authority)
    async with contextlib.AsyncExitStack() as stack:
        bootstrap = await stack.enter_async_context(running_broker(tmp_path / "broker"))
        drivers = []
        for name in ("first", "second"):
            drivers.append(driver := Driver(tmp_path / name, cluster.master, of_drivers))
            stack.callback(driver.end)
        for driver in drivers:
            await driver.serving()
        create_topic(bootstrap, "numbers", 1)
        tls = [f"--spark-tls-{n}={of_worker[n]}" for n in ("certificate", "key")] + [f"--spark-ca={of_worker['ca']}"]
        addresses = ",".join(driver.address for driver in drivers)
        worker = WorkerProcess(tmp_path / "worker", bootstrap, GROUP, addresses, flags=tuple(tls))
        await stack.enter_async_context(workers(worker))
        config = {
            "connector.class": "MirrorSource", "source.cluster.alias": "there", "target.cluster.alias": "here",
            "source.cluster.bootstrap.servers": bootstrap, "target.cluster.bootstrap.servers": bootstrap,
            "topics": "numbers", "replication.factor": "1", "offset-syncs.topic.replication.factor": "1",
            "heartbeats.topic.replication.factor": "1",
        }  # fmt: skip
        sent = stack.enter_context(fed(bootstrap, "numbers"))
        answer = await worker.ask("POST", "/connectors", {"name": "mirror", "config": config})
        assert answer.status_code == 201, answer.text
        seen = stack.enter_context(Seen(bootstrap, "there.numbers").reading())
        await eventually(lambda: len(seen.records) > COPIES_SECONDS * RECORDS_A_SECOND, seconds=200, what="it copies")
        # On a busy machine the worker may not have waited for the first one.
        first, second = sorted(drivers, key=lambda driver: not driver.has_spark())
        assert (first.has_spark(), second.has_spark()) == (True, False), worker.output[-3000:]

        os.kill(first.process.pid, number)
        hit = time.time()
        attached = "slot_attached"
        await eventually(lambda: attached in second.log.read_text(), seconds=200, what="the standby has a slot")
        copied = len(seen.records)
        await eventually(lambda: len(seen.records) > copied + RECORDS_A_SECOND, seconds=200, what="it copies on")
        seconds = seen.stood_still(hit)
        print(f"stood still for {seconds:.1f} s after {number.name}; the standby: {second.facts()}")
        print("\n".join(line for line in worker.output.splitlines() if "spark_link" in line or "tasks_" in line))
        assert seconds < STANDS_STILL_SECONDS, second.log.read_text()
        if number is signal.SIGSTOP:
            first.process.send_signal(signal.SIGCONT)
            let_go = re.compile("lease_lapsed|slot_lost")
            await eventually(lambda: let_go.search(first.log.read_text()), seconds=60, what="the first lets it go")
        total = sent[0]
        await eventually(lambda: len(seen.records) >= total, seconds=100, what="all before are there")
        report = judge({0: len(seen.records)}, {"there.numbers": list(seen.records)})
        print(report)
        assert report.clean, str(report)
        assert "tasks_given_back" not in worker.output

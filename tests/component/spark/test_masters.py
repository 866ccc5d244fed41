"""The Spark service on masters of other hosts: a standalone cluster and a Spark Connect server.

Both are in a network namespace of their own, which reaches this host over one cable, with only the pack of keelman.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from keelman.api.copy.v1.slot_service_pb2 import AttachRequest, SlotGreeting
from keelman.api.copy.v1.slot_service_pb2_grpc import SlotServiceStub
from keelman.api.copy.v1.worker_link_service_pb2 import OpenLinkRequest, WorkerGreeting
from keelman.api.copy.v1.worker_link_service_pb2_grpc import WorkerLinkServiceStub
from keelman.model.errors import KeelmanError, Unauthenticated, Unavailable
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated
from keelman.runtime.processes.ports import free_ports
from keelman.spark.masters.pack import make_pack
from support.brokers.broker import BrokerProcess
from support.eventually import eventually
from support.spark.cluster import Cluster, can_make_networks, network
from support.spark.service import SparkService, spark_service
from support.worker.processes import WorkerProcess, workers

pytestmark = [
    pytest.mark.component,
    pytest.mark.slow,
    pytest.mark.skipif(not can_make_networks(), reason="hosts of their own are network namespaces, which root makes"),
]
NUMBERS = 20_000
NAME = "slots.keelman.test"
PYTHON = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"  # without any of our packages


@dataclass
class Hosts:
    """The environment of the Spark service."""

    folder: Path
    here: str
    bootstrap: str
    cluster: Cluster
    pack: Path

    @property
    def certificate(self) -> Path:
        """A self-signed certificate; its key is beside it."""
        return self.folder / "certificate.pem"


@dataclass
class Spark:
    """One Spark service, and its port for slots of other hosts."""

    service: SparkService
    door: int


@pytest.fixture(scope="module")
async def hosts(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Hosts]:
    folder = tmp_path_factory.mktemp("hosts")
    with network() as net, ending(Cluster(folder, 7077, net.there, net.name)) as cluster:
        broker = BrokerProcess(folder / "broker")
        broker.flags = ("--host", "0.0.0.0", "--advertised", f"{net.here}:{broker.port}")
        hosts = Hosts(folder, net.here, f"{net.here}:{broker.port}", cluster, folder / "pack.tar.gz")
        sign(hosts.certificate)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(broker.start())
                tasks.create_task(cluster.start(workers=1, cores=8))
                tasks.create_task(asyncio.to_thread(make_pack, hosts.pack, level=1))
            yield hosts
        finally:
            await broker.end()


@contextlib.contextmanager
def ending(cluster: Cluster) -> Iterator[Cluster]:
    try:
        yield cluster
    finally:
        cluster.stop()


def sign(certificate: Path) -> None:
    """Creates a certificate for NAME, and its key."""
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    files = ["-keyout", certificate.with_suffix(".key"), "-out", certificate]
    names = ["-subj", "/CN=slots", "-addext", f"subjectAltName=DNS:{NAME}"]
    subprocess.run(["openssl", *words, *files, *names], check=True, capture_output=True)


@pytest.fixture(scope="module", params=["spark", "sc"], ids=["standalone", "connect"])
async def spark(hosts: Hosts, request: pytest.FixtureRequest) -> AsyncIterator[Spark]:
    master = hosts.cluster.master
    if request.param == "sc":
        master = await hosts.cluster.connect_server(15002, str(PYTHON))
    (door,) = free_ports(1)
    flags = {
        "master": master,
        "advertised_address": f"{hosts.here}:{door}",
        "tls_certificate": hosts.certificate,
        "tls_key": hosts.certificate.with_suffix(".key"),
        "tls_server_name": NAME,
        "pack": hosts.pack,
        "executor_python": PYTHON,
        "spark_properties": hosts.cluster.properties(),
        "slot_start_timeout_seconds": 120,
        "slots_per_worker": 1,
    }
    try:
        async with spark_service(hosts.folder / request.param, seconds=240, **flags) as service:
            yield Spark(service, door)
    finally:
        hosts.cluster.end("connect")


def read(bootstrap: str, topic: str, numbers: list[int], seconds: float) -> None:
    """Appends the committed numbers in their order, until all are there."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"seen-{topic}",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end and (not numbers or numbers[-1] < NUMBERS - 1):
            numbers += [int(m.value()) for m in consumer.consume(5_000, 0.2) if m.error() is None]
    finally:
        consumer.close()


async def answer_to(method: Callable[[], Any], message: object) -> object:
    """The answer to a call of a stream's first message.

    gRPC loses a status that comes before the message is written: the call is repeated then.
    """
    while True:
        call = method()
        try:
            with translated():
                await call.write(message)
                return await call.read()
        except Unavailable as error:
            if error.reason != "CALL_CUT":
                raise


async def test_every_number_arrives_once_though_an_executor_is_killed(
    hosts: Hosts, spark: Spark, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    group = f"g-{request.node.callspec.id}"
    worker = WorkerProcess(tmp_path / "worker", hosts.bootstrap, group, spark.service.address)
    async with workers(worker):
        file = {"connector.class": "FileStreamSource", "file": "/etc/hostname", "topic": f"{group}-file"}
        await worker.ask("POST", "/connectors", {"name": "file", "config": file})
        config = {"connector.class": "VerifiableSource", "name": "numbers", "topic": group, "throughput": "2000"}
        config["max.records"] = str(NUMBERS)
        await worker.ask("POST", "/connectors", {"name": "numbers", "config": config})

        async def refused() -> bool:
            status = (await worker.ask("GET", "/connectors/file/status")).text
            return '"FAILED"' in status and "needs the files or devices of its worker's node" in status

        await eventually(refused, what="the file source is refused")
        numbers: list[int] = []
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.to_thread(read, hosts.bootstrap, group, numbers, 400))
            await eventually(lambda: len(numbers) > NUMBERS / 10, seconds=300, what="the first numbers")
            for executor in hosts.cluster.executors():
                executor.kill()
            assert len(numbers) < NUMBERS, "in the middle"
        output = spark.service.log.read_text()
        assert numbers == list(range(NUMBERS)), f"{len(numbers)} numbers; {output[-3000:]}"
        assert "slot_lost" in output
        await worker.ask("DELETE", "/connectors/numbers")
    await guarded(hosts, spark)


async def guarded(hosts: Hosts, spark: Spark) -> None:
    """The advertised port is for slots with a token, and over TLS."""
    address = f"{hosts.here}:{spark.door}"
    trusted = hosts.certificate.read_bytes()
    greeting = AttachRequest(greeting=SlotGreeting(slot="slot-none", token="guessed"))
    async with channel(address, root_certificates=trusted, server_name=NAME) as home:
        attach = SlotServiceStub(home).Attach
        with pytest.raises(Unauthenticated):
            await answer_to(attach, greeting)
        link = WorkerLinkServiceStub(home).OpenLink
        with pytest.raises(KeelmanError) as refused:
            await answer_to(link, OpenLinkRequest(greeting=WorkerGreeting(worker_id="w", incarnation="1")))
        assert not isinstance(refused.value, Unavailable), "it answers, but not for workers"
    async with channel(address) as plain:
        attach = SlotServiceStub(plain).Attach
        with pytest.raises(Unavailable):
            await answer_to(attach, greeting)
    async with channel(address, root_certificates=trusted) as wrong_name:
        attach = SlotServiceStub(wrong_name).Attach
        with pytest.raises(Unavailable):
            await answer_to(attach, greeting)
    presented = await asyncio.to_thread(ssl.get_server_certificate, (hosts.here, spark.door))
    assert presented.strip() == hosts.certificate.read_text().strip()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(hosts.here, int(spark.service.address.rpartition(":")[2]))

"""Workers of two nodes copy by one Spark cluster, over mutual TLS; a killed driver loses and doubles nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from keelman.api.connect.v1 import spark_cluster_service_pb2 as pb
from keelman.api.connect.v1.broker_cluster_pb2 import ClusterState
from keelman.api.connect.v1.operation_pb2 import OPERATION_STATE_SUCCEEDED
from keelman.api.connect.v1.spark_cluster_pb2 import SparkCluster, SparkClusterSpec
from keelman.runtime.processes.ports import free_ports
from support.agent.nothing_left import nothing_left
from support.eventually import eventually
from support.spark.cluster import SMALL_EXECUTORS, Cluster
from support.state.definitions import FILE_SOURCE, Definitions
from support.state.service import Clients, free_range
from support.state.trust import Installation, installation

pytestmark = [pytest.mark.component, pytest.mark.slow]
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
TOPIC = "lines-of-spark-links"
LINES = 400


@contextlib.asynccontextmanager
async def two_nodes(folder: Path) -> AsyncIterator[Installation]:
    """An installation with the hosts n1 and n2, whose agents run."""
    ranges = {"worker_ports": free_range(4), "spark_ports": free_range(6)}
    async with installation(folder, **ranges) as installed, contextlib.AsyncExitStack() as stack:
        for name in ("n1", "n2"):
            await installed.join(name)
            stack.enter_context(nothing_left(installed.homes[name]))
            await stack.enter_async_context(installed.agent(name))
            await installed.online(name)
        yield installed


async def test_two_nodes_copy_by_one_spark_cluster_whose_driver_is_killed(tmp_path: Path, bootstrap: str) -> None:
    standalone = Cluster(tmp_path, free_ports(1)[0])
    try:
        await standalone.start(workers=1, cores=4)
        async with two_nodes(tmp_path) as installed:
            await _copied(installed, standalone, bootstrap, tmp_path / "in.txt")
    finally:
        standalone.stop()


async def _copied(installed: Installation, standalone: Cluster, bootstrap: str, read: Path) -> None:
    clients = Clients(installed.to_gateway)
    await clients.create_external("default", bootstrap)
    spec = SparkClusterSpec(master=standalone.master, properties=SMALL_EXECUTORS)
    await clients.sparks.CreateSparkCluster(pb.CreateSparkClusterRequest(name="big", spec=spec))
    await clients.create_workers("linked", count=2, spark_cluster="big")
    await clients.start_workers("linked")

    async def spark() -> SparkCluster:
        return (await clients.sparks.GetSparkCluster(pb.GetSparkClusterRequest(name="big"))).spark_cluster

    async def all_run() -> bool:
        workers = await clients.worker_cluster("linked")
        runs = (await spark()).status.state == ClusterState.CLUSTER_STATE_RUNNING
        assert runs, str((await spark()).status)
        return workers.status.ready_workers == 2

    await eventually(all_run, what="drivers and workers run")
    drivers = list((await spark()).status.drivers)
    assert [driver.node for driver in drivers] == ["n1", "n2"]
    for name in ("n1", "n2"):
        folder = next(installed.homes[name].workloads.glob("worker*linked*"))
        assert "spark_tls_certificate" in (folder / "settings.toml").read_text()
        assert not list(installed.homes[name].workloads.glob(f"spark-{name}*")), "nodes have no Spark of their own"

    read.write_text("")
    strings = dict.fromkeys(("key.converter", "value.converter"), STRINGS)
    definitions = Definitions(clients, "linked")
    await definitions.create(
        "from-file", {"connector.class": FILE_SOURCE, "file": str(read), "topic": TOPIC, **strings}
    )
    assert (await definitions.apply("from-file")).state == OPERATION_STATE_SUCCEEDED
    with read.open("a") as stream:
        for number in range(LINES):
            stream.write(f"{number}\n")
            stream.flush()
            if number == LINES // 2:
                await eventually(lambda: asyncio.to_thread(_has_some, bootstrap), what="the first driver copies")
                pids = {w.name: w.status.pid for w in (await clients.workloads()).values()}
                os.kill(pids["spark/@big/0"], signal.SIGKILL)
    await eventually(lambda: asyncio.to_thread(_has_all, bootstrap), what="all lines are there")
    counts = Counter(await asyncio.to_thread(_lines, bootstrap))
    assert counts == Counter(str(number) for number in range(LINES)), "none is lost, none is there twice"


def _lines(bootstrap: str) -> list[str]:
    """The committed lines."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    try:
        return [(m.value() or b"").decode() for m in consumer.consume(2 * LINES, 2) if not m.error()]
    finally:
        consumer.close()


def _has_some(bootstrap: str) -> bool:
    return len(_lines(bootstrap)) > 0


def _has_all(bootstrap: str) -> bool:
    return len(set(_lines(bootstrap))) >= LINES

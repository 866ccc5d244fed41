"""Workers of Apache Kafka Connect on two nodes.

A worker that does not start reports the reason; workers leave a drained node in order, and its connector continues
elsewhere.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import psutil
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import worker_cluster_pb2, worker_cluster_service_pb2
from keelman.api.node.v1 import node_service_pb2
from keelman.api.node.v1.workload_pb2 import Workload, WorkloadState
from keelman.rpc.channels import channel
from support.certificates import Authority
from support.eventually import eventually
from support.java.kit import needs_java
from support.kafka.topics import create_topic, messages
from support.state.nodes import SECONDS, Nodes, running_nodes
from support.state.service import Clients

pytestmark = [pytest.mark.component, needs_java()]
WORKER, TOPIC = "worker/apache/0", "drained-lines"
LINES = 100


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with running_nodes(tmp_path, ("n1", "n2")) as nodes:
        yield nodes


async def runs(clients: Clients, *, elsewhere_than: str = "") -> Workload:
    """Waits until the one worker runs with its cluster's specification; returns it."""

    async def ready() -> Workload | None:
        workers = {n: w for n, w in (await clients.workloads()).items() if n.startswith("worker/")}
        assert set(workers) == {WORKER}
        worker = workers[WORKER]
        up = (
            worker.status.state == WorkloadState.WORKLOAD_STATE_RUNNING
            and worker.status.generation == worker.generation
        )
        return worker if up and worker.node != elsewhere_than else None

    actual_runs = await eventually(ready, seconds=SECONDS, what=f"{WORKER} runs")
    assert actual_runs is not None
    return actual_runs


async def update(clients: Clients, *fields: str, **spec: object) -> None:
    request = worker_cluster_service_pb2.UpdateWorkerClusterRequest(
        name="apache",
        spec=worker_cluster_pb2.WorkerClusterSpec(**spec),
        update_mask=FieldMask(paths=fields),
    )
    await clients.clusters.UpdateWorkerCluster(request)


@pytest.mark.slow
async def test_a_wrong_keystore_is_told_and_a_drained_node_is_left_in_order(
    system: Nodes, bootstrap: str, tmp_path: Path
) -> None:
    for node in system.homes:
        system.start_agent(node)
    keys = Authority().issue("worker", "127.0.0.1").write_pkcs12(tmp_path / "keys.p12")
    store = "listeners.https.ssl.keystore."
    path = tmp_path / "lines"
    path.write_text("".join(f"{n}\n" for n in range(LINES)))
    create_topic(bootstrap, TOPIC)
    async with channel(f"127.0.0.1:{system.state.port}") as connection:
        clients = Clients(connection)
        await system.are_online(clients)
        await clients.create_external("kafka", bootstrap)
        await clients.create_workers(
            "apache",
            brokers="kafka",
            count=1,
            engine=worker_cluster_pb2.WORKER_ENGINE_KAFKA_CONNECT,
            https=True,
            properties={f"{store}location": str(keys), f"{store}type": "PKCS12", f"{store}password": "wrong"},
        )
        await clients.start_workers("apache")

        async def says_why() -> bool:
            status = (await clients.worker_cluster("apache")).status
            assert f"{store}password: the password does not open" in status.message, status
            return True

        await eventually(says_why, seconds=SECONDS, what="the cluster names the problem of the keystore")

        await update(clients, "https", "properties", https=False, properties={"offset.flush.interval.ms": "500"})
        worker = await runs(clients)
        async with httpx.AsyncClient(trust_env=False, timeout=300) as client:

            async def rest_url() -> str:
                (url,) = (await clients.worker_cluster("apache")).status.rest_urls
                return str(url)

            async def values() -> set[bytes]:
                return {message.value() or b"" for message in messages(bootstrap, TOPIC)}

            async def has(count: int) -> bool:
                return await values() == {b"%d" % n for n in range(count)}

            config = {
                "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
                "file": str(path),
                "topic": TOPIC,
                "key.converter": "org.apache.kafka.connect.storage.StringConverter",
                "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            }
            answer = await client.put(f"{await rest_url()}/connectors/lines/config", json=config)
            assert answer.status_code == 201, answer.text
            await eventually(lambda: has(LINES), seconds=SECONDS, what="all lines are copied")

            await clients.nodes.DrainNode(node_service_pb2.DrainNodeRequest(name=worker.node))
            moved = await runs(clients, elsewhere_than=worker.node)
            assert moved.node in set(system.homes) - {worker.node}
            await eventually(lambda: not psutil.pid_exists(worker.status.pid), seconds=SECONDS, what="it has ended")
            logs = system.homes[worker.node].workloads.glob("worker-apache-0/log*")
            ended = [line for file in logs for line in file.read_text().splitlines() if "connect_ended" in line]
            assert "true" in ended[-1].lower(), ended

            with path.open("a") as file:
                file.write("".join(f"{n}\n" for n in range(LINES, 2 * LINES)))
            await eventually(lambda: has(2 * LINES), seconds=SECONDS, what="the lines behind are copied elsewhere")
            assert len(messages(bootstrap, TOPIC)) == 2 * LINES, "in order: nothing was copied again"

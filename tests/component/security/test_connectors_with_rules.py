"""On managed brokers with access rules connectors copy, dead letters are replayed, logs are delivered and offsets are
reset: all with the certificate of the worker cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from keelman.api.connect.v1 import log_delivery_pb2 as logs
from keelman.api.connect.v1 import worker_cluster_pb2 as clusters
from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters_pb
from support.eventually import eventually
from support.security.principals import Holder, create_brokers, has_records, holder_of, run_workers, running
from support.state.service import Clients

pytestmark = [pytest.mark.component, pytest.mark.timeout(600)]
STRINGS = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.storage.StringConverter")
SOURCE, SINK = (f"org.apache.kafka.connect.file.FileStream{kind}Connector" for kind in ("Source", "Sink"))
LINES = "one\ntwo\n"


async def ask(clients: Clients, cluster: str, method: str, path: str, body: object = None) -> httpx.Response:
    (url,) = (await clients.worker_cluster(cluster)).status.rest_urls
    async with httpx.AsyncClient(timeout=95, trust_env=False) as client:
        return await client.request(method, f"{url}/connectors/{path}", json=body)


async def start(clients: Clients, cluster: str, connectors: Mapping[str, Mapping[str, str]]) -> None:
    for name, config in connectors.items():
        answer = await ask(clients, cluster, "PUT", f"{name}/config", {**STRINGS, **config})
        assert answer.status_code == 201, answer.text


async def all_run(clients: Clients, cluster: str, *names: str) -> bool:
    for name in names:
        status = (await ask(clients, cluster, "GET", f"{name}/status")).json()
        tasks = status.get("tasks", [])
        assert tasks, status
        assert all(task["state"] == "RUNNING" for task in tasks), status
    return True


async def has_log(holder: Holder) -> bool:
    return await asyncio.to_thread(holder.records, "logs", 1) > 0


@pytest.mark.slow
async def test_connectors_copy_and_their_helpers_work(tmp_path: Path) -> None:
    read, written, sunk = tmp_path / "in.txt", tmp_path / "out.txt", tmp_path / "theirs.txt"
    read.write_text(LINES)
    async with running(tmp_path) as installed:
        clients, home = Clients(installed.to_gateway), installed.homes["n1"]
        await create_brokers(clients)
        await run_workers(clients, "a")
        await run_workers(clients, "k", engine=clusters.WorkerEngine.WORKER_ENGINE_KAFKA_CONNECT)
        connectors = {
            "from-file": {"connector.class": SOURCE, "file": str(read), "topic": "lines"},
            "to-topic": {
                "connector.class": "keelman.connectors.KafkaSinkConnector", "topics": "lines", "topic": "sunk",
            },
            "to-file": {"connector.class": SINK, "file": str(written), "topics": "sunk"},
            "bad": {
                "connector.class": SINK, "file": str(tmp_path / "none.txt"), "topics": "lines",
                "value.converter": "org.apache.kafka.connect.json.JsonConverter", "errors.tolerance": "all",
                "errors.deadletterqueue.topic.name": "letters", "errors.deadletterqueue.topic.replication.factor": "1",
                "errors.deadletterqueue.context.headers.enable": "true",
            },
        }  # fmt: skip
        await start(clients, "a", connectors)
        theirs = {
            "k-from-file": {
                "connector.class": SOURCE,
                "file": str(read),
                "topic": "k-lines",
                "topic.creation.default.partitions": "1",
                "topic.creation.default.replication.factor": "1",
            },
            "k-to-file": {"connector.class": SINK, "file": str(sunk), "topics": "k-lines"},
        }
        await start(clients, "k", theirs)
        spec = clusters.WorkerClusterSpec(
            log_delivery=logs.LogDelivery(kafka=logs.KafkaLogDelivery(enabled=True, topic="logs"))
        )
        request = clusters_pb.UpdateWorkerClusterRequest(name="a", spec=spec)
        request.update_mask.paths.append("log_delivery")
        await clients.clusters.UpdateWorkerCluster(request)

        await eventually(
            lambda: written.exists() and written.read_text() == LINES, seconds=120, what="KafkaSink copies"
        )
        await eventually(lambda: sunk.exists() and sunk.read_text() == LINES, seconds=120, what="Kafka Connect copies")
        mine: Holder = await holder_of(clients, home, "worker/a/0")
        await eventually(lambda: has_records(mine, "letters", 2), seconds=90, what="there are two dead letters")
        await eventually(lambda: all_run(clients, "a", *connectors), seconds=60, what="all run")
        await eventually(lambda: has_log(mine), seconds=90, what="its log is delivered")
        answer = await ask(clients, "a", "POST", "bad/dead-letters/replay", {"to": "lines"})
        assert (answer.status_code, answer.json().get("sent")) == (200, 2), answer.text
        for method, path, body in (
            ("PUT", "to-file/stop", None),
            ("DELETE", "to-file/offsets", None),
            ("PUT", "from-file/stop", None),
            ("DELETE", "from-file/offsets", None),
        ):
            changed = await ask(clients, "a", method, path, body)
            assert changed.status_code < 300, f"{path}: {changed.text}"

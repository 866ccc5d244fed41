"""On managed brokers with access rules connectors copy, dead letters are replayed, logs are delivered and offsets are
reset: all with the certificate of the worker cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer

from keelman.api.connect.v1 import log_delivery_pb2 as logs
from keelman.api.connect.v1 import worker_cluster_pb2 as clusters
from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters_pb
from support.eventually import eventually
from support.kafka.topics import create_topic, messages
from support.security.principals import SECONDS, Holder, create_brokers, has_records, holder_of, run_workers, running
from support.state.service import Clients

pytestmark = pytest.mark.component
STRINGS = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.storage.StringConverter")
MIRROR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
SOURCE, SINK = (f"org.apache.kafka.connect.file.FileStream{kind}Connector" for kind in ("Source", "Sink"))
LINES = "one\ntwo\n"


def produce(bootstrap: str, topic: str, lines: Sequence[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for line in lines:
        producer.produce(topic, line)
    assert producer.flush(SECONDS) == 0


async def ask(clients: Clients, cluster: str, method: str, path: str, body: object = None) -> httpx.Response:
    (url,) = (await clients.worker_cluster(cluster)).status.rest_urls
    async with httpx.AsyncClient(timeout=300, trust_env=False) as client:
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

        await eventually(lambda: written.exists() and written.read_text() == LINES, what="KafkaSink copies")
        await eventually(lambda: sunk.exists() and sunk.read_text() == LINES, what="Kafka Connect copies")
        mine: Holder = await holder_of(clients, home, "worker/a/0")
        await eventually(lambda: has_records(mine, "letters", 2), what="there are two dead letters")
        await eventually(lambda: all_run(clients, "a", *connectors), what="all run")
        await eventually(lambda: has_log(mine), what="its log is delivered")
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


@pytest.mark.slow
async def test_mirrors_log_in_as_their_worker_at_its_own_brokers(bootstrap: str, name: str, tmp_path: Path) -> None:
    """From brokers without TLS into the managed ones and back, by a cluster that may touch its copies alone."""
    lines, factors = ["one", "two"], dict.fromkeys(("replication.factor", "offset-syncs.topic.replication.factor"), "1")
    common = {"connector.class": MIRROR, "keelman.park.after.ms": "1000", **factors}
    create_topic(bootstrap, name, 1)
    produce(bootstrap, name, lines)
    async with running(tmp_path) as installed:
        clients, home = Clients(installed.to_gateway), installed.homes["n1"]
        await create_brokers(clients)
        await run_workers(clients, "m", allowed_topics=["us.*"])
        own = (await clients.broker_cluster("default")).status.bootstrap_servers
        mirrors = {
            "in": {
                **common, "topics": name, "source.cluster.alias": "us", "source.cluster.bootstrap.servers": bootstrap,
                "offset-syncs.topic.location": "target",
            },
            "out": {
                **common, "topics": f"us.{name}", "source.cluster.alias": "back", "target.cluster.alias": "plain",
                "source.cluster.bootstrap.servers": own, "target.cluster.bootstrap.servers": bootstrap,
                **dict.fromkeys(
                    ("producer.override.bootstrap.servers", "admin.override.bootstrap.servers"), bootstrap
                ),
                "offsets.storage.topic": f"{name}-offsets",
            },
        }  # fmt: skip
        await start(clients, "m", {"in": mirrors["in"]})
        mine = await holder_of(clients, home, "worker/m/0")
        await eventually(lambda: has_records(mine, f"us.{name}", 2), what="the managed brokers have a copy")
        await start(clients, "m", {"out": mirrors["out"]})

        def returned() -> bool:
            return [m.value().decode() for m in messages(bootstrap, f"back.us.{name}")] == lines

        async def are_parked() -> bool:
            (url,) = (await clients.worker_cluster("m")).status.rest_urls
            async with httpx.AsyncClient(trust_env=False) as client:
                text = (await client.get(f"{url}/metrics")).text
            parked = [line for line in text.splitlines() if line.startswith("keelman_worker_parked_tasks")]
            assert [float(line.split()[-1]) for line in parked] == [2.0], text[:2000]
            return True

        await eventually(returned, what="the copy is copied back")
        await eventually(lambda: all_run(clients, "m", *mirrors), what="both run")
        for syncs in ("mm2-offset-syncs.us.internal", "mm2-offset-syncs.plain.internal"):
            assert syncs in mine.admin.list_topics(timeout=SECONDS).topics, syncs
        await eventually(are_parked, what="both are parked")
        lines.append("three")
        produce(bootstrap, name, lines[-1:])
        await eventually(returned, what="records after a rest are copied, too")
        for path in ("in/tasks", "in/config", "out/tasks", "out/config"):
            shown = (await ask(clients, "m", "GET", path)).text
            assert "ssl." not in shown, f"{path}: {shown}"
            assert "PRIVATE" not in shown, path

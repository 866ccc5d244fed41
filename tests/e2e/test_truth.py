"""The command line shows the actual state: its answers against the processes, and a foreign client."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from keelman.kafka.data_topics import create_topic
from support.cli.system import FILE, LOOK_SECONDS, STRING, Keelman, numbered
from support.eventually import eventually

pytestmark = pytest.mark.e2e

SERVED = {
    "gateway": {
        "keelman.api.node.v1.NodeService",
        "keelman.api.node.v1.WorkloadService",
        "keelman.api.connect.v1.BrokerClusterService",
        "keelman.api.connect.v1.WorkerClusterService",
        "keelman.api.connect.v1.WorkerService",
        "keelman.api.connect.v1.ConnectorService",
        "keelman.api.copy.v1.CopyRunService",
    },
    "state": {"keelman.api.node.v1.NodeService", "keelman.api.node.v1.SessionService"},
    "agent": {"keelman.api.node.v1.AgentService"},
}


async def test_every_kind_shows_the_truth(keelman: Keelman, tmp_path: Path) -> None:
    path, output = tmp_path / "given.txt", tmp_path / "copied.txt"
    path.write_bytes(numbered(0, 1000))
    await keelman.ok("create", "wc", "truth", "--start", "--wait", "--property", "keelman.park.after.ms=-1")
    servers = (await keelman.item("bc", "default"))["status"]["bootstrap_servers"]
    await create_topic({"bootstrap.servers": servers}, "truth", partitions=1)
    source = tmp_path / "source.json"
    strings = {"key.converter": STRING, "value.converter": STRING}
    config = {"connector.class": f"{FILE}SourceConnector", "tasks.max": 1, "file": str(path), "topic": "truth"}
    source.write_text(json.dumps({"name": "in", "config": {**config, **strings}}))
    sink = tmp_path / "sink.properties"
    sink.write_text(
        f"connector.class={FILE}SinkConnector\ntasks.max=1\nfile={output}\ntopics=truth\n"
        f"key.converter={STRING}\nvalue.converter={STRING}\n"
    )
    await keelman.ok("create", "connector", "truth/in", "--config-file", str(source), "--wait")
    await keelman.ok("create", "connector", "out", "--cluster", "truth", "--config-file", str(sink), "--wait")
    await eventually(lambda: output.exists() and output.read_bytes() == path.read_bytes(), what="all is copied")

    (node,) = await keelman.items("nodes")
    assert node["name"] == keelman.system["node"]
    assert node["status"]["state"] == "NODE_STATE_ONLINE"
    assert node["status"]["agent_address"] == keelman.system["agent"]
    assert int(node["status"]["memory_bytes"]) == psutil.virtual_memory().total

    (brokers,) = await keelman.items("broker-clusters")
    assert brokers["status"]["state"] == "CLUSTER_STATE_RUNNING"
    assert brokers["spec"]["managed"]["nodes"] == [node["name"]]

    cluster = await keelman.item("worker-cluster", "truth")
    assert cluster["status"]["state"] == "CLUSTER_STATE_RUNNING"
    assert (cluster["status"]["ready_workers"], cluster["status"]["wanted_workers"]) == (1, 1)
    (rest,) = cluster["status"]["rest_urls"]

    (worker,) = [w for w in await keelman.items("workers") if w["worker_cluster"] == "truth"]
    assert worker["rest_url"] == rest
    assert psutil.Process(worker["process"]["pid"]).is_running()

    connectors = {c["name"]: c for c in await keelman.items("connectors", "--cluster", "truth")}
    assert set(connectors) == {"in", "out"}
    assert connectors["in"]["type"] == "CONNECTOR_TYPE_SOURCE"
    assert connectors["out"]["config"]["file"] == str(output)
    assert all(t["state"] == "CONNECTOR_STATE_RUNNING" for c in connectors.values() for t in c["tasks"])

    async def counted() -> bool:
        runs = {r["connector"]: r for r in await keelman.items("copy-runs", "--cluster", "truth")}
        return {name: int(r["progress"]["records"]) for name, r in runs.items()} == {"in": 1000, "out": 1000}

    await eventually(counted, every=LOOK_SECONDS, what="both copy runs tell 1000 committed records")

    web = keelman.system["http"]
    answer = await _read(f"{web}/clusters/truth/connectors/out/status")
    assert '"RUNNING"' in answer
    assert '"in"' in await _read(f"{rest}/connectors")

    assert (await keelman.run("get", "connector", "truth/none")).code == 3
    assert (await keelman.run("create", "wc", "truth")).code == 4
    assert "demo" not in (await keelman.ok("get", "wc", "-o", "name"))
    assert "worker/truth/0" in await keelman.ok("describe", "node", node["name"])
    assert (await keelman.ok("logs", "wc", "truth", "--tail", "5")).strip()
    await keelman.ok("pause", "connector", "truth/in", "--wait")
    await keelman.ok("resume", "connector", "truth/in", "--wait")
    await keelman.ok("restart", "worker", "truth/0", "--wait")
    assert f"worker-cluster truth: RUNNING at {rest}" in await keelman.ok("status")
    await keelman.ok("delete", "wc", "truth", "--yes", "--wait")
    assert (await keelman.run("get", "wc", "truth")).code == 3


async def _read(url: str) -> str:
    def fetch() -> str:
        with urllib.request.urlopen(url, timeout=300) as answer:
            return str(answer.read().decode())

    return await asyncio.to_thread(fetch)


@pytest.mark.parametrize("service", sorted(SERVED))
async def test_a_client_that_knows_nothing_lists_the_services(keelman: Keelman, service: str) -> None:
    with grpc.insecure_channel(keelman.system[service]) as channel:
        listed = set(ProtoReflectionDescriptorDatabase(channel).get_services())
    assert SERVED[service] | {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} <= listed


async def test_a_client_that_knows_nothing_calls_the_gateway(keelman: Keelman) -> None:
    with grpc.insecure_channel(keelman.system["gateway"]) as channel:
        pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        answer = _call(channel, pool, "keelman.api.node.v1.NodeService", "ListNodes")
        assert [n["name"] for n in answer["nodes"]] == [keelman.system["node"]]
        answer = _call(channel, pool, "keelman.api.connect.v1.BrokerClusterService", "ListBrokerClusters")
        assert [c["name"] for c in answer["broker_clusters"]] == ["default"]


def _call(channel: grpc.Channel, pool: DescriptorPool, service: str, method: str) -> dict[str, Any]:
    described = pool.FindServiceByName(service).FindMethodByName(method)
    request = message_factory.GetMessageClass(described.input_type)
    response = message_factory.GetMessageClass(described.output_type)
    call = channel.unary_unary(
        f"/{service}/{method}", request_serializer=request.SerializeToString, response_deserializer=response.FromString
    )
    answer: dict[str, Any] = MessageToDict(call(request(), timeout=300), preserving_proto_field_name=True)
    return answer


async def test_a_limit_is_steered_and_seen(keelman: Keelman, tmp_path: Path) -> None:
    path, count = tmp_path / "given.txt", 20_000
    path.write_bytes(numbered(0, count))
    await keelman.ok("create", "wc", "steered", "--start", "--wait")
    words = [f"connector.class={FILE}SourceConnector", f"file={path}", "topic=steered"]
    words += [f"key.converter={STRING}", f"value.converter={STRING}", "keelman.limit.records.per.second=100"]
    await keelman.ok(
        "create", "cn", "in", "--cluster", "steered", *(w for word in words for w in ("--set", word)), "--wait"
    )
    watching = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "keelman.cli", "watch", "--cluster", "steered", "--home", str(keelman.home)),
        env=keelman.environment,
        stdout=asyncio.subprocess.PIPE,
    )
    assert watching.stdout is not None
    seen: list[dict[str, Any]] = []

    async def until(records: int) -> dict[str, Any]:
        while not seen or int(seen[-1]["progress"]["records"]) < records:
            assert watching.stdout is not None
            seen.append(json.loads(await watching.stdout.readline()))
        return seen[-1]["progress"]

    try:
        async with asyncio.timeout(300):
            limited = await until(1)
            assert int(limited["records"]) < count
            assert int(limited["lag"]) > 0
            assert limited["lag_unit"] == "LAG_UNIT_BYTES"
            wrong = await keelman.run("configure", "cn", "steered/in", "--set", "keelman.limit.records.per.second=-1")
            assert (wrong.code, "keelman.limit.records.per.second" in wrong.err) == (2, True)
            await keelman.ok("configure", "cn", "steered/in", "--unset", "keelman.limit.records.per.second")
            await until(count)
    finally:
        watching.kill()
        await watching.wait()
    assert len({run["uid"] for run in seen}) == 1, "the task was not started anew"
    await keelman.ok("delete", "cn", "steered/in", "--yes")
    await keelman.ok("stop", "wc", "steered", "--wait")

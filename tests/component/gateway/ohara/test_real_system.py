"""An Ohara user's procedure on a system of real processes.

Nodes before their agents, a zookeeper, brokers, workers on them, logs and containers, and back.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from keelman.runtime.home import Home
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.processes.process_trees import is_marked, kill_all
from support.eventually import eventually
from support.gateway.ohara.clients import ILLEGAL_ARGUMENT, JsClient, Json, client_of, key
from support.gateway.system import Process
from support.state.service import free_range

pytestmark = pytest.mark.component
SECONDS = 300.0
HOSTS = {"n1": "127.0.0.1", "n2": "127.0.0.2"}


class Agents:
    """Agents of nodes, started one by one."""

    def __init__(self, folder: Path, state: str) -> None:
        self._folder, self._state = folder, state
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, node: str) -> None:
        """Starts the agent of a node, unless it runs."""
        if node in self._running:
            return
        home, (port,) = self._folder / node, free_ports(1)
        home.mkdir()
        words = ["--node", node, "--home", str(home), "--host", HOSTS[node], "--port", str(port)]
        command = [sys.executable, "-m", "keelman.agent", "run", *words, "--state-address", self._state]
        with (home / "agent.log").open("ab") as log:
            self._running[node] = subprocess.Popen(command, stdout=log, stderr=log)

    def home(self, node: str) -> Home:
        """The home of a node."""
        return Home(self._folder / node)

    def logs(self, node: str, kind: str) -> list[Path]:
        """The files of the logs of a node's processes of a kind."""
        return [path / "log" for path in Home(self._folder / node).workloads.glob(f"{kind}*")]

    def processes(self, node: str, word: str) -> list[psutil.Process]:
        """The node's processes with this word on their command lines."""
        home = str(self._folder / node)
        results = [process for process in psutil.process_iter(["cmdline"]) if word in (process.info["cmdline"] or ())]
        return [process for process in results if any(home in part for part in process.info["cmdline"])]

    def end(self) -> None:
        for agent in self._running.values():
            agent.kill()
            agent.wait(60)
        folders = [path for node in HOSTS for path in Home(self._folder / node).workloads.glob("*")]
        kill_all([p for p in psutil.pids() if any(is_marked(p, folder) for folder in folders)])


@contextmanager
def services(folder: Path) -> Iterator[tuple[Process, Process]]:
    """A state service and a gateway that are not started yet, and end with the block."""
    state_port, grpc_port, http_port = free_ports(3)
    ranges = {f"{kind}-ports": free_range(8) for kind in ("worker", "broker", "spark")}
    state = Process("state", {"home": str(folder), "port": str(state_port), **ranges}, folder / "state.log")
    ports = {"port": str(grpc_port), "http-port": str(http_port), "state-address": state.address}
    gateway = Process("gateway", ports, folder / "gateway.log")
    try:
        yield state, gateway
    finally:
        for service in (gateway, state):
            if service.process is not None:
                service.stop()


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[JsClient, Agents]]:
    folder = tmp_path_factory.mktemp("system")
    with services(folder) as (state, gateway):
        agents = Agents(folder, state.address)
        try:
            for service in (state, gateway):
                await service.start()
            async with client_of(f"http://127.0.0.1:{gateway.flags['http-port']}") as client:
                wire = JsClient(client)
                await wire.documented()
                yield wire, agents
        finally:
            agents.end()


async def test_from_a_node_without_an_agent_to_workers_and_back(world: tuple[JsClient, Agents]) -> None:
    wire, agents = world
    for node in HOSTS:
        assert (await wire.create("nodes", hostname=node, user="u", password="p"))["state"] == "UNAVAILABLE"
    await wire.create("zookeepers", name="ws", nodeNames=["n1"])
    await wire.create("brokers", name="ws", nodeNames=["n1"], zookeeperClusterKey="ws")
    refused = await wire.refused("PUT", "/zookeepers/ws/start")
    assert refused.message == "n1 does not have image:oharastream/zookeeper:0.11.1. It has images:N/A"
    for node in HOSTS:
        agents.start(node)

    async def there() -> bool:
        return len(await wire.list("nodes", state="AVAILABLE")) == len(HOSTS)

    await eventually(there, seconds=SECONDS)
    for kind in ("zookeepers", "brokers"):
        await wire.act(kind, "ws", "start")
    broker = await wire.reaches("brokers", "ws", "RUNNING", seconds=SECONDS)
    assert (broker["aliveNodes"], broker.get("error")) == (["n1"], None)
    node = await wire.get("nodes", "n1")
    assert (node["state"], [resource["value"] > 0 for resource in node["resources"]]) == ("AVAILABLE", [True, True])

    await wire.create("workers", name="ws", nodeNames=["n2"], brokerClusterKey="ws")
    await wire.act("workers", "ws", "start")
    await wire.reaches("workers", "ws", "RUNNING", seconds=SECONDS)
    refused = await wire.refused("PUT", "/brokers/ws/stop")
    assert (refused.code, refused.message) == (
        ILLEGAL_ARGUMENT,
        f"you can't remove broker cluster:{key('ws')} since it is used by worker cluster:{key('ws')}",
    )

    async def group_of_three() -> list[Json]:
        groups: list[Json] = await wire.ok("GET", "/containers/ws")
        assert [(group["clusterType"], len(group["containers"])) for group in groups] == [
            ("worker", 1), ("broker", 1), ("zookeeper", 1),
        ]  # fmt: skip
        return groups

    worker, own_broker, _ = await group_of_three()
    assert worker["containers"][0]["nodeName"] == "n2"
    assert own_broker["containers"][0]["portMappings"][0]["hostPort"] == broker["clientPort"]
    for kind, node_name in (("workers", "n2"), ("brokers", "n1")):
        (log,) = (await wire.ok("GET", f"/logs/{kind}/ws"))["logs"]
        written = [log.read_text() for log in agents.logs(node_name, kind.removesuffix("s"))]
        assert (log["hostname"], written[0].startswith(log["value"]), len(written)) == (node_name, True, 1)
        assert log["value"].strip()
        (none,) = (await wire.ok("GET", f"/logs/{kind}/ws", sinceSeconds="999999999"))["logs"]
        assert none["value"].startswith(log["value"])

    await wire.without("workers", "ws")
    for kind in ("brokers", "zookeepers"):
        await wire.without(kind, "ws")
    for kind in ("workers", "brokers", "zookeepers"):
        assert await wire.list(kind) == []
    for node in HOSTS:
        await wire.delete("nodes", node)
    assert await wire.list("nodes") == []


async def metrics_of(wire: JsClient, name: str) -> str:
    """The metrics that the only broker of a cluster serves at its jmxPort."""
    actual_wire = await wire.get("brokers", name)
    async with httpx.AsyncClient(timeout=300, trust_env=False) as client:
        answer = await client.get(f"http://{HOSTS[actual_wire['nodeNames'][0]]}:{actual_wire['jmxPort']}/metrics")
    assert answer.status_code == 200
    return answer.text


@pytest.mark.slow
async def test_brokers_come_and_go_one_by_one(world: tuple[JsClient, Agents]) -> None:
    wire, agents = world
    for node in HOSTS:
        agents.start(node)
        await wire.ok("PUT", f"/nodes/{node}", {"user": "u", "password": "p"})

    async def there() -> bool:
        return len(await wire.list("nodes", state="AVAILABLE")) == len(HOSTS)

    await eventually(there, seconds=SECONDS)
    await wire.create("zookeepers", name="bk", nodeNames=["n1"])
    await wire.act("zookeepers", "bk", "start")
    await wire.create("volumes", name="disk", nodeNames=["n1"], path="/mnt/disk")
    await wire.act("volumes", "disk", "start")
    heap = {"xmx": 300, "routes": {"kafka.example": "127.0.0.9"}, "log.dirs": ["disk"]}
    await wire.create("brokers", name="bk", nodeNames=["n1"], zookeeperClusterKey="bk", **heap)
    await wire.act("brokers", "bk", "start")
    await wire.reaches("brokers", "bk", "RUNNING", seconds=SECONDS)
    (java,) = agents.processes("n1", "-Xmx300m")
    (data,) = agents.home("n1").broker_data.glob("mnt/disk/*")
    assert (data / "meta.properties").is_file()
    refused = await wire.refused("PUT", "/volumes/disk/stop")
    assert (refused.code, "is used by broker" in refused.message) == (ILLEGAL_ARGUMENT, True)
    await wire.create("topics", name="kept", brokerClusterKey="bk")
    await wire.act("topics", "kept", "start")
    await wire.reaches("topics", "kept", "RUNNING", seconds=SECONDS)
    assert list(data.glob("default-kept-*"))
    await wire.act("topics", "kept", "stop")
    await wire.reaches("topics", "kept", None, seconds=SECONDS)
    await wire.delete("topics", "kept")
    hosts = Path(f"/proc/{java.pid}/root/etc/hosts").read_text()
    assert {"127.0.0.9", "kafka.example"} <= set(hosts.split())
    assert "kafka_server_kafkaserver_value" in await metrics_of(wire, "bk")
    await wire.act("brokers", "bk", "n2")

    async def both() -> bool:
        return (await wire.get("brokers", "bk"))["aliveNodes"] == ["n1", "n2"]

    await eventually(both, seconds=SECONDS)
    refused = await wire.refused("DELETE", "/brokers/bk/n1")
    assert (refused.code, "controllers cannot be removed" in refused.message) == (ILLEGAL_ARGUMENT, True)
    assert (await wire.send("DELETE", "/brokers/bk/n2")).status_code == 204

    await wire.act("brokers", "bk", "stop")
    stopped = await wire.reaches("brokers", "bk", None, seconds=SECONDS)
    assert stopped["nodeNames"] == ["n1"]
    changes = {"num.partitions": 3, "num.io.threads": 2, "socket.request.max.bytes": 1 << 20}
    assert changes.items() <= (await wire.ok("PUT", "/brokers/bk", changes)).items()
    await wire.act("brokers", "bk", "start")
    await wire.reaches("brokers", "bk", "RUNNING", seconds=SECONDS)
    admin = AdminClient({"bootstrap.servers": f"{HOSTS['n1']}:{stopped['clientPort']}"})
    resource = ConfigResource(ConfigResource.Type.BROKER, "0")
    described = await asyncio.to_thread(admin.describe_configs([resource])[resource].result, 60)
    assert {name: described[name].value for name in changes} == {name: str(value) for name, value in changes.items()}
    at, before = await metrics_of(wire, "bk"), agents.processes("n1", "kafka.Kafka")
    assert "kafka_server_brokertopicmetrics_count" in at
    await wire.act("brokers", "bk", "stop", force="true")
    await wire.reaches("brokers", "bk", None, seconds=SECONDS)
    await eventually(
        lambda: not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in before)
    )
    assert '"broker_ended"' not in agents.logs("n1", "broker")[0].read_text().partition('"broker_ready"')[2]
    await wire.act("brokers", "bk", "start")
    await wire.reaches("brokers", "bk", "RUNNING", seconds=SECONDS)
    await wire.without("brokers", "bk")
    await eventually(lambda: not data.exists(), seconds=SECONDS, what="the data goes with its broker")

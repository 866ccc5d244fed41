"""An Ohara client's whole day on a real system.

Nodes before their agents, a Java plugin, brokers, workers that grow and shrink while connectors copy, and a gateway
that is killed in between, which loses nothing since it stores nothing.
"""

from __future__ import annotations

import asyncio
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.cli.system import FILE, Keelman
from support.copying.growing import STEP, Growing
from support.eventually import eventually
from support.gateway.ohara.system import ADDRESSES, OharaSystem, ohara_system
from support.java.kit import compiled, missing

pytestmark = pytest.mark.e2e
SCRIPTED = "acme.ScriptedSource"
RECORDS = 50


async def java_plugin(folder: Path) -> bytes:
    """A jar with Java connectors."""
    classes = await compiled(folder)
    jar = folder / "acme.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for file in sorted(classes.rglob("*.class")):
            archive.write(file, file.relative_to(classes))
    return jar.read_bytes()


async def has_nodes(system: OharaSystem) -> None:
    """Creates nodes, which are available once their agents come."""
    for node, address in ADDRESSES.items():
        fields = await system.js.create("nodes", hostname=node, user="me", password="secret")
        assert fields["state"] == "UNAVAILABLE"
        system.start_agent(node, address)

    async def available() -> bool:
        return [n["hostname"] for n in await system.js.list("nodes", state="AVAILABLE")] == [*ADDRESSES, system.own]

    await eventually(available, what="the agents have come")


async def has_file(system: OharaSystem, name: str, data: bytes) -> dict[str, Any]:
    """Uploads a file; returns its description."""
    answer = await system.js.client.post("/v0/files", files={"file": (name, data)}, data={"tags": '{"by": "e2e"}'})
    assert answer.status_code == 200, answer.text
    actual_has_file: dict[str, Any] = answer.json()
    assert (await system.js.client.get(actual_has_file["url"])).content == data
    return actual_has_file


async def has_brokers(system: OharaSystem) -> None:
    await system.js.create("zookeepers", name="zk", nodeNames=["node01"])
    await system.js.act("zookeepers", "zk", "start")
    await system.js.create("brokers", name="bk", nodeNames=["node01"], zookeeperClusterKey="zk")
    await system.js.act("brokers", "bk", "start")
    await system.js.reaches("brokers", "bk", "RUNNING", seconds=300)


async def has_workers(system: OharaSystem, *nodes: str) -> None:
    """Waits until the worker cluster lives on these nodes and no others."""

    async def there() -> bool:
        answer = await system.js.get("workers", "wk")
        assert answer.get("state") == "RUNNING", answer
        return sorted(answer["aliveNodes"]) == list(nodes)

    await eventually(there, what=f"workers on {nodes}")


async def runs(system: OharaSystem, name: str, *topics: str, **settings: Any) -> None:
    """Creates a connector, validates it and starts it."""
    expected = {"name": name, "workerClusterKey": "wk", "topicKeys": list(topics), "tasks.max": 1, **settings}
    judged = await system.js.ok("PUT", "/validate/connectors", expected)
    assert judged["errorCount"] == 0, [s for s in judged["settings"] if s["value"]["errors"]]
    await system.js.create("connectors", **expected)
    await system.js.act("connectors", name, "start")
    await system.js.reaches("connectors", name, "RUNNING", seconds=300)


async def is_back(system: OharaSystem) -> None:
    """Waits until the gateway answers."""

    async def answers() -> bool:
        try:
            return (await system.js.client.get("/healthz")).status_code == 200
        except httpx.TransportError:
            return False

    await eventually(answers, what="the gateway is back")


async def all_is_shown(system: OharaSystem) -> dict[str, Any]:
    """Every object as the API returns it, without fields that change by themselves.

    Tasks move to the new node meanwhile, and the workers' descriptions of their classes are only cached.
    """
    kinds = ("nodes", "files", "zookeepers", "brokers", "workers", "topics", "connectors")
    moving = {
        "lastModified",
        "partitionInfos",
        "nodeMetrics",
        "resources",
        "error",
        "state",
        "tasksStatus",
        "classInfos",
    }
    moving |= {"aliveNodes", "services"}
    return {
        kind: [{k: v for k, v in entry.items() if k not in moving} for entry in await system.js.list(kind)]
        for kind in kinds
    }


@pytest.mark.skipif(bool(missing()), reason=missing())
async def test_an_ohara_client_notices_no_difference(own: Keelman, tmp_path: Path) -> None:
    growing, over = Growing(tmp_path / "input.txt", tmp_path / "output.txt"), asyncio.Event()
    (tmp_path / "java").mkdir()
    async with ohara_system(own, {}) as system:
        js = system.js
        await has_nodes(system)
        jar = await has_file(system, "acme.jar", await java_plugin(tmp_path / "java"))
        assert SCRIPTED in [c["className"] for c in jar["classInfos"]]
        await has_brokers(system)

        own_settings = {"nodeNames": ["node01"], "brokerClusterKey": "bk", "pluginKeys": ["acme.jar"]}
        fields = await js.create("workers", name="wk", **own_settings)
        await js.act("workers", "wk", "start")
        await has_workers(system, "node01")
        inspected = await js.ok("GET", "/inspect/workers/wk")
        assert SCRIPTED in [c["className"] for c in inspected["classInfos"]]

        for topic in ("lines", "numbers"):
            await js.create("topics", name=topic, brokerClusterKey="bk")
            await js.act("topics", topic, "start")
            await js.reaches("topics", topic, "RUNNING")
        log = str(tmp_path / "scripted.log")
        await runs(system, "java", "numbers", **{"connector.class": SCRIPTED, "log": log, "records": RECORDS})
        await runs(
            system, "source", "lines", **{"connector.class": f"{FILE}SourceConnector", "file": str(growing.file)}
        )
        await runs(system, "sink", "lines", **{"connector.class": f"{FILE}SinkConnector", "file": str(growing.output)})

        async def feed() -> None:
            while not over.is_set():
                await growing.grow(growing.written + STEP)

        async with asyncio.TaskGroup() as group:
            group.create_task(feed())
            try:
                await js.act("workers", "wk", "node02")
                await has_workers(system, "node01", "node02")
                before = await all_is_shown(system)
                system.kill("gateway")
                await is_back(system)
                assert await all_is_shown(system) == before, "the gateway had nothing to lose"
                await has_workers(system, "node01", "node02")
                await js.delete("workers", "wk/node01")
                await has_workers(system, "node02")
            finally:
                over.set()
        await eventually(lambda: growing.copied() >= growing.written, what="all is copied")
        assert growing.output.read_bytes() == growing.file.read_bytes(), "nothing lost, nothing doubled"

        async def numbers() -> bool:
            (partition,) = (await js.get("topics", "numbers"))["partitionInfos"]
            return bool(partition["endOffset"] >= RECORDS)

        await eventually(numbers, what="the Java connector has copied")
        newest = await js.ok("POST", "/inspect/topics/numbers", limit="3")
        assert len(newest["messages"]) == 3
        (logs,) = (await js.ok("GET", "/logs/workers/wk", sinceSeconds="600"))["logs"]
        assert logs["hostname"] == "node02"

        used = await js.refused("PUT", "/workers/wk/stop")
        assert "since it is used by connector:" in used.message
        for name in ("java", "source", "sink"):
            await js.act("connectors", name, "stop")
            await js.reaches("connectors", name, None, seconds=300)
            await js.delete("connectors", name)
        for topic in ("lines", "numbers"):
            await js.act("topics", topic, "stop")
            await js.reaches("topics", topic, None, seconds=300)
            await js.delete("topics", topic)
        await js.act("workers", "wk", "stop")
        stopped = await js.reaches("workers", "wk", None, seconds=300)
        changing = {"lastModified", "nodeNames"}
        assert {k: v for k, v in stopped.items() if k not in changing} == {
            k: v for k, v in fields.items() if k not in changing
        }
        for kind, name in (("workers", "wk"), ("brokers", "bk"), ("zookeepers", "zk")):
            await js.without(kind, name)
        await js.delete("files", "acme.jar")
        for node in ADDRESSES:
            await js.delete("nodes", node)
        left = await all_is_shown(system)
        assert [len(left[kind]) for kind in ("files", "workers", "topics", "connectors")] == [0] * 4
        assert [b["name"] for b in left["brokers"]] == ["default"], "that of `keelman up`"

"""`/v0/workers` over a real state service, with obedient agents: settings, states and refusals."""

from __future__ import annotations

import contextlib
import itertools
import re
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from keelman.api.connect.v1 import worker_cluster_pb2
from keelman.api.connect.v1 import worker_cluster_service_pb2 as workers_pb
from keelman.api.node.v1 import workload_pb2
from keelman.gateway.ohara.routes import OharaApi
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.workers.resource import Workers
from support.eventually import eventually
from support.state.service import Agent, Clients, free_range, state_in_loop

pytestmark = pytest.mark.component
LEAST = {"nodeNames": ["node00"], "brokerClusterKey": "bk"}
NUMBERS = itertools.count()
NODES = {"node00": "127.0.0.1", "node01": "127.0.0.2", "node02": "127.0.0.3"}
HEX = re.compile(r"[0-9a-f]{25}")


class World:
    """State, its agents, and the API as a client sees it."""

    def __init__(self, clients: Clients, agents: dict[str, Agent], web: httpx.AsyncClient) -> None:
        self.clients, self.agents, self.web = clients, agents, web

    async def ok(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        answer = await self.web.request(method, path, json=body, params=query or None)
        assert answer.status_code in (200, 202, 204), answer.text
        return answer.json() if answer.status_code == 200 else None

    async def refused(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, str, str]:
        answer = await self.web.request(method, path, json=body, params=query or None)
        assert answer.status_code >= 400, answer.text
        return answer.status_code, answer.json()["code"].rpartition(".")[2], answer.json()["message"]

    async def create(self, name: str, **settings: Any) -> Any:
        return await self.ok("POST", "/workers", {**LEAST, "name": name, **settings})

    async def reaches(self, name: str, state: str | None, **query: str) -> Any:
        async def look() -> Any:
            document = await self.ok("GET", f"/workers/{name}", **query)
            assert document.get("state") == state, document
            return document

        return await eventually(look, what=f"{name} is {state}")

    async def native(self, name: str) -> worker_cluster_pb2.WorkerCluster:
        """The native worker cluster of this name in the group default."""
        answer = await self.clients.clusters.ListWorkerClusters(workers_pb.ListWorkerClustersRequest(page_size=1000))
        return next(c for c in answer.worker_clusters if c.spec.origin.key == name)

    def workers(self, name: str) -> dict[str, workload_pb2.Workload]:
        """The workloads that the agents run of a cluster of ours, by node."""
        return {
            node: w
            for node, agent in self.agents.items()
            for w in agent.workloads.values()
            if w.spec.worker.worker_cluster == name
        }


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    home = tmp_path_factory.mktemp("workers")
    async with contextlib.AsyncExitStack() as stack:
        clients, _ = await stack.enter_async_context(state_in_loop(home, worker_ports=free_range(30)))
        agents = {n: await stack.enter_async_context(Agent(clients, n, host=h)) for n, h in NODES.items()}
        for name in ("bk", "other"):
            await clients.create_managed(name, *NODES)
        app = OharaApi({"workers": Workers(OharaControl(clients.channel))}, max_body_bytes=1 << 20)
        web = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway/v0")
        started_world = World(clients, agents, await stack.enter_async_context(web))
        yield started_world


@pytest.fixture
def group() -> str:
    """A group that no other test has."""
    return f"w{next(NUMBERS)}"


async def test_a_worker_gets_every_default_and_keeps_it(world: World, group: str) -> None:
    before = int(time.time() * 1000)
    fields = await world.create("wk", group=group)
    assert before - 1 <= fields["lastModified"] <= time.time() * 1000 + 1
    assert await world.ok("GET", "/workers/wk", group=group) == fields
    assert await world.ok("GET", "/workers", group=group) == [fields]
    random = {"group.id", *(f"{kind}.storage.topic" for kind in ("config", "offset", "status"))}
    assert all(HEX.fullmatch(fields[key]) for key in random)
    ports = {"clientPort", "jmxPort"}
    assert {k: v for k, v in fields.items() if k not in random | ports | {"lastModified"}} == {
        "brokerClusterKey": {"group": "default", "name": "bk"}, "name": "wk", "group": group,
        "nodeNames": ["node00"], "aliveNodes": [], "imageName": "oharastream/connect-worker:0.11.1",
        "routes": {}, "tags": {}, "xms": 2048, "xmx": 2048, "freePorts": [], "pluginKeys": [], "sharedJarKeys": [],
        "config.storage.partitions": 1, "config.storage.replication.factor": 1,
        "offset.storage.partitions": 1, "offset.storage.replication.factor": 1,
        "status.storage.partitions": 1, "status.storage.replication.factor": 1,
    }  # fmt: skip
    assert all(1024 < fields[port] <= 65535 for port in ports)


async def test_tags_come_back_as_they_were_sent_whatever_their_keys(world: World, group: str) -> None:
    tags = {"token": "a", "password": "[hidden]", "my": {"secret": [1, "x"]}, "db.url": "jdbc:x://u:p@h/d"}
    fields = await world.create("wk", group=group, tags=tags)
    assert (fields["tags"], (await world.ok("GET", "/workers/wk", group=group))["tags"]) == (tags, tags)
    document = await world.ok("GET", "/workers", tags='{"token":"a"}')
    assert [entry["group"] for entry in document] == [group]
    tags = {"token": "b", "api.key": "[hidden]"}
    assert (await world.ok("PUT", "/workers/wk", {"tags": tags}, group=group))["tags"] == tags
    await world.ok("DELETE", "/workers/wk", group=group)


async def test_what_is_starting_is_stopped_when_a_node_has_begun_or_by_force(
    world: World, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.create("wk", group=group, nodeNames=["node02"])
    agent = world.agents["node02"]
    for query in ({"force": "true"}, {}):
        with monkeypatch.context() as silent:
            silent.setattr(agent, "report", lambda *_, **__: None)
            await world.ok("PUT", "/workers/wk/start", group=group)
            await world.ok("PUT", "/workers/wk/start", group=group)
            assert await world.refused("PUT", "/workers/wk/stop", group=group) == (
                500, "IllegalStateException", f'KeyKind({{"group":"{group}","name":"wk"}},worker) is starting',
            )  # fmt: skip
            if query:
                await world.ok("PUT", "/workers/wk/stop", group=group, **query)
        agent.report()
        if not query:
            await world.reaches("wk", "RUNNING", group=group)
            await world.ok("PUT", "/workers/wk/stop", group=group)
        await world.reaches("wk", None, group=group)
    await world.ok("DELETE", "/workers/wk", group=group)


async def test_what_is_on_its_way_is_neither_deleted_nor_turned_round(
    world: World, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.create("wk", group=group, nodeNames=["node02"])
    key, agent = f'{{"group":"{group}","name":"wk"}}', world.agents["node02"]
    with monkeypatch.context() as silent:
        silent.setattr(agent, "report", lambda *_, **__: None)
        await world.ok("PUT", "/workers/wk/start", group=group)
        await world.reaches("wk", "PENDING", group=group)
        assert await world.refused("DELETE", "/workers/wk", group=group) == (
            400, "IllegalArgumentException", f"You cannot delete a non-stopped WorkerClusterInfo :{key}",
        )  # fmt: skip
    agent.report()
    await world.reaches("wk", "RUNNING", group=group)
    with monkeypatch.context() as silent:
        silent.setattr(agent, "report", lambda *_, **__: None)
        for _ in range(2):
            await world.ok("PUT", "/workers/wk/stop", group=group)
        assert await world.refused("PUT", "/workers/wk/start", group=group) == (
            500, "IllegalStateException", f"KeyKind({key},worker) is stopping",
        )  # fmt: skip
    agent.report()
    await world.reaches("wk", None, group=group)
    await world.ok("DELETE", "/workers/wk", group=group)


async def test_a_worker_cluster_runs_grows_shrinks_stops_and_goes(world: World, group: str) -> None:
    await world.create("wk", group=group, clientPort=21001, jmxPort=21002, xmx=512, freePorts=[21003])
    await world.ok("PUT", "/workers/wk/start", group=group)
    answer = await world.reaches("wk", "RUNNING", group=group)
    assert answer["aliveNodes"] == ["node00"]
    assert "error" not in answer
    await world.ok("PUT", "/workers/wk/start", group=group)  # once more does nothing
    await world.ok("PUT", "/workers/wk/node01", group=group)
    await world.ok("PUT", "/workers/wk/node01", group=group)

    async def on(*nodes: str) -> Any:
        answer = await world.ok("GET", "/workers/wk", group=group)
        return sorted(answer["aliveNodes"]) == sorted(answer["nodeNames"]) == list(nodes)

    await eventually(lambda: on("node00", "node01"), what="both run")
    assert await world.refused("PUT", "/workers/wk", {"xmx": 1}, group=group) == (
        500, "DataCheckException", f'type:worker  {{"group":"{group}","name":"wk"}} MUST be stopped',
    )  # fmt: skip
    assert (await world.refused("DELETE", "/workers/wk", group=group))[:2] == (500, "DataCheckException")
    await world.ok("DELETE", "/workers/wk/node00", group=group)
    await eventually(lambda: on("node01"), what="one runs")
    assert await world.refused("DELETE", "/workers/wk/node01", group=group) == (
        500, "IllegalStateException", "there is only one instance. Please call remove to delete whole cluster",
    )  # fmt: skip
    await world.ok("DELETE", "/workers/wk/node00", group=group)  # no more in it
    await world.ok("DELETE", "/workers/nobody/node00", group=group)
    await world.ok("PUT", "/workers/wk/stop", group=group)
    answer = await world.reaches("wk", None, group=group)
    assert (answer["aliveNodes"], answer["nodeNames"]) == ([], ["node01"])
    await world.ok("PUT", "/workers/wk/stop", group=group)
    for _ in range(2):
        await world.ok("DELETE", "/workers/wk", group=group)
    assert await world.ok("GET", "/workers", group=group) == []
    again = await world.create("wk", group=group, clientPort=21001, jmxPort=21002)
    assert (again["clientPort"], again["xmx"]) == (21001, 2048)

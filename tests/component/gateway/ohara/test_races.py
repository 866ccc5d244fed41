"""Concurrent requests of clients: of those for one resource one succeeds, the others get the owner's name."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from support.gateway.ohara.clients import ILLEGAL_ARGUMENT, ILLEGAL_STATE, JsClient, brokers, key

pytestmark = pytest.mark.component
MANY = 8


async def outcomes(*calls: Any) -> Counter[tuple[int, str]]:
    """Status and code of each of these concurrent calls."""
    answers = await asyncio.gather(*calls)
    codes = [answer.json()["code"] if answer.status_code >= 400 else "" for answer in answers]
    return Counter(zip((answer.status_code for answer in answers), codes, strict=True))


async def test_a_key_is_given_once(wire: JsClient, group: str) -> None:
    zookeeper = {"group": group, "name": "zk"}
    creations = {
        "zookeepers": {**zookeeper, "nodeNames": ["node00"]},
        "brokers": {"group": group, "name": "bk", "nodeNames": ["node00"], "zookeeperClusterKey": zookeeper},
        "nodes": {"hostname": f"{group}.example", "user": "u", "password": "p"},
    }
    for kind, body in creations.items():
        actual_outcomes = await outcomes(*(wire.send("POST", f"/{kind}", body) for _ in range(MANY)))
        assert actual_outcomes == {(200, ""): 1, (500, ILLEGAL_STATE): MANY - 1}, kind
    await wire.delete("nodes", f"{group}.example")


async def test_an_upsert_is_never_refused_for_being_late(wire: JsClient, group: str) -> None:
    body = {"nodeNames": ["node00"]}
    actual_outcomes = await outcomes(
        *(wire.send("PUT", "/zookeepers/zk", {**body, "tags": {"n": n}}, group=group) for n in range(MANY))
    )
    assert actual_outcomes == {(200, ""): MANY}
    body["zookeeperClusterKey"] = {"group": group, "name": "zk"}
    actual_outcomes = await outcomes(
        *(wire.send("PUT", "/brokers/bk", {**body, "tags": {"n": n}}, group=group) for n in range(MANY))
    )
    assert actual_outcomes == {(200, ""): MANY}


async def test_a_port_is_given_once(wire: JsClient, group: str) -> None:
    await wire.create("zookeepers", group=group, name="zk", nodeNames=["node00"])
    body = {"group": group, "nodeNames": ["node00"], "zookeeperClusterKey": {"group": group, "name": "zk"}}
    answers = await asyncio.gather(
        *(wire.send("POST", "/brokers", {**body, "name": f"b{n}", "clientPort": 19876}) for n in range(MANY))
    )
    names = [answer.json()["name"] for answer in answers if answer.status_code == 200]
    refused = [answer.json() for answer in answers if answer.status_code != 200]
    assert (len(names), {entry["code"] for entry in refused}) == (1, {ILLEGAL_ARGUMENT})
    assert {entry["message"].split(" (")[0] for entry in refused} == {
        f"ports:19876 are used by broker cluster:{key(names[0], group)}"
    }


async def test_starts_and_stops_may_come_together(wire: JsClient, group: str) -> None:
    await wire.create("zookeepers", group=group, name="zk", nodeNames=["node00"])
    for verb in ("start", "stop"):
        actual_outcomes = await outcomes(
            *(wire.send("PUT", f"/zookeepers/zk/{verb}", group=group) for _ in range(MANY))
        )
        assert actual_outcomes == {(202, ""): MANY}


async def test_nodes_that_are_added_together_are_all_there(wire: JsClient, group: str) -> None:
    zookeeper = {"group": group, "name": "zk"}
    await wire.create("zookeepers", **zookeeper, nodeNames=["node00"])
    await wire.create("brokers", group=group, name="bk", nodeNames=["node00"], zookeeperClusterKey=zookeeper)
    actual_outcomes = await outcomes(
        *(wire.send("PUT", f"/brokers/bk/{node}", group=group) for node in ("node01", "node02") for _ in range(3))
    )
    assert actual_outcomes == {(202, ""): 6}
    assert sorted((await wire.get("brokers", "bk", group))["nodeNames"]) == ["node00", "node01", "node02"]
    await wire.delete("brokers", "bk", group)


async def test_of_a_worker_clusters_end_and_a_connectors_beginning_one_comes_first(wire: JsClient, group: str) -> None:
    broker = {"group": group, "name": "bk"}
    await brokers(wire, "bk", group, start=False)
    for number in range(4):
        worker = {"group": group, "name": f"w{number}"}
        await wire.create("workers", **worker, nodeNames=["node00"], brokerClusterKey=broker)
        connector = {"group": group, "name": f"c{number}", "connector.class": "x.Source", "workerClusterKey": worker}
        created, gone = await asyncio.gather(
            wire.send("POST", "/connectors", connector), wire.send("DELETE", f"/workers/w{number}", group=group)
        )
        assert (created.status_code, gone.status_code) in {(200, 400), (500, 204)}, (created.text, gone.text)
        workers = await wire.list("workers", **worker)
        assert len(workers) == len(await wire.list("connectors", **connector)) == (created.status_code == 200)

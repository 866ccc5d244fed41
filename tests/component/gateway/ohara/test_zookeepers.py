"""Zookeepers: the whole API and all states, and no process."""

from __future__ import annotations

import pytest

from support.gateway.ohara.clients import (
    BAD_VALUE,
    DATA_CHECK,
    ILLEGAL_ARGUMENT,
    ILLEGAL_STATE,
    NO_SUCH,
    UNSUPPORTED,
    JsClient,
    OharaWorld,
    key,
)

pytestmark = pytest.mark.component


async def test_a_zookeeper_has_every_default(world: OharaWorld, group: str) -> None:
    fields = await world.scala.create("zookeepers", group=group, nodeNames=["node00"])
    ports = [fields.pop(name) for name in ("clientPort", "jmxPort", "peerPort", "electionPort")]
    assert len(set(ports)) == 4
    assert all(1024 < port <= 65535 for port in ports)
    assert len(fields.pop("name")) == 25
    del fields["lastModified"]
    assert fields == {
        "group": group, "nodeNames": ["node00"], "imageName": "oharastream/zookeeper:0.11.1", "routes": {}, "tags": {},
        "tickTime": 2000, "initLimit": 10, "syncLimit": 5, "zookeeper.connection.timeout.ms": "10000 milliseconds",
        "xms": 2048, "xmx": 2048, "aliveNodes": [],
    }  # fmt: skip


async def test_it_starts_and_stops_at_once(wire: JsClient, group: str) -> None:
    document = await wire.create(
        "zookeepers", group=group, name="zk", nodeNames=["node00", "node01"], tags={"a": 1}, own=[1]
    )
    for _ in range(2):
        await wire.act("zookeepers", "zk", "start", group)
        running = await wire.get("zookeepers", "zk", group)
        assert running == document | {
            "aliveNodes": ["node00", "node01"], "state": "RUNNING", "lastModified": running["lastModified"],
        }  # fmt: skip
    for method, path, body, message in (
        ("PUT", "", {"tickTime": 1}, f"type:zookeeper  {key('zk', group)} MUST be stopped"),
        ("DELETE", "", None, f"type:zookeeper  {key('zk', group)} MUST be stopped"),
    ):
        refused = await wire.refused(method, f"/zookeepers/zk{path}", body, group=group)
        assert (refused.status, refused.code, refused.message) == (500, DATA_CHECK, message)
    for _ in range(2):
        await wire.act("zookeepers", "zk", "stop", group, force="TRUE")
        stopped = await wire.get("zookeepers", "zk", group)
        assert stopped == document | {"lastModified": stopped["lastModified"]}
    changed = await wire.update("zookeepers", "zk", group, tickTime=1, imageName="mine:1")
    assert changed == stopped | {"tickTime": 1, "lastModified": changed["lastModified"]}, "imageName is CREATE_ONLY"
    await wire.delete("zookeepers", "zk", group)
    await wire.delete("zookeepers", "zk", group)
    refused = await wire.refused("GET", "/zookeepers/zk", group=group)
    assert (refused.status, refused.code) == (400, NO_SUCH)


async def test_what_is_refused(wire: JsClient, group: str) -> None:
    document = await wire.create("zookeepers", group=group, name="zk", nodeNames=["node00"])
    refused = await wire.refused("POST", "/zookeepers", {"group": group, "name": "zk", "nodeNames": ["node00"]})
    assert (refused.status, refused.code) == (500, ILLEGAL_STATE)
    assert refused.message.startswith(f"({group}, zk}} already exists on ")
    for body, code, message in (
        ({}, BAD_VALUE, "Set(nodeNames) are required!!!"),
        ({"nodeNames": []}, BAD_VALUE, "empty array is illegal to nodeNames"),
        ({"nodeNames": ["stop"]}, BAD_VALUE, "the stop is protected word"),
        ({"nodeNames": ["n9"]}, DATA_CHECK, f"type:node {key('n9')} does not exist "),
        (
            {"nodeNames": ["node00"], "dataDir": "v9"},
            DATA_CHECK,
            f"type:volume {key('v9')} does not exist ",
        ),
    ):
        refused = await wire.refused("POST", "/zookeepers", {"group": group, **body})
        assert (refused.code, refused.message) == (code, message)
    refused = await wire.refused("PUT", "/zookeepers/zk/node01", group=group)
    assert (refused.status, refused.code) == (500, UNSUPPORTED)
    refused = await wire.refused("PUT", "/zookeepers/zk/pause", group=group)
    assert (refused.status, refused.message) == (400, "the pause is protected word")
    for verb in ("start", "stop", "node01"):
        refused = await wire.refused("PUT", f"/zookeepers/nobody/{verb}", group=group)
        assert (refused.status, refused.code) == (400, NO_SUCH)
    refused = await wire.refused("DELETE", "/zookeepers/zk/node00", group=group)
    assert (refused.status, refused.code) == (500, ILLEGAL_STATE)
    assert (await wire.send("DELETE", "/zookeepers/zk/node01", group=group)).status_code == 204
    assert (await wire.send("DELETE", "/zookeepers/nobody/node01", group=group)).status_code == 204
    assert await wire.get("zookeepers", "zk", group) == document


async def test_ports_of_what_runs_are_kept_from_others(wire: JsClient, group: str) -> None:
    entry = await wire.create("zookeepers", group=group, name="one", nodeNames=["node00"])
    ports = {"peerPort": entry["clientPort"], "jmxPort": entry["electionPort"]}
    await wire.create("zookeepers", group=group, name="two", nodeNames=["node01"], **ports)
    await wire.act("zookeepers", "one", "start", group)
    refused = await wire.refused("PUT", "/zookeepers/two/start", group=group)
    numbers = ",".join(map(str, sorted(ports.values())))
    assert (refused.status, refused.code, refused.message) == (
        400,
        ILLEGAL_ARGUMENT,
        f"ports:{numbers} are used by zookeeper cluster:{key('one', group)} "
        "(the port is generated randomly if it is ignored from request)",
    )
    await wire.act("zookeepers", "one", "stop", group)
    await wire.act("zookeepers", "two", "start", group)
    await wire.without("zookeepers", "two", group)


async def test_an_image_of_another_kind_is_not_run(wire: JsClient, group: str) -> None:
    await wire.create("zookeepers", group=group, name="zk", nodeNames=["node00"], imageName="oharastream/broker:0.11.1")
    refused = await wire.refused("PUT", "/zookeepers/zk/start", group=group)
    assert refused.code == ILLEGAL_ARGUMENT
    assert refused.message.startswith("node00 does not have image:oharastream/broker:0.11.1. It has images:")


async def test_a_volume_has_to_run(wire: JsClient, group: str) -> None:
    volume = {"group": group, "name": "v"}
    await wire.create("volumes", **volume, nodeNames=["node00"], path="/tmp/v")
    fields = await wire.create("zookeepers", group=group, name="zk", nodeNames=["node00"], dataDir=volume)
    assert fields["dataDir"] == volume
    refused = await wire.refused("PUT", "/zookeepers/zk/start", group=group)
    assert (refused.code, refused.message) == (DATA_CHECK, f"type:volume  {key('v', group)} MUST be running")
    await wire.act("volumes", "v", "start", group)
    await wire.act("zookeepers", "zk", "start", group)
    refused = await wire.refused("PUT", "/volumes/v/stop", group=group)
    assert refused.code == ILLEGAL_ARGUMENT
    await wire.without("zookeepers", "zk", group)
    await wire.act("volumes", "v", "stop", group)

"""Nodes: created before their agents or after, listed as they are, kept while a cluster uses them."""

from __future__ import annotations

import pytest

from support.gateway.ohara.clients import (
    BAD_VALUE,
    ILLEGAL_ARGUMENT,
    ILLEGAL_STATE,
    NO_SUCH,
    JsClient,
    OharaWorld,
    ScalaClient,
    key,
)

pytestmark = pytest.mark.component
WHO = {"user": "user", "password": "secret"}
SERVICES = ["zookeeper", "broker", "connect-worker", "stream", "shabondi"]


async def test_a_node_is_created_before_its_agent_comes(world: OharaWorld) -> None:
    fields = await world.scala.create("nodes", hostname="later.example", port=2222, tags={"a": {"b": [1]}}, **WHO)
    assert {k: fields[k] for k in ("hostname", "port", "user", "password", "tags", "state")} == {
        "hostname": "later.example", "port": 2222, **WHO, "tags": {"a": {"b": [1]}}, "state": "UNAVAILABLE",
    }  # fmt: skip
    assert "no agent has come" in fields["error"]
    assert [service["name"] for service in fields["services"]] == SERVICES
    assert fields["resources"] == [
        {"name": "CPU", "value": 0.0, "unit": "cores"},
        {"name": "Memory", "value": 0.0, "unit": "bytes"},
    ]
    assert await world.scala.get("nodes", "later.example") == fields
    await world.js.delete("nodes", "later.example")
    await world.js.delete("nodes", "later.example")
    refused = await world.js.refused("GET", "/nodes/later.example")
    assert (refused.status, refused.code) == (400, NO_SUCH)


async def test_a_node_with_an_agent_has_its_figures(world: OharaWorld, wire: JsClient) -> None:
    node = await ScalaClient(wire.client).get("nodes", "node00")
    assert node["state"] == "AVAILABLE"
    assert "error" not in node
    assert node["resources"][:2] == [
        {"name": "CPU", "value": 2.0, "unit": "cores"},
        {"name": "Memory", "value": 1.0, "unit": "GB"},
    ]
    assert "configurator" in [service["name"] for service in node["services"]], (
        "the gateway listens at this node's address"
    )
    assert [n["hostname"] for n in await wire.list("nodes", state="AVAILABLE")] == ["node00", "node01", "node02"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"user": "a", "password": "b"}, "Set(hostname) are required!!!"),
        ({"hostname": "h", **WHO, "port": 0}, "port: the number must be [1, 65535], actual:0"),
        ({"hostname": "h", **WHO, "port": "22"}, 'the port must be JsNumber type, but actual type is "JsString"'),
        ({"hostname": "h", "user": "", "password": "b"}, 'the value of "user" can\'t be empty string!!!'),
        ({"hostname": "a" * 64, **WHO}, f'the value "{"a" * 64}" is not matched to [a-zA-Z0-9.\\-]{{1,63}}$'),
        ({"hostname": "a_b", **WHO}, 'the value "a_b" is not matched to [a-zA-Z0-9.\\-]{1,63}$'),
    ],
)
async def test_what_a_node_may_be(wire: JsClient, body: dict[str, object], message: str) -> None:
    refused = await wire.refused("POST", "/nodes", body)
    assert (refused.status, refused.code, refused.message) == (400, BAD_VALUE, message)


async def test_a_node_exists_once_whatever_its_case(wire: JsClient) -> None:
    fields = await wire.create("nodes", hostname="Mixed-Case", **WHO)
    assert fields["hostname"] == "Mixed-Case"
    for hostname in ("Mixed-Case", "mixed-case"):
        refused = await wire.refused("POST", "/nodes", {"hostname": hostname, **WHO})
        assert (refused.status, refused.code) == (500, ILLEGAL_STATE)
        assert refused.message.startswith(f"(default, {hostname}}} already exists on ")
    assert (await wire.get("nodes", "mixed-case"))["hostname"] == "Mixed-Case"
    zookeeper = await wire.create("zookeepers", name="mixed", nodeNames=["MIXED-case"])
    refused = await wire.refused("DELETE", "/nodes/Mixed-Case")
    assert (refused.code, refused.message) == (ILLEGAL_ARGUMENT, "node:Mixed-Case is used by zookeeper cluster.")
    await wire.delete("zookeepers", zookeeper["name"])
    await wire.delete("nodes", "Mixed-Case")


async def test_a_put_replaces_what_is_sent_and_keeps_the_rest(wire: JsClient) -> None:
    refused = await wire.refused("PUT", "/nodes/put.example", {"password": "b"})
    assert (refused.status, refused.code, refused.message) == (400, BAD_VALUE, "user field is required")
    refused = await wire.refused("PUT", "/nodes/put.example", {"user": "b"})
    assert refused.message == "password field is required"
    fields = await wire.ok("PUT", "/nodes/put.example", {**WHO, "tags": {"a": "b"}, "own": 9007199254740993})
    assert (fields["port"], fields["own"]) == (22, 9007199254740993)
    changed = await wire.ok("PUT", "/nodes/put.example", {"port": 7, "password": "new"})
    moved = {"port": 7, "password": "new", "lastModified": changed["lastModified"]}
    assert changed == fields | moved
    assert (await wire.update("nodes", "put.example", tags={}))["tags"] == {}
    await wire.delete("nodes", "put.example")


async def test_a_node_of_a_cluster_stays(wire: JsClient, group: str) -> None:
    own = {"group": group, "name": "zk"}
    await wire.create("zookeepers", **own, nodeNames=["node02"])
    assert (await wire.ok("PUT", "/nodes/node02", {"tags": {"x": 1}}))["tags"] == {"x": 1}, "it does not run"
    await wire.act("zookeepers", "zk", "start", group)
    node = await wire.get("nodes", "node02")
    assert own in next(service for service in node["services"] if service["name"] == "zookeeper")["clusterKeys"]
    for method, body in (("PUT", {"tags": {}}), ("DELETE", None)):
        refused = await wire.refused(method, "/nodes/node02", body)
        assert (refused.code, refused.message) == (ILLEGAL_ARGUMENT, "node:node02 is used by zookeeper cluster.")
    await wire.without("zookeepers", "zk", group)


async def test_a_node_that_is_deleted_while_its_agent_is_there_is_shown_no_longer(wire: JsClient, group: str) -> None:
    await wire.delete("nodes", "node02")
    assert "node02" not in [entry["hostname"] for entry in await wire.list("nodes")]
    refused = await wire.refused("POST", "/zookeepers", {"group": group, "nodeNames": ["node02"]})
    assert (refused.status, refused.message) == (500, f"type:node {key('node02')} does not exist ")
    fields = await wire.create("nodes", hostname="node02", **WHO)
    assert fields["state"] == "AVAILABLE"

"""Broker clusters: created stopped, on a zookeeper, started and stopped as their users permit; and other groups'."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from keelman.api.connect.v1 import broker_cluster_service_pb2 as pb
from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers, ManagedBrokers
from keelman.api.connect.v1.broker_cluster_service_pb2_grpc import BrokerClusterServiceStub
from keelman.rpc.channels import channel
from support.eventually import eventually
from support.gateway.ohara.clients import (
    BAD_VALUE,
    DATA_CHECK,
    ILLEGAL_ARGUMENT,
    ILLEGAL_STATE,
    NO_SUCH,
    JsClient,
    OharaWorld,
    brokers,
    key,
    no_brokers,
)

pytestmark = pytest.mark.component


async def test_a_broker_cluster_has_every_default(world: OharaWorld, group: str) -> None:
    zookeeper = await world.js.create("zookeepers", group=group, nodeNames=["node00"])
    named = {"group": group, "name": zookeeper["name"]}
    fields = await world.scala.create(
        "brokers", group=group, nodeNames=["node00"], zookeeperClusterKey=named, own={"a": 1}
    )
    ports = [fields.pop(name) for name in ("clientPort", "jmxPort")]
    assert len({*ports}) == 2
    assert all(1024 < port <= 65535 for port in ports)
    assert len(fields.pop("name")) == 25
    del fields["lastModified"]
    assert fields == {
        "group": group, "nodeNames": ["node00"], "imageName": "oharastream/broker:0.11.1", "routes": {}, "tags": {},
        "zookeeperClusterKey": named, "log.dirs": [], "num.partitions": 1, "offsets.topic.replication.factor": 1,
        "num.network.threads": 1, "num.io.threads": 1, "xms": 2048, "xmx": 2048, "aliveNodes": [], "own": {"a": 1},
    }  # fmt: skip


async def test_it_runs_where_its_zookeeper_runs(wire: JsClient, group: str) -> None:
    own = await brokers(wire, "bk", group, start=False)
    stopped = await wire.get("brokers", "bk", group)
    refused = await wire.refused("PUT", "/brokers/bk/start", group=group)
    assert (refused.status, refused.code) == (500, DATA_CHECK)
    assert refused.message == f"type:zookeeper  {key('bk', group)} MUST be running"
    await wire.act("zookeepers", "bk", "start", group)
    for _ in range(2):
        await wire.act("brokers", "bk", "start", group)
    running = await wire.reaches("brokers", "bk", "RUNNING", group)
    live = {"state": "RUNNING", "aliveNodes": ["node00"], "lastModified": running["lastModified"]}
    assert running == stopped | live
    node = await wire.get("nodes", "node00")
    assert own in next(service for service in node["services"] if service["name"] == "broker")["clusterKeys"]
    for method, path, code, message in (
        ("PUT", "/brokers/bk", DATA_CHECK, f"type:broker  {key('bk', group)} MUST be stopped"),
        ("DELETE", "/brokers/bk", DATA_CHECK, f"type:broker  {key('bk', group)} MUST be stopped"),
        ("DELETE", "/zookeepers/bk", DATA_CHECK, f"type:zookeeper  {key('bk', group)} MUST be stopped"),
        (
            "PUT",
            "/zookeepers/bk/stop",
            ILLEGAL_ARGUMENT,
            f"you can't remove zookeeper cluster:{key('bk', group)} since it is used by broker cluster:"
            f"{key('bk', group)}",
        ),
    ):
        body = {"xms": 1} if path == "/brokers/bk" and method == "PUT" else None
        refused = await wire.refused(method, path, body, group=group)
        assert (refused.code, refused.message) == (code, message)
    await wire.create("brokers", group=group, name="other", nodeNames=["node01"], zookeeperClusterKey=own)
    refused = await wire.refused("PUT", "/brokers/other/start", group=group)
    assert refused.message == f"zk cluster:{key('bk', group)} is already used by broker cluster:bk"
    for _ in range(2):
        await wire.act("brokers", "bk", "stop", group)
    await wire.reaches("brokers", "bk", None, group)
    await wire.act("zookeepers", "bk", "stop", group)
    refused = await wire.refused("DELETE", "/zookeepers/bk", group=group)
    assert (refused.code, refused.message) == (
        ILLEGAL_ARGUMENT,
        f"you can't remove zookeeper cluster:{key('bk', group)} since it is used by broker cluster:"
        f"{key('bk', group)},{key('other', group)}",
    )
    await wire.delete("brokers", "other", group)
    await no_brokers(wire, "bk", group)
    assert await wire.list("brokers", group=group) == []


async def test_one_that_is_deleted_can_be_made_again_at_once(wire: JsClient, group: str) -> None:
    await brokers(wire, "bk", group)
    port = (await wire.get("brokers", "bk", group))["clientPort"]
    await wire.act("brokers", "bk", "stop", group)
    await wire.reaches("brokers", "bk", None, group)
    await wire.delete("brokers", "bk", group)
    refused = await wire.refused("GET", "/brokers/bk", group=group)
    assert (refused.status, refused.code) == (400, NO_SUCH)
    named = {"group": group, "name": "bk"}
    fields = await wire.create("brokers", **named, nodeNames=["node00"], zookeeperClusterKey=named, clientPort=port)
    assert fields["clientPort"] == port
    await wire.act("brokers", "bk", "start", group)
    await wire.reaches("brokers", "bk", "RUNNING", group)
    await no_brokers(wire, "bk", group)


async def test_a_put_changes_what_may_be_changed(wire: JsClient, group: str) -> None:
    await brokers(wire, "bk", group, start=False)
    opened_wire = await wire.get("brokers", "bk", group)
    changed = await wire.update(
        "brokers", "bk", group, **{"num.partitions": 3, "xms": 1, "imageName": "no", "own": "x"}
    )
    expected = {"num.partitions": 3, "xms": 1, "own": "x", "lastModified": changed["lastModified"]}
    assert changed == opened_wire | expected
    assert changed == await wire.get("brokers", "bk", group)
    for body, message in (
        ({"num.partitions": 0}, "num.partitions: the number must be [1, 2147483647], actual:0"),
        ({"queued.max.request.bytes": "1"}, "the queued.max.request.bytes must be JsNumber type, but actual type is "
                                            '"JsString"'),
    ):  # fmt: skip
        refused = await wire.refused("PUT", "/brokers/bk", body, group=group)
        assert (refused.code, refused.message) == (BAD_VALUE, message)
    named = {"zookeeperClusterKey": {"group": group, "name": "bk"}}
    new = await wire.ok("PUT", "/brokers/new", {"nodeNames": ["node01"], **named}, group=group)
    assert (new["group"], new["name"]) == (group, "new")
    refused = await wire.refused("PUT", "/brokers/more", {"nodeNames": ["node01"]}, group=group)
    assert refused.message == "Set(zookeeperClusterKey) are required!!!"


async def test_what_a_creation_names_has_to_be_there(wire: JsClient, group: str) -> None:
    zookeeper = {"zookeeperClusterKey": {"group": group, "name": "zk"}}
    await wire.create("zookeepers", group=group, name="zk", nodeNames=["node00"])
    for body, message in (
        ({"nodeNames": ["n8", "n9"], **zookeeper}, f"type:node {key('n8')} does not exist,{key('n9')} does not exist "),
        ({"nodeNames": ["node00"], "zookeeperClusterKey": "no"}, f"type:zookeeper {key('no')} does not exist "),
        ({"nodeNames": ["node00"], "log.dirs": ["v"], **zookeeper}, f"type:volume {key('v')} does not exist "),
    ):
        refused = await wire.refused("POST", "/brokers", {"group": group, **body})
        assert (refused.status, refused.code, refused.message) == (500, DATA_CHECK, message)
    fields = await wire.create("brokers", group=group, name="bk", nodeNames=["node00"], **zookeeper)
    refused = await wire.refused(
        "POST", "/brokers", {"group": group, "name": "bk", "nodeNames": ["node00"], **zookeeper}
    )
    assert (refused.status, refused.code) == (500, ILLEGAL_STATE)
    body = {"group": group, "nodeNames": ["node00"], "clientPort": fields["clientPort"], **zookeeper}
    refused = await wire.refused("POST", "/brokers", body)
    assert (refused.code, refused.message) == (
        ILLEGAL_ARGUMENT,
        f"ports:{fields['clientPort']} are used by broker cluster:{key('bk', group)} "
        "(the port is generated randomly if it is ignored from request)",
    )


async def test_what_uses_it_keeps_it(wire: JsClient, group: str) -> None:
    own = await brokers(wire, "bk", group)
    uploaded = await wire.client.post("/v0/files", files={"file": ("a.jar", b"x")}, data={"group": group})
    assert uploaded.status_code == 200
    users = {
        "workers": {"nodeNames": ["node01"]},
        "streams": {"nodeNames": ["node01"], "jarKey": {"group": group, "name": "a.jar"}},
        "topics": {},
    }
    words = {"workers": "worker cluster", "streams": "stream cluster", "topics": "topic"}
    used = f"you can't remove broker cluster:{key('bk', group)} since it is used by "
    await wire.create("workers", group=group, name="user", brokerClusterKey=own, nodeNames=["node01"])
    await wire.act("workers", "user", "start", group)
    await wire.reaches("workers", "user", "RUNNING", group)
    refused = await wire.refused("PUT", "/brokers/bk/stop", group=group)
    assert (refused.code, refused.message) == (ILLEGAL_ARGUMENT, f"{used}worker cluster:{key('user', group)}")
    await wire.without("workers", "user", group)
    await wire.act("brokers", "bk", "stop", group)
    await wire.reaches("brokers", "bk", None, group)
    for kind, more in users.items():
        await wire.create(kind, group=group, name="user", brokerClusterKey=own, **more)
        refused = await wire.refused("DELETE", "/brokers/bk", group=group)
        assert (refused.code, refused.message) == (ILLEGAL_ARGUMENT, f"{used}{words[kind]}:{key('user', group)}")
        await wire.delete(kind, "user", group)
    await no_brokers(wire, "bk", group)


async def test_nodes_come_and_go(wire: JsClient, group: str) -> None:
    await brokers(wire, "bk", group, start=False)
    for _ in range(2):
        await wire.act("brokers", "bk", "node01", group)
    assert (await wire.get("brokers", "bk", group))["nodeNames"] == ["node00", "node01"]
    refused = await wire.refused("PUT", "/brokers/bk/n9", group=group)
    assert (refused.status, refused.code) == (400, NO_SUCH)
    refused = await wire.refused("PUT", "/brokers/bk/resume", group=group)
    assert (refused.code, refused.message) == (BAD_VALUE, "the resume is protected word")
    for _ in range(2):
        assert (await wire.send("DELETE", "/brokers/bk/node00", group=group)).status_code == 204
    assert (await wire.get("brokers", "bk", group))["nodeNames"] == ["node01"]
    refused = await wire.refused("DELETE", "/brokers/bk/node01", group=group)
    assert (refused.status, refused.code) == (500, ILLEGAL_STATE)
    await wire.act("zookeepers", "bk", "start", group)
    await wire.act("brokers", "bk", "start", group)
    await wire.reaches("brokers", "bk", "RUNNING", group)
    await wire.act("brokers", "bk", "node02", group)

    async def both() -> bool:
        return (await wire.get("brokers", "bk", group))["aliveNodes"] == ["node01", "node02"]

    await eventually(both)
    await no_brokers(wire, "bk", group)


@pytest.fixture(scope="module")
async def stub(world: OharaWorld) -> AsyncIterator[BrokerClusterServiceStub]:
    """The interface of keelman's own users."""
    async with channel(world.system.gateway.address) as to:
        yield BrokerClusterServiceStub(to)


async def test_brokers_that_others_run_are_shown_with_a_zookeeper(
    world: OharaWorld, wire: JsClient, stub: BrokerClusterServiceStub
) -> None:
    outside = BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers="kafka.example:9093,kafka2.example:9093"))
    await stub.CreateBrokerCluster(pb.CreateBrokerClusterRequest(name="outside", spec=outside))
    await stub.CreateBrokerCluster(pb.CreateBrokerClusterRequest(name="not-legal", spec=outside))
    answer = await world.scala.get("brokers", "outside")
    assert {k: answer[k] for k in ("nodeNames", "clientPort", "zookeeperClusterKey", "group")} == {
        "nodeNames": ["kafka.example", "kafka2.example"], "clientPort": 9093, "group": "default",
        "zookeeperClusterKey": {"group": "default", "name": "outside"},
    }  # fmt: skip
    assert (await world.scala.get("zookeepers", "outside"))["nodeNames"] == answer["nodeNames"]
    assert "not-legal" not in [entry["name"] for entry in await wire.list("brokers")]
    for method, path in (("PUT", "/brokers/outside/stop"), ("PUT", "/brokers/outside/node00")):
        refused = await wire.refused(method, path)
        assert (refused.status, refused.code) == (400, ILLEGAL_ARGUMENT)
        assert "external" in refused.message
    await stub.DeleteBrokerCluster(pb.DeleteBrokerClusterRequest(name="outside"))
    await stub.DeleteBrokerCluster(pb.DeleteBrokerClusterRequest(name="not-legal"))


async def test_brokers_of_keelman_s_own_users_can_be_used_and_stopped(
    world: OharaWorld, wire: JsClient, stub: BrokerClusterServiceStub
) -> None:
    spec = BrokerClusterSpec(managed=ManagedBrokers(nodes=["node00", "node01"]), labels={"team": "blue"})
    await stub.CreateBrokerCluster(pb.CreateBrokerClusterRequest(name="native", spec=spec))
    answer = await wire.reaches("brokers", "native", "RUNNING")
    assert (answer["nodeNames"], answer["aliveNodes"], answer["tags"]) == (
        spec.managed.nodes[:],
        ["node00", "node01"],
        {"team": "blue"},
    )
    assert (await world.scala.get("zookeepers", "native"))["state"] == "RUNNING"
    refused = await wire.refused("PUT", "/zookeepers/native/stop")
    assert refused.message.endswith(f"since it is used by broker cluster:{key('native')}")
    await wire.act("brokers", "native", "stop")
    await wire.reaches("brokers", "native", None)
    assert "state" not in await wire.get("zookeepers", "native")
    await wire.act("brokers", "native", "start")
    await wire.reaches("brokers", "native", "RUNNING")
    stored = (await stub.GetBrokerCluster(pb.GetBrokerClusterRequest(name="native"))).broker_cluster
    await wire.act("brokers", "native", "node02")
    grown = (await stub.GetBrokerCluster(pb.GetBrokerClusterRequest(name="native"))).broker_cluster
    assert list(grown.spec.managed.nodes) == ["node00", "node01", "node02"]
    assert (dict(grown.spec.managed.properties), grown.spec.managed.port) == ({}, stored.spec.managed.port)
    await wire.act("brokers", "native", "stop")
    await wire.reaches("brokers", "native", None)
    await wire.delete("brokers", "native")
    assert (await wire.refused("GET", "/zookeepers/native")).code == NO_SUCH

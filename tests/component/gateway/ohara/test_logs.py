"""Logs and containers of running clusters, and the log of the gateway itself."""

from __future__ import annotations

import pytest

from support.gateway.ohara.clients import BAD_VALUE, JsClient, OharaWorld, brokers, key, no_brokers

pytestmark = pytest.mark.component
NO_CLUSTER = "oharastream.ohara.agent.NoSuchClusterException"


async def test_what_does_not_run_has_no_log_and_no_container(wire: JsClient, group: str) -> None:
    await wire.create("zookeepers", group=group, name="zk", nodeNames=["node00"])
    for word in ("logs", "log"):
        for kind in ("zookeepers", "brokers", "workers", "streams", "shabondis"):
            refused = await wire.refused("GET", f"/{word}/{kind}/zk", group=group)
            assert (refused.status, refused.code) == (400, NO_CLUSTER)
            assert refused.message == f"cluster:{key('zk', group)} does not exist"
    for word in ("containers", "container"):
        assert await wire.ok("GET", f"/{word}/zk", group=group) == []
    assert (await wire.send("GET", "/logs/volumes/zk", group=group)).status_code == 404


async def test_each_process_has_a_log_and_a_container(world: OharaWorld, wire: JsClient, group: str) -> None:
    own = await brokers(wire, "bk", group, nodes=["node01", "node02"])
    broker = await wire.get("brokers", "bk", group)
    for node in ("node01", "node02"):
        agent = world.system.nodes[node]
        for name in agent.names_of("broker"):
            agent.logs[name] = [b"2020-01-01T00:00:00Z old \xff\n", b'2999-01-01T00:00:00Z "new"\n', b"  a trace\n"]
    for word in ("logs", "log"):
        answer = await wire.ok("GET", f"/{word}/brokers/bk", group=group)
        lines = '2020-01-01T00:00:00Z old \ufffd\n2999-01-01T00:00:00Z "new"\n  a trace\n'
        assert answer == {"clusterKey": own, "logs": [{"hostname": n, "value": lines} for n in ("node01", "node02")]}
    answer = await wire.ok("GET", "/log/brokers/bk", group=group, sinceSeconds="60")
    assert [log["value"] for log in answer["logs"]] == ['2999-01-01T00:00:00Z "new"\n  a trace\n'] * 2
    refused = await wire.refused("GET", "/log/brokers/bk", group=group, sinceSeconds="-1")
    assert (refused.status, refused.code) == (400, BAD_VALUE)
    (zookeeper,) = (await wire.ok("GET", "/logs/zookeepers/bk", group=group))["logs"]
    assert zookeeper["hostname"] == "node01"
    assert "stand-in" in zookeeper["value"]

    groups = await wire.ok("GET", "/containers/bk", group=group)
    assert [(group["clusterKey"], group["clusterType"]) for group in groups] == [(own, "broker"), (own, "zookeeper")]
    first, second = groups[0]["containers"]
    assert first["name"].startswith(f"{group}-bk-broker-")
    assert first["id"] != second["id"]
    ports = [broker["clientPort"], broker["jmxPort"]]
    mapped = [{"hostIp": "127.0.0.2", "hostPort": port, "containerPort": port} for port in ports]
    told = {"nodeName": "node01", "state": "RUNNING", "kind": "DOCKER", "size": -1, "imageName": broker["imageName"]}
    assert first == first | told | {"portMappings": mapped, "environments": {}, "hostname": "node01"}
    assert [container["nodeName"] for container in groups[1]["containers"]] == ["node01"]
    await no_brokers(wire, "bk", group)


async def test_a_log_that_cannot_be_had_says_why(world: OharaWorld, wire: JsClient, group: str) -> None:
    await brokers(wire, "bk", group)
    for name in world.system.nodes["node00"].names_of("broker"):
        world.system.nodes["node00"].logs.pop(name, None)
    (entry,) = (await wire.ok("GET", "/logs/brokers/bk", group=group))["logs"]
    assert "cannot be read: node node00 has no log of" in entry["value"]
    await no_brokers(wire, "bk", group)


async def test_the_gateway_answers_its_own_log(wire: JsClient) -> None:
    for word in ("logs", "log"):
        answer = await wire.ok("GET", f"/{word}/configurator")
        assert answer["clusterKey"]["group"] == "N/A"
        (entry,) = answer["logs"]
        assert "serving" in entry["value"]
    (entry,) = (await wire.ok("GET", "/logs/configurator", sinceSeconds="1"))["logs"]
    assert entry["value"]

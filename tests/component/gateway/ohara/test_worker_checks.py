"""Every check of worker clusters and of their broker clusters, in the order in which Ohara makes them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.eventually import eventually
from support.gateway.ohara.clients import (
    DATA_CHECK,
    ILLEGAL_ARGUMENT,
    ILLEGAL_STATE,
    NO_SUCH,
    UNSUPPORTED,
    JsClient,
    OharaWorld,
    brokers,
    key,
    no_brokers,
)

pytestmark = pytest.mark.component
HOME = "checks"
BROKERS = {"group": HOME, "name": "bk"}
STOPPED = {"group": HOME, "name": "stopped"}
TOPICS = ("config", "offset", "status")


@pytest.fixture(scope="module")
async def api(world: OharaWorld) -> JsClient:
    """The shared system with a running broker cluster and a stopped one."""
    await brokers(world.js, "bk", HOME)
    await brokers(world.js, "stopped", HOME, start=False)
    return world.js


def worker(group: str, name: str = "wk", **more: Any) -> dict[str, Any]:
    return {"group": group, "name": name, "nodeNames": ["node00"], "brokerClusterKey": BROKERS, **more}


# Creation: files, then nodes, then brokers, then unique fields.

MISSING_FILE = {"group": HOME, "name": "missing.jar"}
CREATION: tuple[tuple[str, dict[str, Any], tuple[int, str], str], ...] = (
    ("plugin", {"pluginKeys": [MISSING_FILE]}, (400, NO_SUCH), f"{key('missing.jar', HOME)} doesn't exist in "),
    ("shared jar", {"sharedJarKeys": [MISSING_FILE]}, (400, NO_SUCH), f"{key('missing.jar', HOME)} doesn't exist in "),
    ("node", {"nodeNames": ["nowhere"]}, (500, DATA_CHECK), f"type:node {key('nowhere')} does not exist"),
    ("broker", {"brokerClusterKey": "nobody"}, (500, DATA_CHECK), f"type:broker {key('nobody')} does not exist"),
)


@pytest.mark.parametrize("place", range(len(CREATION)), ids=[c[0] for c in CREATION])
async def test_creation_checks_in_order(api: JsClient, group: str, place: int) -> None:
    wrong: dict[str, Any] = {}
    for _, fields, _, _ in CREATION[place:]:
        wrong = fields | wrong
    for method, path in (("POST", "/workers"), ("PUT", "/workers/wk")):
        refusal = await api.refused(method, path, worker(group) | wrong, group=group)
        assert ((refusal.status, refusal.code), CREATION[place][3] in refusal.message) == (CREATION[place][2], True), (
            refusal
        )
    await api.create("workers", **worker(group))
    refusal = await api.refused("PUT", "/workers/wk", wrong, group=group)
    assert ((refusal.status, refusal.code), CREATION[place][3] in refusal.message) == (CREATION[place][2], True), (
        refusal
    )


async def test_brokers_need_not_run_at_creation(api: JsClient, group: str) -> None:
    await api.create("workers", **worker(group, brokerClusterKey=STOPPED))
    refusal = await api.refused("PUT", "/workers/wk/start", group=group)
    assert (refusal.status, refusal.code) == (500, DATA_CHECK)
    assert refusal.message == f"type:broker  {key('stopped', HOME)} MUST be running"


async def test_the_same_key_again(api: JsClient, group: str) -> None:
    await api.create("workers", **worker(group))
    refusal = await api.refused("POST", "/workers", worker(group))
    assert (refusal.status, refusal.code) == (500, ILLEGAL_STATE)
    assert refusal.message.startswith(f"({group}, wk}} already exists on ")
    assert refusal.message.endswith("WorkerClusterInfo")


def unique(group: str) -> dict[str, str]:
    return {"group.id": f"{group}id", **{f"{kind}.storage.topic": f"{group}{kind}" for kind in TOPICS}}


async def test_what_must_be_unique_on_a_broker_cluster(api: JsClient, group: str) -> None:
    mine = unique(group)
    await api.create("workers", **worker(group, "first", **mine))
    await api.create("workers", **worker(group, "third"))
    words = [f"group id:{group}id", *(f"{kind}TopicName:{group}{kind}" for kind in TOPICS)]
    for place, word in enumerate(words):
        same = dict(list(mine.items())[place:])
        for method, path, name in (
            ("POST", "/workers", "second"),
            ("PUT", "/workers/second", "second"),
            ("PUT", "/workers/third", "third"),
        ):
            body = worker(group, name, **same) if name == "second" else same
            refusal = await api.refused(method, path, body, group=group)
            assert (refusal.status, refusal.code) == (400, ILLEGAL_ARGUMENT), refusal
            assert refusal.message == f"{word} is used by wk cluster:first", refusal
    crossed = await api.refused(
        "POST", "/workers", worker(group, "second", **{"config.storage.topic": f"{group}offset"})
    )
    assert crossed.message == f"configTopicName:{group}offset is used by wk cluster:first"
    own = dict.fromkeys(("offset.storage.topic", "status.storage.topic"), f"{group}twice")
    alike = await api.refused("POST", "/workers", worker(group, "second", **own))
    assert (alike.status, alike.code) == (400, ILLEGAL_ARGUMENT)
    assert f"{group}twice" in alike.message
    await api.create("workers", **worker(group, "second", brokerClusterKey=STOPPED, **mine))
    same_again = await api.ok("PUT", "/workers/first", mine, group=group)
    assert mine.items() <= same_again.items(), "a cluster is not in its own way"
    moved = await api.refused("PUT", "/workers/second", {"brokerClusterKey": BROKERS}, group=group)
    assert moved.message == f"group id:{group}id is used by wk cluster:first"


async def test_of_two_that_race_one_wins(api: JsClient, group: str) -> None:
    bodies = [worker(group, f"w{n}", **{"group.id": f"{group}id"}) for n in range(8)]
    answers = await asyncio.gather(*(api.send("POST", "/workers", body) for body in bodies))
    assert sorted(a.status_code for a in answers) == [200] + [400] * 7
    (stored,) = await api.list("workers", group=group)
    for answer in answers:
        if answer.status_code == 400:
            assert answer.json()["message"] == f"group id:{group}id is used by wk cluster:{stored['name']}"
    same = await asyncio.gather(*(api.send("POST", "/workers", worker(group, "same")) for _ in range(8)))
    assert sorted(a.status_code for a in same) == [200] + [500] * 7


# Start and stop.


async def test_a_cluster_lives(api: JsClient, group: str) -> None:
    fields = await api.create("workers", **worker(group))
    await api.act("workers", "wk", "start", group)
    running = await api.reaches("workers", "wk", "RUNNING", group)
    assert running["aliveNodes"] == ["node00"]
    assert running["lastModified"] >= fields["lastModified"]
    await api.act("workers", "wk", "start", group)
    update = await api.refused("PUT", "/workers/wk", {"xmx": 1}, group=group)
    assert (update.status, update.code) == (500, DATA_CHECK)
    assert update.message == f"type:worker  {key('wk', group)} MUST be stopped"
    delete = await api.refused("DELETE", "/workers/wk", group=group)
    assert (delete.status, delete.code) == (500, DATA_CHECK)
    assert "MUST be stopped" in delete.message
    await api.act("workers", "wk", "stop", group)
    stopped = await api.reaches("workers", "wk", None, group)
    assert stopped == fields | {"lastModified": stopped["lastModified"]}
    await api.act("workers", "wk", "stop", group)
    await api.act("workers", "wk", "stop", group, force="TRUE")
    await api.delete("workers", "wk", group)


async def test_an_image_that_no_node_has(api: JsClient, group: str) -> None:
    await api.create("workers", **worker(group, imageName="somebody/else:1"))
    refusal = await api.refused("PUT", "/workers/wk/start", group=group)
    assert (refusal.status, refusal.code) == (400, ILLEGAL_ARGUMENT)
    assert refusal.message.startswith("node00 does not have image:somebody/else:1. It has images:"), refusal
    assert "connect-worker:" in refusal.message


async def test_every_version_of_the_image_is_run(api: JsClient, group: str) -> None:
    await api.create("workers", **worker(group, imageName="my.registry/a/connect-worker:0.12.0"))
    await api.act("workers", "wk", "start", group)
    await api.reaches("workers", "wk", "RUNNING", group)
    await api.without("workers", "wk", group)


async def test_ports_of_other_clusters_are_refused_at_once(api: JsClient, group: str) -> None:
    first = await api.create("workers", **worker(group, "first", freePorts=[31111, 31112]))
    ports = {"clientPort": first["clientPort"], "jmxPort": first["jmxPort"], "freePorts": [31112]}
    second = worker(group, "second", nodeNames=["node01"])
    used = ",".join(map(str, sorted([first["clientPort"], first["jmxPort"], 31112])))
    message = (
        f"ports:{used} are used by worker cluster:{key('first', group)} "
        "(the port is generated randomly if it is ignored from request)"
    )
    refusal = await api.refused("POST", "/workers", second | ports)
    assert (refusal.status, refusal.code, refusal.message) == (400, ILLEGAL_ARGUMENT, message)
    await api.create("workers", **second, freePorts=[31113])
    refusal = await api.refused("PUT", "/workers/second", ports, group=group)
    assert (refusal.status, refusal.code, refusal.message) == (400, ILLEGAL_ARGUMENT, message)
    await api.act("workers", "first", "start", group)
    await api.act("workers", "second", "start", group)
    await api.reaches("workers", "second", "RUNNING", group)
    for name in ("first", "second"):
        await api.without("workers", name, group)


async def test_ports_of_brokers_are_in_the_way_too(api: JsClient, group: str) -> None:
    taken = (await api.get("brokers", "bk", HOME))["clientPort"]
    refusal = await api.refused("POST", "/workers", worker(group, nodeNames=["node01"], clientPort=taken))
    assert (refusal.status, refusal.code) == (400, ILLEGAL_ARGUMENT)
    assert refusal.message.startswith(f"ports:{taken} are used by broker cluster:{key('bk', HOME)} (")


async def test_one_node_that_fails_is_named(world: OharaWorld, api: JsClient, group: str) -> None:
    fields = await api.create("workers", **worker(group, nodeNames=["node01", "node02"]))
    node = world.system.nodes["node02"]
    failing = _Failing(node, "no such luck")
    node.failing = failing
    try:
        await api.act("workers", "wk", "start", group)
        running = await api.reaches("workers", "wk", "RUNNING", group)
        assert running["aliveNodes"] == ["node01"]
        assert "node02" in running["error"]
        assert "no such luck" in running["error"]
    finally:
        node.failing = {}
    assert fields["nodeNames"] == ["node01", "node02"]
    await api.without("workers", "wk", group)


class _Failing(dict[str, str]):
    """Makes every worker of a node fail with this cause."""

    def __init__(self, node: Any, cause: str) -> None:
        super().__init__()
        self.cause = cause

    def __contains__(self, name: object) -> bool:
        return str(name).startswith("worker/")

    def __missing__(self, name: str) -> str:
        return self.cause


# Nodes added and removed.


async def test_nodes_are_added_and_removed(api: JsClient, group: str) -> None:
    await api.create("workers", **worker(group))
    await api.act("workers", "wk", "start", group)
    await api.reaches("workers", "wk", "RUNNING", group)
    for _ in range(2):
        await api.act("workers", "wk", "node01", group)

    async def alive(*nodes: str) -> None:
        async def there() -> bool:
            return sorted((await api.get("workers", "wk", group))["aliveNodes"]) == list(nodes)

        await eventually(there, what=f"{nodes} are alive")

    await alive("node00", "node01")
    unknown = await api.refused("PUT", "/workers/wk/nowhere", group=group)
    assert unknown.status == 400
    for _ in range(2):
        await api.delete("workers", "wk/node00", group)
    await alive("node01")
    last = await api.refused("DELETE", "/workers/wk/node01", group=group)
    assert (last.status, last.code) == (500, ILLEGAL_STATE)
    assert last.message == "there is only one instance. Please call remove to delete whole cluster"
    await api.without("workers", "wk", group)


async def test_nodes_of_a_stopped_cluster(api: JsClient, group: str) -> None:
    await api.create("workers", **worker(group))
    await api.act("workers", "wk", "node01", group)
    actual_api = await api.get("workers", "wk", group)
    assert (actual_api["nodeNames"], actual_api["aliveNodes"], "state" in actual_api) == (
        ["node00", "node01"],
        [],
        False,
    )
    await api.delete("workers", "wk/node00", group)
    assert (await api.get("workers", "wk", group))["nodeNames"] == ["node01"]
    last = await api.refused("DELETE", "/workers/wk/node01", group=group)
    assert (last.status, last.code) == (500, ILLEGAL_STATE)
    await api.delete("workers", "wk/elsewhere", group)
    await api.delete("workers", "nobody/node01", group)
    nobody = await api.refused("PUT", "/workers/nobody/node01", group=group)
    assert (nobody.status, nobody.code) == (400, NO_SUCH)


async def test_a_zookeeper_gets_no_node(api: JsClient, group: str) -> None:
    await api.create("zookeepers", group=group, name="zk", nodeNames=["node00"])
    refusal = await api.refused("PUT", "/zookeepers/zk/node01", group=group)
    assert (refusal.status, refusal.code) == (500, UNSUPPORTED)


# Workers depend on it.


async def test_what_is_in_use_stays(api: JsClient, group: str) -> None:
    own = await brokers(api, "bk", group, nodes=["node02"])
    await api.create("workers", **worker(group, brokerClusterKey=own, nodeNames=["node02"]))
    by_worker = (
        f"you can't remove broker cluster:{key('bk', group)} since it is used by worker cluster:{key('wk', group)}"
    )
    await api.act("workers", "wk", "start", group)
    await api.reaches("workers", "wk", "RUNNING", group)
    stop = await api.refused("PUT", "/brokers/bk/stop", group=group, force="true")
    assert ((stop.status, stop.code), stop.message) == ((400, ILLEGAL_ARGUMENT), by_worker)
    zookeeper = await api.refused("PUT", "/zookeepers/bk/stop", group=group)
    assert (zookeeper.status, zookeeper.code) == (400, ILLEGAL_ARGUMENT)
    assert key("bk", group) in zookeeper.message
    changed = await api.refused("PUT", "/nodes/node02", {"port": 23})
    assert (changed.status, changed.code) == (400, ILLEGAL_ARGUMENT)
    assert changed.message.startswith("node:node02 is used by ")
    await api.act("workers", "wk", "stop", group)
    await api.reaches("workers", "wk", None, group)
    gone = await api.refused("DELETE", "/nodes/node02")
    assert (gone.status, gone.code) == (400, ILLEGAL_ARGUMENT)
    assert gone.message.startswith("node:node02 is used by ")
    await api.act("brokers", "bk", "stop", group)
    await api.reaches("brokers", "bk", None, group)
    delete = await api.refused("DELETE", "/brokers/bk", group=group)
    assert ((delete.status, delete.code), delete.message) == ((400, ILLEGAL_ARGUMENT), by_worker)
    await api.delete("workers", "wk", group)
    await api.delete("brokers", "bk", group)
    await api.act("zookeepers", "bk", "stop", group)
    await api.reaches("zookeepers", "bk", None, group)
    await api.delete("zookeepers", "bk", group)


async def test_stored_connectors_keep_their_worker(api: JsClient, group: str) -> None:
    await api.create("workers", **worker(group))
    about = {"group": group, "name": "wk"}
    await api.create(
        "connectors", group=group, name="c", workerClusterKey=about, **{"connector.class": "FileStreamSource"}
    )
    refusal = await api.refused("DELETE", "/workers/wk", group=group)
    assert (refusal.status, refusal.code) == (400, ILLEGAL_ARGUMENT)
    used = f"since it is used by connector:{key('c', group)}"
    assert refusal.message == f"you can't remove worker cluster:{key('wk', group)} {used}"
    await api.delete("connectors", "c", group)
    await api.delete("workers", "wk", group)


async def test_one_zookeeper_serves_one_running_broker_cluster(api: JsClient, group: str) -> None:
    await brokers(api, "one", group, nodes=["node01"])
    shared = {"group": group, "name": "one"}
    await api.create("brokers", group=group, name="two", nodeNames=["node02"], zookeeperClusterKey=shared)
    refusal = await api.refused("PUT", "/brokers/two/start", group=group)
    assert (refusal.status, refusal.code) == (400, ILLEGAL_ARGUMENT)
    assert refusal.message == f"zk cluster:{key('one', group)} is already used by broker cluster:one"
    missing = await api.refused("POST", "/brokers", {"nodeNames": ["node00"], "zookeeperClusterKey": "nobody"})
    assert (missing.status, missing.code) == (500, DATA_CHECK)
    assert f"type:zookeeper {key('nobody')} does not exist" in missing.message
    await api.delete("brokers", "two", group)
    await no_brokers(api, "one", group)


async def test_the_scala_client_decides_on_everything(world: OharaWorld, api: JsClient, group: str) -> None:
    scala = world.scala
    await scala.create("workers", **worker(group))
    await scala.act("workers", "wk", "start", group)
    await scala.reaches("workers", "wk", "RUNNING", group)
    (answer,) = await scala.list("workers", group=group)
    assert answer["aliveNodes"] == ["node00"]
    for kind in ("nodes", "brokers", "zookeepers"):
        assert await scala.list(kind)
    await scala.without("workers", "wk", group)

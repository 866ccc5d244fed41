"""Objects that are stored and do not run: objects, volumes, pipelines, streams, shabondis."""

from typing import Any

from support.gateway.ohara.clients import (
    BAD_VALUE,
    DATA_CHECK,
    ILLEGAL_ARGUMENT,
    ILLEGAL_STATE,
    NO_SUCH,
    UNSUPPORTED,
    JsClient,
    brokers,
    key,
)

SOURCE = "oharastream.ohara.shabondi.ShabondiSource"


async def test_an_object_is_any_json_under_a_key(wire: JsClient, group: str) -> None:
    free: dict[str, Any] = {"stages": [1, 2.5, True, {"a": {"b": "c"}}], "big": 9007199254740993, "password": "p4ss"}
    fields = await wire.create("objects", group=group, name="ws", **free)
    assert {k: v for k, v in fields.items() if k != "lastModified"} == {
        "group": group,
        "name": "ws",
        "tags": {},
        **free,
    }
    assert await wire.get("objects", "ws", group) == fields
    changed = await wire.ok("PUT", "/objects/ws", {"stages": [], "more": 1}, group=group)
    assert (changed["stages"], changed["more"], changed["password"]) == ([], 1, "p4ss")
    assert changed["lastModified"] >= fields["lastModified"]
    assert [entry["name"] for entry in await wire.list("objects", group=group, more="1")] == ["ws"]
    taken = await wire.refused("POST", "/objects", {"group": group, "name": "ws"})
    assert taken.code == ILLEGAL_STATE
    assert taken.message.startswith(f"({group}, ws}} already exists on ")
    await wire.delete("objects", "ws", group)
    await wire.delete("objects", "ws", group)
    gone = await wire.refused("GET", "/objects/ws", group=group)
    assert (gone.status, gone.code) == (400, NO_SUCH)
    assert gone.message.startswith(f"{key('ws', group)} doesn't exist in ")


async def test_an_object_is_made_by_put_under_the_key_of_the_url(wire: JsClient, group: str) -> None:
    fields = await wire.ok("PUT", "/objects/o1", {"name": "other", "x": "y"}, group=group)
    assert (fields["group"], fields["name"], fields["x"]) == (group, "o1", "y")
    bad = await wire.refused("PUT", "/objects/O1", {}, group=group)
    assert (bad.code, bad.message) == (BAD_VALUE, r'the value "O1" is not matched to [a-z0-9\.]{1,25}$')


async def test_a_volume_starts_and_stops_and_is_deleted_stopped(wire: JsClient, group: str) -> None:
    document = await wire.create("volumes", group=group, name="v", nodeNames=["node00"], path="/tmp/v")
    assert "state" not in document
    await wire.act("volumes", "v", "start", group)
    await wire.act("volumes", "v", "start", group)
    assert (await wire.get("volumes", "v", group))["state"] == "RUNNING"
    refused = await wire.refused("DELETE", "/volumes/v", group=group)
    assert (refused.code, refused.message) == (DATA_CHECK, f"type:volume  {key('v', group)} MUST be stopped")
    await wire.act("volumes", "v", "stop", group)
    assert "state" not in await wire.get("volumes", "v", group)
    await wire.delete("volumes", "v", group)
    none = await wire.refused("POST", "/volumes", {"group": group, "nodeNames": [], "path": "/x"})
    assert none.message == "empty array is illegal to nodeNames"
    assert (await wire.refused("POST", "/volumes", {"nodeNames": ["n"]})).message == "Set(path) are required!!!"


async def test_a_volume_that_brokers_name_stays(wire: JsClient, group: str) -> None:
    volume = {"group": group, "name": "v"}
    await wire.create("volumes", **volume, nodeNames=["node00"], path="/tmp/v")
    await brokers(wire, "bk", group, start=False)
    await wire.ok("PUT", "/brokers/bk", {"log.dirs": [volume]}, group=group)
    used = await wire.refused("DELETE", "/volumes/v", group=group)
    assert used.code == ILLEGAL_ARGUMENT
    assert used.message == f"volume: {key('v', group)} is used by broker: {key('bk', group)}"
    await wire.act("volumes", "v", "start", group)
    await wire.act("volumes", "v", "stop", group)  # the brokers do not run
    await wire.delete("brokers", "bk", group)
    await wire.delete("zookeepers", "bk", group)
    await wire.delete("volumes", "v", group)


async def test_streams_are_stored_and_say_that_nothing_runs_them(wire: JsClient, group: str) -> None:
    await brokers(wire, "bk", group, start=False)
    answer = await wire.client.post("/v0/files", files={"file": ("s.jar", b"x")}, data={"group": group})
    assert answer.status_code == 200
    at = {"group": group, "brokerClusterKey": {"group": group, "name": "bk"}}
    fields = await wire.create("streams", **at, name="s", jarKey={"group": group, "name": "s.jar"})
    assert (fields["from"], fields["aliveNodes"], fields["nodeMetrics"]) == ([], [], {})
    assert fields["jmxPort"] > 1024
    refused = await wire.refused("PUT", "/streams/s/start", group=group)
    assert (refused.code, "nothing runs them" in refused.message) == (UNSUPPORTED, True)
    await wire.act("streams", "s", "stop", group)
    used = await wire.refused("DELETE", "/files/s.jar", group=group)
    assert used.message == f"file:{key('s.jar', group)} is used by stream cluster:{key('s', group)}"
    port = {"shabondi.class": SOURCE, "shabondi.client.port": 5000}
    shabondi = await wire.create("shabondis", **at, **port, name="h", nodeNames=["node00"])
    assert shabondi["shabondi.endpoint"] == "http://node00:5000/"
    for kind in ("streams", "shabondis"):
        for entry in await wire.list(kind, group=group):
            await wire.delete(kind, entry["name"], group)
    await wire.delete("files", "s.jar", group)
    await wire.delete("brokers", "bk", group)


async def test_a_pipeline_shows_its_objects_and_drops_those_that_are_gone(wire: JsClient, group: str) -> None:
    await wire.create("objects", group=group, name="o", tags={"a": 1})
    endpoints = [{"group": group, "name": "o", "kind": "object"}, {"group": group, "name": "t", "kind": "topic"}]
    fields = await wire.create("pipelines", group=group, name="p", endpoints=endpoints)
    assert fields["endpoints"] == endpoints
    (shown,) = fields["objects"]
    assert (shown["name"], shown["kind"], shown["tags"], shown["nodeMetrics"]) == ("o", "object", {"a": 1}, {})
    assert fields["jarKeys"] == []
    whole = await wire.update("pipelines", "p", group, tags={"b": 2})
    assert (whole["endpoints"], whole["tags"]) == (endpoints, {"b": 2})
    await wire.act("pipelines", "p", "refresh", group)
    assert (await wire.get("pipelines", "p", group))["endpoints"] == endpoints[:1]
    assert (await wire.refused("PUT", "/pipelines/p/start", group=group)).status == 404
    bad = await wire.refused("POST", "/pipelines", {"group": group, "endpoints": ["o"]})
    assert bad.code == BAD_VALUE
    await wire.delete("pipelines", "p", group)


async def test_streams_and_shabondis_name_what_is_missing(wire: JsClient, group: str) -> None:
    broker = {"group": group, "name": "nobk"}
    lost = await wire.refused("POST", "/shabondis", {
        "group": group, "name": "s", "shabondi.class": SOURCE, "shabondi.client.port": 5000, "brokerClusterKey": broker,
    })  # fmt: skip
    assert (lost.code, lost.message) == (DATA_CHECK, f"type:broker {key('nobk', group)} does not exist ")
    other = {"group": group, "shabondi.class": "a.B", "shabondi.client.port": 5000, "brokerClusterKey": broker}
    assert (await wire.refused("POST", "/shabondis", other)).message == "a.B is NOT supported"
    nojar = {"group": group, "name": "s", "jarKey": {"group": group, "name": "a.jar"}, "brokerClusterKey": broker}
    assert (await wire.refused("POST", "/streams", nojar)).code == NO_SUCH
    assert (await wire.refused("PUT", "/streams/s/start", group=group)).code == NO_SUCH

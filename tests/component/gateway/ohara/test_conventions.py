"""Rules for every resource of the Ohara API: status codes, error bodies, JSON rules, keys and PUT."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import orjson
import pytest

from support.gateway.ohara.clients import (
    BAD_JSON,
    BAD_VALUE,
    DATA_CHECK,
    ILLEGAL_STATE,
    NO_SUCH,
    RUN_TIME,
    JsClient,
    OharaWorld,
    brokers,
    key,
)

pytestmark = pytest.mark.component
CONVENTIONS = "conventions"
BROKERS = {"group": CONVENTIONS, "name": "bk"}
WORKERS = {"group": CONVENTIONS, "name": "wk"}
MINIMAL: dict[str, dict[str, Any]] = {
    "zookeepers": {"nodeNames": ["node00"]},
    "brokers": {"nodeNames": ["node00"], "zookeeperClusterKey": BROKERS},
    "workers": {"nodeNames": ["node00"], "brokerClusterKey": BROKERS},
    "topics": {"brokerClusterKey": BROKERS},
    "connectors": {"connector.class": "FileStreamSource", "workerClusterKey": WORKERS},
    "objects": {},
    "volumes": {"nodeNames": ["node00"], "path": "/tmp/volume"},
    "pipelines": {"endpoints": []},
}
"""The least that each kind must be sent, beside its name and group."""
KINDS = list(MINIMAL)
VERBS = {
    **dict.fromkeys(("zookeepers", "brokers", "workers", "topics", "volumes"), ("start", "stop")),
    "connectors": ("start", "stop", "pause", "resume"),
    "pipelines": ("refresh",),
}


@pytest.fixture(scope="module")
async def api(world: OharaWorld) -> JsClient:
    """The shared system, with a broker cluster and a worker cluster that do not run."""
    await brokers(world.js, "bk", CONVENTIONS, start=False)
    await world.js.create("workers", **WORKERS, **MINIMAL["workers"])
    return world.js


@pytest.mark.parametrize("kind", KINDS)
async def test_each_call_has_its_status(api: JsClient, group: str, kind: str) -> None:
    fields = await api.create(kind, group=group, name="one", **MINIMAL[kind])
    assert (fields["group"], fields["name"]) == (group, "one")
    assert abs(fields["lastModified"] - time.time() * 1000) < 60_000
    assert await api.get(kind, "one", group) | {"lastModified": 0} == fields | {"lastModified": 0}
    (listed,) = await api.list(kind, group=group)
    assert listed | {"lastModified": 0} == fields | {"lastModified": 0}
    again = await api.refused("POST", f"/{kind}", {"group": group, "name": "one", **MINIMAL[kind]})
    assert (again.status, again.code) == (500, ILLEGAL_STATE)
    assert again.message.startswith(f"({group}, one}} already exists on ")
    upserted = await api.ok("PUT", f"/{kind}/one", {"tags": {"a": "b"}}, group=group)
    assert upserted == fields | {"tags": {"a": "b"}, "lastModified": upserted["lastModified"]}
    for _ in range(2):
        await api.delete(kind, "one", group)
    assert await api.list(kind, group=group) == []


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_missing_is_a_bad_request(api: JsClient, group: str, kind: str) -> None:
    missing = await api.refused("GET", f"/{kind}/nobody", group=group)
    assert (missing.status, missing.code) == (400, NO_SUCH)
    assert key("nobody", group) in missing.message
    for verb in VERBS.get(kind, ()):
        refusal = await api.refused("PUT", f"/{kind}/nobody/{verb}", group=group)
        assert (refusal.status, refusal.code) == (400, NO_SUCH), verb


@pytest.mark.parametrize("kind", KINDS)
async def test_names_are_checked_in_body_and_url(api: JsClient, group: str, kind: str) -> None:
    for name in ("ABC", "a-b", "a_b", "a" * 26, "ä", "a b", "a/b", "a\n"):
        for field in ("name", "group"):
            body = {"group": group, "name": "one", **MINIMAL[kind], field: name}
            refusal = await api.refused("POST", f"/{kind}", body)
            assert (refusal.status, refusal.code) == (400, BAD_VALUE), (field, name)
            assert refusal.message.endswith(f'the value "{name}" is not matched to [a-z0-9\\.]{{1,25}}$'), (
                refusal.message
            )
    for name in ("ABC", "a-b", "a" * 26):
        for method in ("GET", "PUT", "DELETE"):
            refusal = await api.refused(method, f"/{kind}/{name}", MINIMAL[kind] if method == "PUT" else None)
            assert (refusal.status, refusal.code) == (400, BAD_VALUE), (method, name)
            assert refusal.message.endswith(f'the value "{name}" is not matched to [a-z0-9\\.]{{1,25}}$')


@pytest.mark.parametrize("kind", KINDS)
async def test_a_missing_name_is_made_up(api: JsClient, group: str, kind: str) -> None:
    names = [(await api.create(kind, group=group, **MINIMAL[kind]))["name"] for _ in range(2)]
    assert len(set(names)) == 2
    assert all(re.fullmatch(r"[0-9a-z]{1,25}", name) for name in names)
    if "nodeNames" in MINIMAL[kind]:
        assert all(re.fullmatch(r"[0-9a-f]{25}", name) for name in names)


async def test_names_with_dots_are_names(api: JsClient, group: str) -> None:
    names = (".", "..", ".a", "a.", "a.b", "a..b")
    for name in names:
        for own in (group, f"{group}."):
            fields = await api.create("workers", group=own, name=name, **MINIMAL["workers"])
            assert (fields["group"], fields["name"]) == (own, name)
    assert {w["name"] for w in await api.list("workers", group=group)} == set(names)
    for name in (".a", "a.", "a.b", "a..b"):
        assert (await api.get("workers", name, group))["name"] == name


UNKNOWN = (
    ("GET", "/abc"),
    ("GET", ""),
    ("GET", "/"),
    ("GET", "/workers/wk/start"),
    ("GET", "/workers/wk/node00/more"),
    ("PATCH", "/workers/wk"),
    ("POST", "/workers/wk"),
    ("PUT", "/workers"),
    ("DELETE", "/workers"),
    ("PUT", "/objects/one/start"),
    ("PUT", "/pipelines/one/start"),
    ("PUT", "/topics/one/pause"),
    ("PUT", "/files/one/start"),
    ("POST", "/inspect/workers"),
    ("GET", "/validate/connectors"),
    ("DELETE", "/containers/wk"),
)


@pytest.mark.parametrize(("method", "path"), UNKNOWN, ids=lambda part: part or "root")
async def test_an_unknown_path_names_the_documentation(api: JsClient, method: str, path: str) -> None:
    answer = await api.send(method, path, {} if method in {"POST", "PUT", "PATCH"} else None)
    body = orjson.loads(answer.content)
    assert answer.status_code == 404
    assert body["code"] == f"Unsupported API: v0{path}"
    assert body["message"] == f"please see link to find the available APIs. input url:v0{path}"
    assert re.fullmatch(r"https://oharastream\.github\.io/en/docs/[^/]+/rest-api/", body["apiUrl"])


async def test_a_body_of_another_type_is_an_unknown_api(api: JsClient, group: str) -> None:
    for media in ("text/plain", "application/xml", "application/x-www-form-urlencoded"):
        answer = await api.client.post("/v0/objects", content=b'{"name":"a"}', headers={"content-type": media})
        assert (answer.status_code, answer.json()["code"]) == (404, "Unsupported API: v0/objects"), media
    with_charset = {"content-type": "application/json; charset=UTF-8"}
    answer = await api.client.post("/v0/objects", content=orjson.dumps({"group": group}), headers=with_charset)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"nonsense", b'{"a":1,}', b'{"a":NaN}', b"\xff\xfe", b'{"a":"\xc3"}', b"{'a':1}", b'{"a":1} x'],
    ids=repr,
)
async def test_bad_json_is_refused(api: JsClient, content: bytes) -> None:
    answer = await api.client.post("/v0/objects", content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) in {(400, BAD_JSON), (400, BAD_VALUE)}, answer.text
    for other in (b"[]", b"1", b'"a"', b"null", b"true"):
        answer = await api.client.post("/v0/objects", content=other, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (400, BAD_VALUE), other


INT, SHORT, LONG = 2147483647, 32767, 9223372036854775807
BAD_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "no broker": ({"brokerClusterKey": None}, "Set(brokerClusterKey) are required!!!"),
    "no nodes": ({"nodeNames": None}, "Set(nodeNames) are required!!!"),
    "empty nodes": ({"nodeNames": []}, "empty array is illegal to nodeNames"),
    "start": ({"nodeNames": ["start"]}, "the start is protected word"),
    "stop": ({"nodeNames": ["node00", "stop"]}, "the stop is protected word"),
    "pause": ({"nodeNames": ["pause"]}, "the pause is protected word"),
    "resume": ({"nodeNames": ["resume"]}, "the resume is protected word"),
    "empty text": ({"imageName": ""}, 'the value of "imageName" can\'t be empty string!!!'),
    "empty text in tags": ({"tags": {"a": {"b": ""}}}, "can't be empty string!!!"),
    "empty text in an array": ({"tags": {"a": ["x", ""]}}, "can't be empty string!!!"),
    "empty text in an extra": ({"mine": ""}, 'the value of "mine" can\'t be empty string!!!'),
    "empty text in a key": ({"brokerClusterKey": {"group": "", "name": "bk"}}, "can't be empty string!!!"),
    "port 0": ({"clientPort": 0}, "clientPort: the number must be [1, 65535], actual:0"),
    "port -1": ({"jmxPort": -1}, "jmxPort: the number must be [1, 65535], actual:-1"),
    "port 65536": ({"clientPort": 65536}, "clientPort: the number must be [1, 65535], actual:65536"),
    "short": (
        {"config.storage.replication.factor": SHORT + 1},
        f"config.storage.replication.factor: the number must be [1, {SHORT}], actual:{SHORT + 1}",
    ),
    "int": (
        {"offset.storage.partitions": INT + 1},
        f"offset.storage.partitions: the number must be [1, {INT}], actual:{INT + 1}",
    ),
    "int 0": (
        {"status.storage.partitions": 0},
        f"status.storage.partitions: the number must be [1, {INT}], actual:0",
    ),
    "long 0": ({"xms": 0}, f"xms: the number must be [1, {LONG}], actual:0"),
    "text for a port": ({"clientPort": "123"}, 'the clientPort must be JsNumber type, but actual type is "JsString"'),
    "array for a port": ({"clientPort": [1]}, 'the clientPort must be JsNumber type, but actual type is "JsArray"'),
    "number for text": ({"imageName": 1}, 'the imageName must be JsString type, but actual type is "JsNumber"'),
    "text for an array": ({"nodeNames": "a"}, 'the nodeNames must be JsArray type, but actual type is "JsString"'),
    "object in nodes": ({"nodeNames": [{}]}, 'the nodeNames must be JsString type, but actual type is "JsObject"'),
    "number in nodes": ({"nodeNames": ["a", 1]}, 'the nodeNames must be JsString type, but actual type is "JsNumber"'),
    "text for tags": ({"tags": "a"}, 'the tags must be JsObject type, but actual type is "JsString"'),
    "array for tags": ({"tags": []}, 'the tags must be JsObject type, but actual type is "JsArray"'),
    "number for a group id": ({"group.id": 7}, 'the group.id must be JsString type, but actual type is "JsNumber"'),
    "number for a key": ({"brokerClusterKey": 5}, ""),
    "bad key": ({"brokerClusterKey": {"group": "a"}}, ""),
    "bad keys": ({"pluginKeys": [5]}, ""),
    "bad name in a key": ({"brokerClusterKey": "A-B"}, ""),
    "bad freePorts": ({"freePorts": "a"}, 'the freePorts must be JsArray type, but actual type is "JsString"'),
}


@pytest.mark.parametrize("what", BAD_FIELDS)
async def test_a_bad_field_is_named(api: JsClient, group: str, what: str) -> None:
    fields, message = BAD_FIELDS[what]
    body = {"group": group, "name": "one", **MINIMAL["workers"], **fields}
    refusal = await api.refused("POST", "/workers", body)
    if what != "bad name in a key":  # a key of a broker cluster that does not exist
        assert (refusal.status, refusal.code) == (400, BAD_VALUE), refusal
    assert message in refusal.message, refusal
    assert await api.list("workers", group=group) == []
    await api.create("workers", group=group, name="one", **MINIMAL["workers"])
    changed = {k: v for k, v in fields.items() if v is not None and v != 1}  # imageName is ignored
    if changed and what != "bad name in a key":
        refusal = await api.refused("PUT", "/workers/one", changed, group=group)
        assert (refusal.status, refusal.code) == (400, BAD_VALUE)


async def test_all_missing_fields_are_named(api: JsClient) -> None:
    refusal = await api.refused("POST", "/workers", {})
    assert re.fullmatch(r"Set\((\S+), (\S+)\) are required!!!", refusal.message), refusal
    assert {"nodeNames", "brokerClusterKey"} <= set(re.split(r"[(), ]+", refusal.message))
    refusal = await api.refused("PUT", "/workers/new", {"nodeNames": ["node00"]})
    assert refusal.message == "Set(brokerClusterKey) are required!!!"


async def test_nulls_are_dropped(api: JsClient, group: str) -> None:
    body = {"group": group, "name": None, "xms": None, "tags": None, "mine": None, **MINIMAL["workers"]}
    fields = await api.ok("POST", "/workers", body)
    assert (fields["xms"], fields["tags"], len(fields["name"])) == (2048, {}, 25)
    assert "mine" not in fields
    assert await api.ok("PUT", f"/workers/{fields['name']}", {"xmx": None}, group=group) | {
        "lastModified": 0
    } == fields | {"lastModified": 0}


async def test_each_form_of_a_key_is_taken(api: JsClient, group: str) -> None:
    own = {"nodeNames": ["node00"], "group": group}
    await brokers(api, group, start=False)
    full = {"group": "default", "name": group}
    for form in (group, {"name": group}, full):
        fields = await api.create("workers", brokerClusterKey=form, **own)
        assert fields["brokerClusterKey"] == full
    other = await api.create("workers", brokerClusterKey=BROKERS, **own)
    assert other["brokerClusterKey"] == BROKERS


async def test_what_nobody_knows_is_kept(api: JsClient, group: str) -> None:
    extras = {"mine": {"deep": [1, 2.5, True, {"a": "b"}]}, "number": 7, "zookeeperClusterKey": {"name": "zk"}}
    fields = await api.create("workers", group=group, name="one", **MINIMAL["workers"], **extras)
    assert extras.items() <= fields.items()
    assert "settings" not in fields
    updated = await api.ok("PUT", "/workers/one", {"number": 8, "more": "x"}, group=group)
    assert extras | {"number": 8, "more": "x"} == {k: v for k, v in updated.items() if k in {*extras, "more"}}
    assert await api.get("workers", "one", group) == updated


async def test_run_time_fields_of_a_request_are_dropped(api: JsClient, group: str) -> None:
    sent = dict.fromkeys(RUN_TIME | {"metrics", "status", "settings"}, "nonsense")
    fields = await api.create("workers", group=group, name="one", **MINIMAL["workers"], **sent)
    assert fields["aliveNodes"] == []
    assert "state" not in fields
    assert not (RUN_TIME | {"metrics", "status", "settings"}) - {"aliveNodes", "lastModified"} & set(fields)
    assert isinstance(fields["lastModified"], int)


async def test_permissions(api: JsClient, group: str) -> None:
    sent = {"config.storage.partitions": 7, "imageName": "oharastream/connect-worker:0.11.1"}
    fields = await api.create("workers", group=group, name="one", **MINIMAL["workers"], **sent)
    assert fields["config.storage.partitions"] == 1, "READ_ONLY"
    image = "oharastream/connect-worker:other"
    body = {"group": "other", "name": "two", "imageName": image, "config.storage.partitions": 3, "xmx": 4096}
    updated = await api.ok("PUT", "/workers/one", body, group=group)
    assert updated == fields | {"xmx": 4096, "lastModified": updated["lastModified"]}, "CREATE_ONLY fields are ignored"


async def test_put_of_a_missing_object_creates_it(api: JsClient, group: str) -> None:
    body = {"group": "elsewhere", "name": "other", **MINIMAL["workers"]}
    fields = await api.ok("PUT", "/workers/one", body, group=group)
    assert (fields["group"], fields["name"]) == (group, "one"), "the key of the URL wins"
    assert await api.get("workers", "one", group) == fields
    defaulted = await api.ok("PUT", f"/objects/{group}", {"a": 1})
    assert (defaulted["group"], defaulted["name"]) == ("default", group)
    await api.delete("objects", group)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_js_client_updates_with_the_whole_object(api: JsClient, group: str, kind: str) -> None:
    document = await api.create(kind, group=group, name="one", **MINIMAL[kind])
    for tags in ({"displayName": "mine"}, {}):
        updated = await api.update(kind, "one", group, tags=tags)
        assert updated == document | {"tags": tags, "lastModified": updated["lastModified"]}


@pytest.mark.parametrize("kind", KINDS)
async def test_the_scala_client_reads_what_it_created(world: OharaWorld, api: JsClient, group: str, kind: str) -> None:
    fields = await world.scala.create(kind, group=group, name="one", **MINIMAL[kind])
    assert (await world.scala.get(kind, "one", group)).keys() == fields.keys()
    again = {k: v for k, v in fields.items() if k not in RUN_TIME}
    await api.delete(kind, "one", group)
    same = await world.scala.create(kind, **again)
    assert same | {"lastModified": 0} == fields | {"lastModified": 0}, "an answer can be sent again"


async def test_put_of_what_runs_is_refused(api: JsClient, group: str) -> None:
    await brokers(api, "bk", group)
    refusal = await api.refused("PUT", "/brokers/bk", {"tags": {}}, group=group)
    assert (refusal.status, refusal.code) == (500, DATA_CHECK)
    assert refusal.message == f"type:broker  {key('bk', group)} MUST be stopped"
    refusal = await api.refused("PUT", "/zookeepers/bk", {"tags": {}}, group=group)
    assert refusal.message == f"type:zookeeper  {key('bk', group)} MUST be stopped"


async def test_what_a_path_may_not_have_is_refused(api: JsClient) -> None:
    words = "%00 %FF a%2Fb %2e%2e a%20b a%0Ab a%0A %0A %C3%A4 % %zz a;b a%3Fb"
    for word in words.split():
        path = f"/v0/workers/{word}"
        answer = await api.client.get(path)
        assert answer.status_code in {400, 404}, path
        assert set(answer.json()) >= {"code", "message", "stack"}, path


async def test_a_huge_body_is_refused(api: JsClient) -> None:
    body = orjson.dumps({"name": "one", "mine": "x" * (60 << 20)})
    answer = await api.client.post("/v0/objects", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["message"]
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    answer = await api.client.post("/v0/objects", content=deep, headers={"content-type": "application/json"})
    assert answer.status_code == 400


async def test_of_many_that_change_one_object_all_are_heard(api: JsClient, group: str) -> None:
    changes = [{f"k{number}": number} for number in range(60)]
    answers = await asyncio.gather(*(api.send("PUT", "/objects/one", change, group=group) for change in changes))
    assert [a.status_code for a in answers] == [200] * len(changes)
    actual_api = await api.get("objects", "one", group)
    assert {k: v for change in changes for k, v in change.items()}.items() <= actual_api.items()

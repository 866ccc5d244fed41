"""Files: uploaded by form, listed with their classes, downloaded, tagged and deleted."""

import io
import zipfile
from typing import Any

import httpx
import orjson

from keelman.gateway.ohara.files.files import GOES_BACK
from support.eventually import eventually
from support.gateway.ohara.clients import BAD_VALUE, ILLEGAL_ARGUMENT, NO_SUCH, JsClient, brokers, judge, key
from support.state.uploads import jar

MIB = 1 << 20


async def post(wire: JsClient, path: str, data: bytes, name: str, **texts: str) -> httpx.Response:
    """A form with a file, and texts after it."""
    answer = await wire.client.post(f"/v0{path}", files={"file": (name, data, "application/x")}, data=texts)
    judge(answer)
    return answer


async def uploaded(wire: JsClient, data: bytes, name: str, **texts: str) -> Any:
    """The JSON of an accepted file."""
    answer = await post(wire, "/files", data, name, **texts)
    assert answer.status_code == 200, answer.text
    return orjson.loads(answer.content)


async def test_a_jar_is_uploaded_with_its_classes_and_downloaded_as_it_was(wire: JsClient, group: str) -> None:
    data = jar(3 * MIB, salt=group)
    fields = await uploaded(wire, data, "acme-1.2.jar", group=group, tags='{"a":{"b":1}}')
    assert (fields["group"], fields["name"], fields["size"]) == (group, "acme-1.2.jar", len(data))
    assert fields["tags"] == {"a": {"b": 1}}
    (info,) = fields["classInfos"]
    assert (info["classType"], info["className"]) == ("source", "com.acme.WeatherSource")
    settings = {definition["key"]: definition for definition in info["settingDefinitions"]}
    assert settings["kind"]["defaultValue"] == "source"
    assert settings["topicKeys"]["reference"] == "TOPIC"
    assert fields["url"].endswith(f"/v0/downloadFile/{group}/acme-1.2.jar")
    for url in (fields["url"], fields["url"].replace("downloadFile", "downloadFiles")):
        got = await wire.client.get(url)
        assert (got.status_code, got.content) == (200, data)
        assert got.headers["content-type"] == "application/java-archive"
        assert got.headers["content-length"] == str(len(data))
    assert await wire.get("files", "acme-1.2.jar", group) == fields
    assert await wire.list("files", group=group) == [fields]


async def test_the_same_key_again_is_refused_and_another_group_is_another_file(wire: JsClient, group: str) -> None:
    await uploaded(wire, b"one", "a.txt", group=group)
    again = orjson.loads((await post(wire, "/files", b"one", "a.txt", group=group)).content)
    assert (again["code"], again["message"]) == (ILLEGAL_ARGUMENT, f"file:{key('a.txt', group)} exists!!!")
    other = await uploaded(wire, b"one", "a.txt", group=f"{group}.other")
    assert (other["classInfos"], other["tags"]) == ([], {})


async def test_put_changes_tags_alone(wire: JsClient, group: str) -> None:
    document = await uploaded(wire, b"text", "my file.txt", group=group)
    changed = await wire.ok("PUT", "/files/my%20file.txt", {"tags": {"x": [1]}, "size": 7}, group=group)
    assert changed == document | {"tags": {"x": [1]}, "lastModified": changed["lastModified"]}
    none = await wire.refused("PUT", "/files/none", {"tags": {}}, group=group)
    assert (none.code, none.message) == (ILLEGAL_ARGUMENT, "Updating an nonexistent file is not allowed")
    assert (await wire.refused("PUT", "/files/my%20file.txt", {"tags": "x"}, group=group)).code == BAD_VALUE


async def test_deleting_is_done_once_and_again(wire: JsClient, group: str) -> None:
    await uploaded(wire, b"text", "a.bin", group=group)
    await wire.delete("files", "a.bin", group)
    await wire.delete("files", "a.bin", group)
    gone = await wire.refused("GET", "/files/a.bin", group=group)
    assert (gone.status, gone.code) == (400, NO_SUCH)
    lost = await wire.client.get(f"/v0/downloadFile/{group}/a.bin")
    assert orjson.loads(lost.content)["code"] == NO_SUCH
    await uploaded(wire, b"another", "a.bin", group=group)


async def test_a_file_that_a_worker_cluster_names_stays(wire: JsClient, group: str) -> None:
    bk = await brokers(wire, "bk", group, start=False)
    for setting in ("pluginKeys", "sharedJarKeys"):
        await uploaded(wire, jar(salt=f"{group}{setting}"), "a.jar", group=group)
        named = {setting: [{"group": group, "name": "a.jar"}]}
        await wire.create("workers", group=group, name="wk", nodeNames=["node00"], brokerClusterKey=bk, **named)
        used = await wire.refused("DELETE", "/files/a.jar", group=group)
        assert used.code == ILLEGAL_ARGUMENT
        assert used.message == f"file:{key('a.jar', group)} is used by worker cluster:{key('wk', group)}"
        await wire.delete("workers", "wk", group)

        async def forgotten() -> bool:
            return (await wire.send("DELETE", "/files/a.jar", group=group)).status_code == 204

        await eventually(forgotten, what="the worker cluster is gone")


async def test_a_file_that_workers_may_go_back_to_says_so(wire: JsClient, group: str) -> None:
    keys = [{"group": group, "name": f"{name}.jar"} for name in ("old", "new")]
    for single_key in keys:
        await uploaded(wire, jar(10, salt=single_key["name"] + group), single_key["name"], group=group)
    broker = await brokers(wire, "bk", group)
    settings = {"group": group, "name": "wk", "nodeNames": ["node00"], "brokerClusterKey": broker}
    await wire.create("workers", **settings, pluginKeys=keys[:1])
    await wire.act("workers", "wk", "start", group)
    await wire.reaches("workers", "wk", "RUNNING", group)
    await wire.act("workers", "wk", "stop", group)
    await wire.reaches("workers", "wk", None, group)
    await wire.update("workers", "wk", group, pluginKeys=keys[1:])
    used = await wire.refused("DELETE", "/files/old.jar", group=group)
    assert used.message == f"file:{key('old.jar', group)} is used by worker cluster:{key('wk', group)}{GOES_BACK}"
    await wire.delete("workers", "wk", group)


async def test_what_is_no_jar_or_a_broken_one_is_kept_without_classes(wire: JsClient, group: str) -> None:
    broken = jar(MIB)[: MIB // 2]
    for name, data in (("broken.jar", broken), ("text", b"no archive"), ("x.tar.gz", b"\x1f\x8b no")):
        assert (await uploaded(wire, data, name, group=group))["classInfos"] == [], name
        assert (await wire.client.get(f"/v0/downloadFile/{group}/{name}")).content == data


async def test_an_inspected_file_is_not_kept_and_has_no_url(wire: JsClient, group: str) -> None:
    answer = await post(wire, "/inspect/files", jar(salt=group), "acme.jar", group=group)
    tree = orjson.loads(answer.content)
    assert answer.status_code == 200
    assert "url" not in tree
    assert [class_info["className"] for class_info in tree["classInfos"]] == ["com.acme.WeatherSource"]
    assert await wire.list("files", group=group) == []


async def test_forms_that_cannot_be_are_refused_with_a_reason(wire: JsClient, group: str) -> None:
    async def refused(path: str = "/v0/files", **sent: Any) -> tuple[int, str]:
        answer = await wire.client.post(path, **sent)
        judge(answer)
        return answer.status_code, orjson.loads(answer.content)["message"]

    assert (await refused(json={"file": "x"}))[0] == 404
    assert await refused(files={"other": ("a", b"x")}) == (400, "Request is missing required form field 'file'")
    assert (await refused(files={"file": ("a/../b.jar", b"x")}))[0] == 400
    assert (await refused(files={"file": ("a.jar", b"x")}, data={"tags": "[1]"}))[1].startswith(
        "the tags must be JsObj"
    )
    assert (await refused(files={"file": ("a.jar", b"x")}, data={"tags": "{"}))[0] == 400
    assert (await refused(content=b"--x\r\nbroken", headers={"content-type": "multipart/form-data; boundary=x"}))[
        0
    ] == 400
    assert (await refused(content=b"x", headers={"content-type": "multipart/form-data"}))[0] == 400
    status, reason = await refused(files={"file": ("large.bin", bytes(50 * MIB + 1))}, data={"group": group})
    assert (status, reason) == (400, f"the request's body is larger than {50 * MIB} bytes")
    assert await wire.list("files", group=group) == []


async def test_an_empty_file_is_a_file(wire: JsClient, group: str) -> None:
    fields = await uploaded(wire, b"", "empty.jar", group=group)
    assert (fields["size"], fields["classInfos"]) == (0, [])
    assert (await wire.client.get(f"/v0/downloadFile/{group}/empty.jar")).content == b""
    await wire.delete("files", "empty.jar", group)


def zipped(size: int) -> bytes:
    """An archive of about this size that is no plugin."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("noise", bytes(size))
    return buffer.getvalue()


async def test_fifty_mebibytes_are_taken(wire: JsClient, group: str) -> None:
    data = zipped(50 * MIB - 64 * 1024)
    fields = await uploaded(wire, data, "large.zip", group=group)
    assert fields["size"] == len(data)

"""Plugins over real gRPC on both databases: uploads whole and broken, lists, changes, downloads, quotas."""

import asyncio
import hashlib
from pathlib import Path

import obstore
import pytest

from keelman.api.connect.v1 import plugin_pb2
from keelman.api.connect.v1 import plugin_service_pb2 as pb
from keelman.api.event.v1 import event_pb2
from keelman.model.errors import (
    AlreadyExists,
    Conflict,
    Exhausted,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unavailable,
)
from keelman.rpc.errors import translated
from keelman.state.plugins.database_storage import DatabaseStorage
from support.eventually import eventually
from support.plugins import jar_files
from support.servers.object_store import ObjectStore
from support.state.service import Clients, state_in_loop
from support.state.stores import open_store
from support.state.uploads import download, jar, pieces, upload

pytestmark = pytest.mark.component
BUCKET = "plugins"
SIZE = 5 << 19  # two chunks and a half


@pytest.fixture(params=["database", "folder", "s3"])
def kept(request, tmp_path, name: str) -> dict[str, str]:
    """Settings for the place of files: below `shared` unless it is the database or a server."""
    if request.param == "database":
        return {}
    if request.param == "folder":
        return {"plugin_storage": str(tmp_path / "shared")}
    server: ObjectStore = request.getfixturevalue("s3")
    return {"plugin_storage": f"s3://{BUCKET}/{name}", "plugin_s3_endpoint": server.endpoint}


@pytest.fixture
async def clients(tmp_path, url, kept):
    async with state_in_loop(tmp_path, database=url, **kept) as (state, _):
        yield state


@pytest.fixture
async def anywhere(tmp_path, url):
    """The channel to a state service, for tests that do not depend on the place of files."""
    async with state_in_loop(tmp_path, database=url) as (state, _):
        yield state


async def get(clients: Clients, name: str, version: str = "") -> plugin_pb2.Plugin:
    return (await clients.plugins.GetPlugin(pb.GetPluginRequest(name=name, version=version))).plugin


async def named(clients: Clients, **fields) -> list[str]:
    versions, request = [], pb.ListPluginsRequest(**fields)
    while True:
        answer = await clients.plugins.ListPlugins(request)
        versions += [f"{plugin.name}/{plugin.version}" for plugin in answer.plugins]
        request.page_token = answer.next_page_token
        if not request.page_token:
            return versions


async def test_a_plugin_from_its_upload_to_its_end(clients: Clients) -> None:
    data = jar(SIZE)
    started_upload = await upload(
        clients.plugins, data, description="weather", labels={"team": "blue"}, request_id="r1"
    )
    assert (started_upload.name, started_upload.version, started_upload.file_name) == ("acme", "1.2", "acme-1.2.jar")
    assert (started_upload.kind, started_upload.size_bytes) == (plugin_pb2.PLUGIN_KIND_JAR, len(data))
    assert (started_upload.sha256, started_upload.md5) == (
        hashlib.sha256(data).hexdigest(),
        hashlib.md5(data).hexdigest(),
    )
    assert [(c.class_name, c.type, c.version, c.language) for c in started_upload.classes] == [
        ("com.acme.WeatherSource", "source", "1.2", "java")
    ]
    assert (started_upload.description, dict(started_upload.labels), list(started_upload.problems)) == (
        "weather",
        {"team": "blue"},
        [],
    )
    assert started_upload.create_time.ToSeconds() > 0
    assert await get(clients, "acme") == await get(clients, "acme", "1.2") == started_upload

    assert await upload(clients.plugins, data, request_id="r1") == started_upload
    assert await upload(clients.plugins, data, description="the same again") == started_upload
    with pytest.raises(AlreadyExists, match=f"another file .sha256 {started_upload.sha256}"), translated():
        await upload(clients.plugins, jar(10), name="acme", version="1.2")

    assert await download(clients.plugins, "acme") == (started_upload, data)
    for offset in (1, (1 << 20) - 1, 1 << 20, len(data) - 1, len(data)):
        assert (await download(clients.plugins, "acme", "1.2", offset))[1] == data[offset:]
    with pytest.raises(InvalidArgument, match="offset"), translated():
        await download(clients.plugins, "acme", offset=len(data) + 1)

    update = pb.UpdatePluginRequest(name="acme", version="1.2", etag=started_upload.etag, labels={"team": "red"})
    update.update_mask.paths.append("labels")
    changed = (await clients.plugins.UpdatePlugin(update)).plugin
    assert (changed.description, dict(changed.labels)) == ("weather", {"team": "red"})
    assert changed.etag != started_upload.etag
    with pytest.raises(Conflict, match="etag"), translated():
        await clients.plugins.UpdatePlugin(update)

    gone = await clients.plugins.DeletePlugin(pb.DeletePluginRequest(name="acme", version="1.2"))
    assert gone.plugin == changed
    with pytest.raises(NotFound, match="no plugin is named 'acme'"), translated():
        await get(clients, "acme")
    again = await upload(clients.plugins, data)
    assert again.uid != started_upload.uid
    assert (await download(clients.plugins, "acme"))[1] == data


async def test_lists_have_the_newest_version_first(anywhere: Clients) -> None:
    for name, version in (("b", "1.9"), ("a", "1"), ("b", "1.10"), ("b", "1.10-rc1"), ("c", "2")):
        await upload(anywhere.plugins, jar(salt=name + version), name=name, version=version, labels={"n": name})
    ordered = ["a/1", "b/1.10", "b/1.10-rc1", "b/1.9", "c/2"]
    assert await named(anywhere) == await named(anywhere, page_size=1) == await named(anywhere, page_size=2) == ordered
    assert await named(anywhere, name="b", page_size=2) == ordered[1:4]
    assert await named(anywhere, labels={"n": "c"}) == ["c/2"]
    assert (await get(anywhere, "b")).version == "1.10"
    with (
        pytest.raises(NotFound, match=r"plugin b has no version '3': those there are: 1.10, 1.10-rc1, 1.9"),
        translated(),
    ):
        await get(anywhere, "b", "3")


async def test_versions_come_from_the_header_the_file_and_the_digest(anywhere: Clients) -> None:
    data = jar(10)
    assert (await upload(anywhere.plugins, data, file_name="weather.jar")).version == hashlib.sha256(data).hexdigest()[
        :12
    ]
    actual_upload = await upload(
        anywhere.plugins, jar(20), file_name="Acme Weather-plugin.zip", name="w", version="7+b"
    )
    assert (actual_upload.name, actual_upload.version, actual_upload.kind) == ("w", "7+b", plugin_pb2.PLUGIN_KIND_ZIP)


BROKEN = [
    ({"sha256": "0" * 64}, "that of the bytes that came"),
    ({"size_bytes": 10}, "the number of bytes that came"),
    ({"size_bytes": 1 << 20}, "the number of bytes that came"),
    ({"sha256": "abc"}, "64 digits of hex"),
    ({"file_name": "../acme.jar"}, "header.file_name"),
    ({"file_name": ""}, "header.file_name"),
    ({"name": "Acme"}, "header.name"),
    ({"version": "1/2"}, "header.version"),
    ({"labels": {"a b": "c"}}, "labels"),
    ({"size_bytes": -1}, "header.size_bytes"),
]


async def test_nothing_is_kept_of_what_is_broken(tmp_path, url, kept) -> None:
    data = jar(1000)
    async with state_in_loop(tmp_path, database=url, **kept) as (clients, _):
        for header, reason in BROKEN:
            with pytest.raises(InvalidArgument, match=reason), translated():
                await upload(clients.plugins, data, **header)
        evil = jar_files.jar_bytes((), {"../../etc/cron.d/evil": "x"})
        with pytest.raises(InvalidArgument, match="leads out of the archive") as caught, translated():
            await upload(clients.plugins, evil)
        assert caught.value.metadata == {"rule": "parent-path", "entry": "../../etc/cron.d/evil"}
        assert caught.value.reason == "PLUGIN_REFUSED"
        with pytest.raises(InvalidArgument, match="is no zip, jar, wheel or tar"), translated():
            await upload(clients.plugins, b"hello")
        with pytest.raises(InvalidArgument, match="a header first"), translated():
            await clients.plugins.UploadPlugin(iter([pb.UploadPluginRequest(chunk=b"x")]))
        header = pb.UploadPluginRequest(header=pb.UploadHeader(file_name="a.jar"))
        with pytest.raises(InvalidArgument, match="the header comes once"), translated():
            await clients.plugins.UploadPlugin(iter([header, header]))
        with pytest.raises(InvalidArgument, match="at most 1048576 bytes"), translated():
            await clients.plugins.UploadPlugin(iter([header, pb.UploadPluginRequest(chunk=bytes((1 << 20) + 1))]))
        with pytest.raises(InvalidArgument, match="the file is empty"), translated():
            await clients.plugins.UploadPlugin(iter([header]))
        await cut_off(clients, data)
        assert await named(clients) == []
    assert await left(tmp_path, url, kept) == 0


async def cut_off(clients: Clients, data: bytes) -> None:
    """An upload whose client disconnects in its middle."""
    call = clients.plugins.UploadPlugin()
    async for piece in pieces(data):
        await call.write(piece)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def left(home: Path, url: str, stored: dict[str, str]) -> int:
    """The number of stored files."""
    if endpoint := stored.get("plugin_s3_endpoint"):
        prefix = stored["plugin_storage"].removeprefix(f"s3://{BUCKET}/")
        bucket = ObjectStore(endpoint, "", Path()).bucket(BUCKET)
        return sum([len(some) async for some in obstore.list(bucket, f"{prefix}/")])
    async with open_store(url, key_file=home / "state" / "secrets.key") as store:
        chunks = await DatabaseStorage(store.database).stored()
    return len(chunks) + sum(path.is_file() for path in (home / "shared").rglob("*"))


async def test_quotas_are_told_before_the_file_comes_and_hold_without_a_size(tmp_path) -> None:
    first, second = jar(1000), jar(1000, salt="2")
    limits = {"plugin_max_bytes": len(first) + 100, "plugins_max_bytes": len(first) + len(second) - 1}
    async with state_in_loop(tmp_path, **limits) as (clients, _):
        await upload(clients.plugins, first)
        large = jar(2000)
        for size in (None, len(large)):
            with pytest.raises(Exhausted, match="plugin_max_bytes allows no more") as caught, translated():
                await upload(clients.plugins, large, size_bytes=size, version="2")
            assert caught.value.reason == "PLUGIN_TOO_LARGE"
        for size in (None, len(second)):
            with pytest.raises(Exhausted, match="plugins_max_bytes allows no more") as caught, translated():
                await upload(clients.plugins, second, size_bytes=size, version="2")
            assert caught.value.reason == "PLUGIN_QUOTA"
        await upload(clients.plugins, first)  # the same file again takes no space
        await clients.plugins.DeletePlugin(pb.DeletePluginRequest(name="acme", version="1.2"))
        await upload(clients.plugins, second, version="2")


async def test_a_file_is_found_where_it_was_stored_after_another_storage_is_set(tmp_path) -> None:
    data = jar(1000)
    async with state_in_loop(tmp_path) as (clients, _):
        await upload(clients.plugins, data)
    async with state_in_loop(tmp_path, plugin_storage=str(tmp_path / "shared")) as (clients, _):
        assert (await download(clients.plugins, "acme"))[1] == data
        await upload(clients.plugins, data, name="other")
    async with state_in_loop(tmp_path) as (clients, _):
        with pytest.raises(FailedPrecondition, match="in the folder storage"), translated():
            await download(clients.plugins, "other")
        await clients.plugins.DeletePlugin(pb.DeletePluginRequest(name="other", version="1.2"))
        assert await named(clients) == ["acme/1.2"]


async def test_a_watch_tells_of_plugins(tmp_path) -> None:
    from keelman.api.event.v1 import watch_service_pb2, watch_service_pb2_grpc  # noqa: PLC0415
    from keelman.rpc.channels import channel  # noqa: PLC0415

    async with state_in_loop(tmp_path) as (clients, port), channel(f"127.0.0.1:{port}") as connection:
        stub = watch_service_pb2_grpc.WatchServiceStub(connection)
        call = stub.Watch(watch_service_pb2.WatchRequest(nouns=["plugin"]))
        seen: list[event_pb2.Event] = []

        async def follow() -> None:
            async for answer in call:
                seen.extend(answer.events)

        following = asyncio.ensure_future(follow())
        made_plugin = await upload(clients.plugins, jar(100))
        await clients.plugins.DeletePlugin(pb.DeletePluginRequest(name="acme", version="1.2"))
        await eventually(lambda: len(seen) == 2)
        call.cancel()
        await asyncio.gather(following, return_exceptions=True)
    assert [(e.name, e.type) for e in seen] == [
        ("acme/1.2", event_pb2.EVENT_TYPE_CREATED), ("acme/1.2", event_pb2.EVENT_TYPE_DELETED),
    ]  # fmt: skip
    assert seen[0].plugin == made_plugin


async def test_a_folder_that_cannot_take_the_file_is_told(tmp_path) -> None:
    async with state_in_loop(tmp_path) as (clients, _):
        (tmp_path / "state" / "uploads").rmdir()
        with pytest.raises(Unavailable, match=r"cannot be stored in .*uploads while it arrives"), translated():
            await upload(clients.plugins, jar(100))
        (tmp_path / "state" / "uploads").mkdir()
        await upload(clients.plugins, jar(100))

"""Plugins of files in buckets: fetched from a real S3 server and from folders, once, also through kills."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import signal
import zipfile
from pathlib import Path
from typing import Any

import obstore
import pytest
import pytest_asyncio

from keelman.api.connect.v1 import operation_service_pb2, origin_pb2, plugin_service_pb2
from keelman.api.connect.v1 import plugin_import_service_pb2 as pb
from keelman.api.connect.v1.operation_pb2 import OPERATION_STATE_SUCCEEDED
from keelman.api.connect.v1.plugin_import_pb2 import PluginContent, PluginImport, PluginImportState, PluginSource
from keelman.model.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated
from keelman.runtime.processes.ports import free_ports
from keelman.state.database.failpoints import IMPORTS
from keelman.state.plugins import importing as import_plugin
from support.eventually import eventually
from support.servers.object_store import KEY, SECRET, ObjectStore
from support.state.service import Clients, StateProcess, state_in_loop
from support.state.uploads import download, jar

pytestmark = pytest.mark.component
CREATING, ACTIVE, FAILED = (
    PluginImportState.Value(f"PLUGIN_IMPORT_STATE_{state}") for state in ("CREATING", "ACTIVE", "FAILED")
)
JAR, ZIP = PluginContent.PLUGIN_CONTENT_JAR, PluginContent.PLUGIN_CONTENT_ZIP
OF_OTHER = origin_pb2.Origin(api="other", scope="1", key="weather")


@pytest_asyncio.fixture(scope="module")
async def store(s3_server: ObjectStore) -> ObjectStore:
    await s3_server.create("versions", versioned=True)
    return s3_server


def settings(store: ObjectStore) -> dict[str, Any]:
    return {"buckets": store.endpoint, "buckets_access_key_id": KEY, "buckets_secret_access_key": SECRET}


def archive(*entries: tuple[str, bytes]) -> bytes:
    bytes_io = io.BytesIO()
    with zipfile.ZipFile(bytes_io, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in entries:
            file.writestr(name, data)
    return bytes_io.getvalue()


async def create(clients: Clients, name: str, key: str, *, bucket: str = "plugins", **more: Any) -> PluginImport:
    source = PluginSource(bucket=bucket, key=key, version=more.pop("version", ""), content=more.pop("content", ZIP))
    request = pb.CreatePluginImportRequest(name=name, source=source, **more)
    with translated():
        return (await clients.imports.CreatePluginImport(request)).plugin_import


async def get(clients: Clients, name: str) -> PluginImport:
    with translated():
        return (await clients.imports.GetPluginImport(pb.GetPluginImportRequest(name=name))).plugin_import


async def ended(clients: Clients, name: str) -> PluginImport:
    async def look() -> PluginImport | None:
        plugin_import = await get(clients, name)
        return None if plugin_import.state == CREATING else plugin_import

    return await eventually(look, what=f"{name} has been fetched")


async def delete(clients: Clients, name: str) -> None:
    with translated():
        await clients.imports.DeletePluginImport(pb.DeletePluginImportRequest(name=name))


async def test_a_file_becomes_a_plugin_that_stays_what_it_was(store: ObjectStore, tmp_path: Path, url: str) -> None:
    data, bucket = jar(3 << 20, salt="s3"), store.bucket("plugins")
    await obstore.put_async(bucket, "team a/weather.jar", data)
    async with state_in_loop(tmp_path, database=url, key_file=tmp_path / "key", **settings(store)) as (clients, _):
        response = await create(clients, "weather", "team a/weather.jar", content=JAR, origin=OF_OTHER, request_id="r")
        assert (response.state, response.code, response.HasField("plugin")) == (CREATING, "", False)
        assert (
            await create(clients, "weather", "team a/weather.jar", content=JAR, origin=OF_OTHER, request_id="r")
            == response
        )
        outcome = await ended(clients, "weather")
        assert (outcome.state, outcome.code, outcome.message) == (ACTIVE, "", "")
        assert (outcome.size_bytes, outcome.md5) == (len(data), hashlib.md5(data).hexdigest())
        await obstore.delete_async(bucket, "team a/weather.jar")
        plugin, bytes_of_it = await download(clients.plugins, outcome.plugin.name, outcome.plugin.version)
        assert bytes_of_it == data
        assert [plugin_class.class_name for plugin_class in plugin.classes] == ["com.acme.WeatherSource"]
        assert outcome.plugin.sha256 == plugin.sha256
        operation = await clients.operations.GetOperation(
            operation_service_pb2.GetOperationRequest(name=outcome.operation)
        )
        assert [step.name for step in operation.operation.steps] == ["fetch"]

        for origin, named in ((OF_OTHER, "other"), (None, "weather")):
            with pytest.raises((FailedPrecondition, AlreadyExists)):
                await create(clients, named, "x", origin=origin)
        uploaded = plugin_service_pb2.DeletePluginRequest(name="weather", version="1")
        with pytest.raises(FailedPrecondition, match="of plugin import 'weather': delete this one"), translated():
            await clients.plugins.DeletePlugin(uploaded)
        await clients.create_external("default", "127.0.0.1:1")
        await clients.create_workers("w", count=1, plugins=[outcome.plugin])
        assert list((await get(clients, "weather")).users) == ["w"]
        with pytest.raises(FailedPrecondition, match="used by worker clusters w") as refused:
            await delete(clients, "weather")
        assert refused.value.reason == "IN_USE"
        await clients.delete_workers("w")
        await eventually(lambda: _is_unused(clients, "weather"))
        await delete(clients, "weather")
        with pytest.raises(NotFound, match="no plugin import is named 'weather'"):
            await get(clients, "weather")
        assert not (await clients.plugins.ListPlugins(plugin_service_pb2.ListPluginsRequest())).plugins
        assert (await create(clients, "weather", "x", origin=OF_OTHER)).uid != response.uid


async def _is_unused(clients: Clients, name: str) -> bool:
    return not (await get(clients, name)).users


async def test_a_version_of_an_object_is_that_version(store: ObjectStore, tmp_path: Path) -> None:
    bucket, old, new = store.bucket("versions"), jar(salt="old"), jar(salt="new")
    first = (await obstore.put_async(bucket, "p.jar", old))["version"]
    await obstore.put_async(bucket, "p.jar", new)
    async with state_in_loop(tmp_path, **settings(store)) as (clients, _):
        await create(clients, "old", "p.jar", bucket="versions", version=first, content=JAR)
        await create(clients, "new", "p.jar", bucket="versions", content=JAR)
        await create(
            clients, "none", "p.jar", bucket="versions", version="6714a8f652045ce9825818c363614b6d", content=JAR
        )
        assert (await ended(clients, "old")).md5 == hashlib.md5(old).hexdigest()
        assert (await ended(clients, "new")).md5 == hashlib.md5(new).hexdigest()
        none = await ended(clients, "none")
        assert (none.state, none.code) == (FAILED, "PluginError.ObjectNotFound")


async def test_why_there_is_no_plugin_is_said(store: ObjectStore, tmp_path: Path) -> None:
    bomb = archive(("big.bin", bytes(300 << 20)))
    whole = archive(("a.jar", jar()), ("readme.txt", b"x"))
    files = {
        "text.zip": b"no archive at all", "cut.zip": whole[: len(whole) // 2], "empty.zip": b"",
        "plain.zip": archive(("readme.txt", b"x")),
        "traversal.zip": archive(("../../etc/cron.d/x", b"x"), ("a.jar", jar())),
        "bomb.zip": bomb, "large.jar": jar(3 << 20), "whole": whole,
    }  # fmt: skip
    for key, data in files.items():
        await obstore.put_async(store.bucket("plugins"), key, data)
    expected = {
        "text.zip": "NotZip", "cut.zip": "NotZip", "empty.zip": "NotZip", "plain.zip": "NoConnectorClass",
        "traversal.zip": "UnsafeArchive", "bomb.zip": "UnsafeArchive", "large.jar": "TooLarge",
        "nothing.zip": "ObjectNotFound", "a//b": "ObjectNotFound",
    }  # fmt: skip
    async with state_in_loop(tmp_path, plugin_max_bytes=1 << 20, **settings(store)) as (clients, _):
        for number, key in enumerate(expected):
            await create(clients, f"p{number}", key)
        await create(clients, "no-bucket", "whole", bucket="no-such-bucket")
        await create(clients, "good", "whole")
        for number, (key, cause) in enumerate(expected.items()):
            result = await ended(clients, f"p{number}")
            assert (key, result.state, result.code) == (key, FAILED, f"PluginError.{cause}"), result.message
            assert result.message
            assert (result.HasField("plugin"), result.md5, result.size_bytes) == (False, "", 0)
        assert (await ended(clients, "no-bucket")).code == "PluginError.ObjectNotFound"
        assert (await ended(clients, "good")).state == ACTIVE
        listed = await clients.imports.ListPluginImports(pb.ListPluginImportsRequest(page_size=3))
        assert [plugin_import.name for plugin_import in listed.plugin_imports] == ["good", "no-bucket", "p0"]
        await delete(clients, "p0")
        await create(clients, "p0", "whole")
        assert (await ended(clients, "p0")).state == ACTIVE
    wrong = settings(store) | {"buckets_secret_access_key": "other"}
    async with state_in_loop(tmp_path, **wrong) as (clients, _):
        await create(clients, "denied", "whole")
        result = await ended(clients, "denied")
        assert (result.code, KEY in result.message) == ("PluginError.AccessDenied", True)


async def test_a_server_that_is_away_is_asked_again_and_then_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_plugin, "FETCH_SECONDS", 3.0)
    endpoint = f"http://127.0.0.1:{free_ports(1)[0]}"
    async with state_in_loop(tmp_path, buckets=endpoint) as (clients, _):
        await create(clients, "away", "x.jar")
        plugin_import = await ended(clients, "away")
        assert (plugin_import.state, plugin_import.code) == (FAILED, "PluginError.StoreUnreachable")
        assert endpoint in plugin_import.message

        created = await create(clients, "other", "x.jar", origin=OF_OTHER)
        await delete(clients, "other")
        request = operation_service_pb2.GetOperationRequest(name=created.operation)
        await eventually(lambda: _has_ended(clients, request))
        await create(clients, "other", "x.jar", origin=OF_OTHER)


async def _has_ended(clients: Clients, request: operation_service_pb2.GetOperationRequest) -> bool:
    return (await clients.operations.GetOperation(request)).operation.HasField("end_time")


async def test_of_two_with_one_name_one_is_made(tmp_path: Path) -> None:
    async with state_in_loop(tmp_path) as (clients, _):
        creates = (create(clients, f"n{n}", "x", origin=OF_OTHER) for n in range(8))
        answers = await asyncio.gather(*creates, return_exceptions=True)
        assert sum(isinstance(answer, PluginImport) for answer in answers) == 1
        assert {answer.reason for answer in answers if isinstance(answer, FailedPrecondition)} == {"ORIGIN_IN_USE"}


async def test_a_folder_is_as_good_and_gives_nothing_that_is_outside_of_it(tmp_path: Path) -> None:
    bucket = tmp_path / "plugin-store" / "plugins"
    (bucket / "a").mkdir(parents=True)
    (bucket / "a" / "p.jar").write_bytes(jar(salt="new"))
    (bucket / "a" / "p.jar@v1").write_bytes(jar(salt="old"))
    (tmp_path / "plugin-store" / "secret.jar").write_bytes(jar(salt="secret"))
    (bucket / "link.jar").symlink_to(tmp_path / "plugin-store" / "secret.jar")
    os.mkfifo(bucket / "pipe.jar")
    async with state_in_loop(tmp_path) as (clients, _):
        await create(clients, "new", "a/p.jar")
        await create(clients, "old", "a/p.jar", version="v1")
        assert (await ended(clients, "new")).md5 == hashlib.md5(jar(salt="new")).hexdigest()
        assert (await ended(clients, "old")).md5 == hashlib.md5(jar(salt="old")).hexdigest()
        for number, key in enumerate(
            ("../secret.jar", "a/../../secret.jar", "/etc/passwd", "a", "pipe.jar", "none", "a/p.jar/x")
        ):
            await create(clients, f"no{number}", key)
            plugin_import = await ended(clients, f"no{number}")
            assert (key, plugin_import.code) == (key, "PluginError.ObjectNotFound"), plugin_import.message
        await create(clients, "link", "link.jar")
        assert (await ended(clients, "link")).code == "PluginError.AccessDenied"
        for source, named in (
            ({"bucket": "B"}, "bucket"), ({"bucket": ".."}, "bucket"), ({"key": ""}, "key"),
            ({"key": "k" * 1025}, "key"),
            ({"version": "a/b"}, "version"),
        ):  # fmt: skip
            with pytest.raises(InvalidArgument, match=rf"source\.{named}: "):
                await create(clients, "x", **{"key": "k", "bucket": "plugins"} | source)


async def test_one_that_is_cut_off_anywhere_is_fetched_once(tmp_path: Path) -> None:
    """The kills happen at each point in turn: the service that starts after one kill is the target of the next."""
    (bucket := tmp_path / "plugin-store" / "plugins").mkdir(parents=True)
    file, state, points = tmp_path / "die", StateProcess(tmp_path), ["step-begun", *IMPORTS, "step-tried"]

    async def start(point: str) -> None:
        file.unlink(missing_ok=True)
        state.environment = {"KEELMAN_FAILPOINT": point, "KEELMAN_FAILPOINT_FILE": str(file)}
        await state.start()

    await start(points[0])
    try:
        for point, following in zip(points, [*points[1:], "none"], strict=True):
            print(f"killed at {point}")  # shown where it fails
            (bucket / f"{point}.jar").write_bytes(jar(salt=point))
            file.write_text("0")
            async with channel(f"127.0.0.1:{state.port}") as connection:
                await create(Clients(connection), point, f"{point}.jar")
                async with asyncio.timeout(300):
                    assert await state.child.wait() == -signal.SIGKILL
            await start(following)
            async with channel(f"127.0.0.1:{state.port}") as connection:
                await fetched_once(Clients(connection), point)
    finally:
        await state.end()


async def fetched_once(clients: Clients, name: str) -> None:
    plugin_import = await ended(clients, name)
    assert plugin_import.state == ACTIVE
    request = operation_service_pb2.GetOperationRequest(name=plugin_import.operation)
    await eventually(lambda: _has_ended(clients, request))
    assert (await clients.operations.GetOperation(request)).operation.state == OPERATION_STATE_SUCCEEDED
    (plugin,) = (await clients.plugins.ListPlugins(plugin_service_pb2.ListPluginsRequest(name=name))).plugins
    assert (await download(clients.plugins, name))[1] == jar(salt=name)
    assert plugin.uid

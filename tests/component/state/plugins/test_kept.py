"""Plugins that others keep under names of their own, with JSON beside them, and files that are no plugins."""

import asyncio
import hashlib

import pytest

from keelman.api.connect.v1 import plugin_pb2
from keelman.api.connect.v1 import plugin_service_pb2 as pb
from keelman.model.errors import AlreadyExists, FailedPrecondition, InvalidArgument
from keelman.rpc.errors import translated
from support.plugins import jar_files
from support.state.service import Clients
from support.state.uploads import download, jar, upload

pytestmark = pytest.mark.component


async def test_any_file_is_kept_with_what_is_wrong_with_it(clients: Clients) -> None:
    evil = jar_files.jar_bytes((), {"../../etc/cron.d/evil": "x"})
    broken = jar(1000)[:-30]
    for data, file_name, version, rule in (
        (b"hello", "notes.txt", hashlib.sha256(b"hello").hexdigest()[:12], "kind"),
        (evil, "evil-1.0.jar", "1.0", "parent-path"),
        (broken, "broken.jar", hashlib.sha256(broken).hexdigest()[:12], "broken"),
    ):
        started_upload = await upload(clients.plugins, data, file_name=file_name, any_file=True)
        assert (started_upload.kind, started_upload.file_name, started_upload.version) == (
            plugin_pb2.PLUGIN_KIND_OTHER,
            file_name,
            version,
        )
        assert list(started_upload.classes) == []
        assert f"({rule})" in started_upload.problems[0]
        assert await download(clients.plugins, started_upload.name) == (started_upload, data)
    whole = await upload(clients.plugins, jar(10), any_file=True)
    assert (whole.kind, len(whole.classes)) == (plugin_pb2.PLUGIN_KIND_JAR, 1)
    with pytest.raises(InvalidArgument, match="the file is empty"), translated():
        await upload(clients.plugins, b"", name="empty")
    empty = await upload(clients.plugins, b"", name="empty", any_file=True)
    assert await download(clients.plugins, "empty") == (empty, b"")

    await clients.create_external("default", "127.0.0.1:1")
    await clients.create_workers("demo", count=1, plugins=[plugin_pb2.PluginRef(name="notes.txt")])
    assert list((await clients.plugins.GetPlugin(pb.GetPluginRequest(name="notes.txt"))).plugin.worker_clusters) == [
        "demo"
    ]


async def test_an_origin_is_one_plugins_alone(clients: Clients) -> None:
    ours, data = {"api": "ohara", "scope": "default", "key": "acme.jar"}, jar(10)
    started_upload = await upload(clients.plugins, data, origin=ours, request_id="one")
    assert (started_upload.origin.api, started_upload.origin.scope, started_upload.origin.key) == tuple(ours.values())
    assert await upload(clients.plugins, data, origin=ours, request_id="one") == started_upload
    assert await upload(clients.plugins, data) == started_upload
    for more in ({}, {"version": "2"}, {"name": "b", "request_id": "two"}):
        with (
            pytest.raises(FailedPrecondition, match=r"'acme.jar' in scope 'default' of 'ohara'") as caught,
            translated(),
        ):
            await upload(clients.plugins, data, origin=ours, **more)
        assert caught.value.reason == "ORIGIN_IN_USE"
        assert caught.value.metadata == {"kind": "plugin", "name": "acme/1.2", **ours}
    with pytest.raises(AlreadyExists, match="which others keep"), translated():
        await upload(clients.plugins, data, origin=ours | {"scope": "blue"})
    with pytest.raises(InvalidArgument, match=r"header\.origin"), translated():
        await upload(clients.plugins, data, version="3", origin={"api": "ohara"})

    uploads = [upload(clients.plugins, data, name=f"p{n}", origin=ours | {"key": "x.jar"}) for n in range(4)]
    answers = await asyncio.gather(*uploads, return_exceptions=True)
    assert sum(isinstance(answer, plugin_pb2.Plugin) for answer in answers) == 1
    await clients.plugins.DeletePlugin(pb.DeletePluginRequest(name="acme", version="1.2"))
    assert (await upload(clients.plugins, data, origin=ours)).uid != started_upload.uid


async def test_extra_is_kept_changed_and_hidden_where_it_is_secret(clients: Clients) -> None:
    extra = {"tags": {"a": [1, {"b": True}], "token": "shown"}, "more": {"token": "canary-extra"}}
    started_upload = await upload(clients.plugins, jar(10), extra=extra, labels={"team": "blue"})
    assert started_upload.extra["tags"]["a"][1]["b"]
    assert (started_upload.extra["tags"]["token"], started_upload.extra["more"]["token"]) == ("shown", "[hidden]")
    request = pb.UpdatePluginRequest(name="acme", version="1.2", extra=started_upload.extra)
    request.update_mask.paths.append("extra")
    assert (await clients.plugins.UpdatePlugin(request)).plugin == started_upload
    request.extra["tags"]["a"] = []
    changed = (await clients.plugins.UpdatePlugin(request)).plugin
    assert (list(changed.extra["tags"]["a"]), dict(changed.labels)) == ([], {"team": "blue"})
    assert changed.etag != started_upload.etag
    request.extra.update({"user.password": "[hidden]"})
    with pytest.raises(InvalidArgument, match=r"extra\.user\.password"), translated():
        await clients.plugins.UpdatePlugin(request)
    for wrong in ({"text": "x" * (256 << 10)}, {"a": float("inf")}):
        with pytest.raises(InvalidArgument, match="extra"), translated():
            await upload(clients.plugins, jar(20), version="2", extra=wrong)
    request.ClearField("extra")
    assert not (await clients.plugins.UpdatePlugin(request)).plugin.HasField("extra")

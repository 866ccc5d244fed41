"""`/v0/files`: the files that worker clusters load, and any others. Bytes go through the disk to the state service and
are streamed back from there."""

from __future__ import annotations

import mimetypes
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from urllib.parse import quote

from google.protobuf.field_mask_pb2 import FieldMask
from starlette.responses import Response, StreamingResponse

from keelman.api.connect.v1 import plugin_service_pb2 as pb
from keelman.api.connect.v1.plugin_pb2 import Plugin, PluginClass
from keelman.gateway.ohara.connectors.class_settings import generic_class
from keelman.gateway.ohara.connectors.kept_classes import KeptClasses
from keelman.gateway.ohara.definitions.config import is_ohara_class
from keelman.gateway.ohara.files.form import TAGS, Upload, uploaded
from keelman.gateway.ohara.files.keys import VERSION, file_key, files_by_key
from keelman.gateway.ohara.kinds import Kinds
from keelman.gateway.ohara.routes import Endpoint
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.state.lookups import worker_clusters
from keelman.gateway.ohara.state.structs import struct_of, value_of
from keelman.gateway.ohara.wire.call import OharaCall, ok
from keelman.gateway.ohara.wire.errors import bad_value, illegal_argument, unsupported
from keelman.gateway.ohara.wire.json_types import type_name
from keelman.gateway.ohara.wire.keys import API, ObjectKey, key_of, own_name, shown_key
from keelman.gateway.ohara.wire.resource import Json, OharaResource
from keelman.gateway.ohara.wire.values import Settings
from keelman.gateway.ohara.wire.wording import not_found
from keelman.model.errors import AlreadyExists, FailedPrecondition, NotFound
from keelman.rpc.errors import translated, translated_stream

CHUNK = 256 * 1024
UPLOAD_SECONDS = 600.0
SHOWN = ("source", "sink", "partitioner", "stream")
"""The types of classes to show."""
GOES_BACK = ", which goes back to it should its workers fail with the files that it names now: it is free a while later"
UNKNOWN_TYPE = "application/octet-stream"
ClassInfos = Callable[[str, str], Json | None]
"""Finds a worker cluster's description of a class in a version, if any has reported it."""


class OharaFiles(OharaResource):
    """Files, each a plugin of the state service."""

    def __init__(self, control: OharaControl, kinds: Kinds, *, address: str, stored_classes: KeptClasses) -> None:
        """`address` is this API's address for users, host:port."""
        self._control = control
        self._kinds = kinds
        self._base = f"http://{address}/v0/downloadFile"
        self._kept = stored_classes

    @property
    def endpoints(self) -> list[Endpoint]:
        """The calls that are not on an object."""
        return [
            Endpoint("POST", "files", self.upload),
            Endpoint("GET", "downloadFile/{group}/{name}", self.download),
            Endpoint("GET", "downloadFiles/{group}/{name}", self.download),
            Endpoint("POST", "inspect/files", self.inspect),
            Endpoint("POST", "inspect/file", self.inspect),
        ]

    def key(self, group: str, name: str) -> ObjectKey:
        """Returns a key of any texts."""
        return ObjectKey(group, name)

    async def list(self) -> Sequence[Json]:
        """Returns all files."""
        await self._kept.look()
        return [self._json(key, plugin) for key, plugin in sorted((await files_by_key(self._control)).items())]

    async def get(self, key: ObjectKey) -> Json:
        """Returns one file. Raises no_such."""
        await self._kept.look()
        return self._json(key, await self._plugin(key))

    async def create(self, settings: Settings) -> Json:
        """Refuses the call: files are uploaded as forms."""
        raise unsupported("v0/files")

    async def put(self, key: ObjectKey, settings: Settings) -> Json:
        """Replaces the tags of a file."""
        await self._kept.look()
        plugin = await self._find(key)
        if plugin is None:
            raise illegal_argument("Updating an nonexistent file is not allowed")
        if TAGS not in settings:
            return self._json(key, plugin)
        if not isinstance(settings[TAGS], dict):
            raise bad_value(f'the {TAGS} must be JsObject type, but actual type is "{type_name(settings[TAGS])}"')
        request = pb.UpdatePluginRequest(
            name=plugin.name, version=plugin.version, update_mask=FieldMask(paths=["extra"]),
            extra=struct_of({**value_of(plugin.extra), TAGS: settings[TAGS]}),
        )  # fmt: skip
        return self._json(key, (await self._control.ask(request)).plugin)

    async def delete(self, key: ObjectKey) -> None:
        """Deletes a file. Raises OharaError while a worker cluster or a stream names it."""
        plugin = await self._find(key)
        if plugin is None:
            return
        await self._check_users(key, plugin)
        request = pb.DeletePluginRequest(name=plugin.name, version=plugin.version)
        try:
            await self._control.ask(request)
        except NotFound:
            return
        except FailedPrecondition:  # named since the check
            await self._check_users(key, await self._plugin(key))
            raise

    async def upload(self, call: OharaCall) -> Response:
        """Stores the file of a form."""
        await self._kept.look()
        async with uploaded(call) as upload:
            key = upload.key
            if await self._find(key) is not None:
                raise illegal_argument(f"file:{key} exists!!!")
            header = pb.UploadHeader(
                name=own_name(key), version=VERSION, file_name=key.name, size_bytes=upload.size, any_file=True,
                origin=key.origin, extra=struct_of({TAGS: upload.tags}),
            )  # fmt: skip
            try:
                plugin = await self._send(header, upload)
            except (AlreadyExists, FailedPrecondition) as error:
                if isinstance(error, FailedPrecondition) and await self._find(key) is None:
                    raise
                raise illegal_argument(f"file:{key} exists!!!") from None
        return ok(self._json(key, plugin))

    async def inspect(self, call: OharaCall) -> Response:
        """Returns the classes in the file of a form, which is not stored."""
        await self._kept.look()
        async with uploaded(call) as upload:
            key = upload.key
            header = pb.UploadHeader(
                name=own_name(key), version=VERSION, file_name=key.name, size_bytes=upload.size, any_file=True,
                inspect_only=True,
            )  # fmt: skip
            plugin = await self._send(header, upload)
        shown = file_json(key, plugin.size_bytes, plugin.classes, self._kept.find)
        return ok({**shown, "lastModified": time.time_ns() // 1_000_000, TAGS: upload.tags})

    async def download(self, call: OharaCall) -> Response:
        """Returns the bytes of a file."""
        key = ObjectKey(call.variables["group"], call.variables["name"])
        plugin = await self._plugin(key)
        request = pb.DownloadPluginRequest(name=plugin.name, version=plugin.version)
        download = self._control.plugins.DownloadPlugin(request, timeout=UPLOAD_SECONDS)
        pieces = translated_stream(download)
        try:
            await anext(pieces)  # the plugin comes first; an error comes before the answer's head
        except BaseException:
            download.cancel()
            raise
        media = mimetypes.guess_type(key.name)[0] or UNKNOWN_TYPE
        return StreamingResponse(
            _bytes(download, pieces), media_type=media, headers={"content-length": str(plugin.size_bytes)}
        )

    async def _send(self, header: pb.UploadHeader, upload: Upload) -> Plugin:
        with translated():
            answer = await self._control.plugins.UploadPlugin(_pieces(header, upload), timeout=UPLOAD_SECONDS)
        plugin: Plugin = answer.plugin
        return plugin

    async def _plugin(self, key: ObjectKey) -> Plugin:
        plugin = await self._find(key)
        if plugin is None:
            raise not_found("file", key)
        return plugin

    async def _find(self, key: ObjectKey) -> Plugin | None:
        request = pb.GetPluginRequest(name=own_name(key), version=VERSION)
        try:
            plugin: Plugin = (await self._control.ask(request)).plugin
        except NotFound:
            return (await files_by_key(self._control)).get(key)
        return plugin if file_key(plugin) == key else None

    async def _check_users(self, key: ObjectKey, plugin: Plugin) -> None:
        clusters = await worker_clusters(self._control) if plugin.worker_clusters else {}
        for name in plugin.worker_clusters:
            user = shown_key(name, clusters[name].spec.origin) if name in clusters else None
            spec = clusters[name].spec if name in clusters else None
            named = spec is None or any(ref.name == plugin.name for ref in (*spec.plugins, *spec.libraries))
            raise illegal_argument(f"file:{key} is used by worker cluster:{user or name}{'' if named else GOES_BACK}")
        for stream in await self._kinds.all("stream"):
            if "jarKey" in stream and key_of(stream["jarKey"]) == key:
                raise illegal_argument(f"file:{key} is used by stream cluster:{key_of(stream)}")

    def _json(self, key: ObjectKey, plugin: Plugin) -> Json:
        url = "/".join((self._base, quote(key.group, safe=""), quote(key.name, safe="")))
        return file_json(key, plugin.size_bytes, plugin.classes, self._kept.find) | {
            "url": url,
            "lastModified": plugin.update_time.ToMilliseconds(),
            TAGS: value_of(plugin.extra).get(TAGS, {})
            if plugin.origin.api == API
            else {k: v for k, v in plugin.labels.items() if v},
        }


def file_json(key: ObjectKey, size: int, classes: Sequence[PluginClass], reported: ClassInfos) -> Json:
    """Returns the JSON of any file, stored or not."""
    infos: list[Any] = [_class_info(plugin_class, reported) for plugin_class in classes if plugin_class.type in SHOWN]
    return {**key.json, "size": size, "classInfos": infos}


def _class_info(plugin_class: PluginClass, reported: ClassInfos) -> Json:
    info = reported(plugin_class.class_name, plugin_class.version)
    if info is not None:
        return info
    return generic_class(
        plugin_class.type, plugin_class.class_name, plugin_class.version, ohara=is_ohara_class(plugin_class.class_name)
    )


async def _pieces(header: pb.UploadHeader, upload: Upload) -> AsyncIterator[pb.UploadPluginRequest]:
    yield pb.UploadPluginRequest(header=header)
    while chunk := await upload.file.read(CHUNK):
        yield pb.UploadPluginRequest(chunk=chunk)


async def _bytes(call: Any, pieces: AsyncIterator[Any]) -> AsyncIterator[bytes]:
    try:
        async for piece in pieces:
            yield piece.chunk
    finally:
        call.cancel()

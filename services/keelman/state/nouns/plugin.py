"""Plugins: files that workers load, each with a name and a version."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterable
from typing import Any

from keelman.api.connect.v1 import plugin_pb2
from keelman.api.connect.v1 import plugin_service_pb2 as pb
from keelman.api.connect.v1 import plugin_service_pb2_grpc as grpc
from keelman.model.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from keelman.model.plugins.plugin import Plugin, checked_version
from keelman.model.rules.names import MAX_NAMED
from keelman.rpc.mapping import message_of
from keelman.rpc.masks import masked
from keelman.rpc.pages import key_of, page, page_limit, token_for
from keelman.rpc.server import Context
from keelman.state.database.failpoints import hit
from keelman.state.nouns.parts import NounParts
from keelman.state.nouns.worker_plugins import worker_plugin_key, worker_plugins
from keelman.state.plugins.files import Quotas, checked_piece
from keelman.state.plugins.inspecting import inspect
from keelman.state.plugins.sets import compared, newest_first
from keelman.state.plugins.uploads import check_texts, checked_header, extra_of, made_of, origin_of
from keelman.state.resources.checks import check_etag
from keelman.state.resources.hidden import kept_extra, shown_extra
from keelman.state.resources.noun import Noun
from keelman.state.resources.origins import check_origin
from keelman.state.resources.serving import NounApi, has_labels, write_once, writing
from keelman.state.resources.snapshot import PLUGIN, Snapshot
from keelman.state.resources.transaction import Transaction


def plugin_message(plugin: Plugin, worker_clusters: Iterable[str] = ()) -> plugin_pb2.Plugin:
    """Returns a plugin as users and events see it; answers name the worker clusters that use it."""
    extra = shown_extra(plugin.extra or {}) or None
    return message_of(
        plugin_pb2.Plugin, plugin, name=plugin.plugin, version=plugin.version, extra=extra,
        worker_clusters=worker_clusters,
    )  # fmt: skip


NOUN = Noun(Plugin, plugin_message, {"content": ("classes", "problems"), "spec": ("origin", "extra")})


def found(snapshot: Snapshot, name: str, version: str) -> Plugin:
    """Returns the plugin of a name and version, the newest if the version is empty. Raises NotFound."""
    mine = newest_first(plugin for plugin in snapshot.plugins.values() if plugin.plugin == name)
    for plugin in mine:
        if version in ("", plugin.version):
            return plugin
    versions = [plugin.version for plugin in mine] or sorted({plugin.plugin for plugin in snapshot.plugins.values()})
    what = f"plugin {name} has no version {version!r}" if mine else f"no plugin is named {name!r}"
    more = f" and {len(versions) - MAX_NAMED} more" if len(versions) > MAX_NAMED else ""
    there = f"those there are: {', '.join(versions[:MAX_NAMED])}{more}" if versions else "none exists yet"
    raise NotFound(f"{what}: {there}", metadata={"plugin": name, "version": version})


def same(snapshot: Snapshot, new_plugin: Plugin) -> Plugin | None:
    """Returns the plugin of the same name, version and file, if there is one. Raises AlreadyExists for another file."""
    present = snapshot.plugins.get(new_plugin.name)
    if present is None or present.sha256 == new_plugin.sha256:
        return present
    raise AlreadyExists(
        f"plugin {new_plugin.plugin} has a version {new_plugin.version} already, which is another file (sha256 "
        f"{present.sha256}): give this one another version",
        metadata={"plugin": new_plugin.plugin, "version": new_plugin.version, "sha256": present.sha256},
    )


def create(tx: Transaction, new_plugin: Plugin, quotas: Quotas) -> Plugin:
    """Stores the plugin and returns it. A stored plugin of the same name, version and file is returned instead, unless
    the new one has an origin of its own.

    Raises AlreadyExists for another file or origin, FailedPrecondition for an origin that another has, Exhausted beyond
    the quota.
    """
    check_origin(PLUGIN, "", new_plugin.origin, tx.snapshot, field="header.origin")
    present = same(tx.snapshot, new_plugin)
    if present is not None:
        if new_plugin.origin is None:
            return present
        raise AlreadyExists(
            f"plugin {new_plugin.plugin} has a version {new_plugin.version} already, which others keep: give "
            "this one another",
            metadata={"plugin": new_plugin.plugin, "version": new_plugin.version, "sha256": present.sha256},
        )
    quotas.check_total(sum(plugin.size_bytes for plugin in tx.snapshot.plugins.values()), new_plugin.size_bytes)
    return tx.put(dataclasses.replace(new_plugin, create_time=tx.now))


def update(tx: Transaction, request: pb.UpdatePluginRequest) -> Plugin:
    """Changes the description, labels and extra of a plugin, as far as the request's mask names them."""
    plugin = found(tx.snapshot, request.name, checked_version("version", request.version))
    check_etag(plugin.name, request.etag, plugin.etag)
    for path in request.update_mask.paths:
        if path not in ("description", "labels", "extra"):
            raise InvalidArgument.of("update_mask", path, "description, labels, extra")
    present = pb.UpdatePluginRequest(description=plugin.description, labels=dict(plugin.labels))
    if plugin.extra is not None:
        present.extra.update(shown_extra(plugin.extra))
    masked_request = masked(present, request, request.update_mask)
    check_texts(masked_request.description, masked_request.labels)
    new_extra = extra_of(masked_request)
    extra = None if new_extra is None else kept_extra("extra", new_extra, plugin.extra)
    changed = dataclasses.replace(
        plugin, description=masked_request.description, labels=dict(masked_request.labels), extra=extra
    )
    return plugin if changed == plugin else tx.put(changed)


def delete(tx: Transaction, request: pb.DeletePluginRequest) -> Plugin:
    """Deletes a plugin and returns it. Raises FailedPrecondition while worker clusters use it."""
    plugin = found(tx.snapshot, request.name, checked_version("version", request.version))
    check_etag(plugin.name, request.etag, plugin.etag)
    if users := ", ".join(tx.snapshot.users_of_plugin(plugin.name)):
        raise FailedPrecondition(
            f"plugin {plugin.name} is used by worker clusters {users}: have them name another version, or none, first",
            reason="IN_USE",
            metadata={"worker_clusters": users},
        )
    if imported := import_of(tx.snapshot, plugin):
        raise FailedPrecondition(
            f"plugin {plugin.name} is that of plugin import {imported!r}: delete this one",
            reason="IMPORTED",
            metadata={"plugin_import": imported},
        )
    tx.drop(PLUGIN, plugin.name)
    return plugin


def import_of(snapshot: Snapshot, plugin: Plugin) -> str:
    """Returns the name of the plugin import that made a plugin; empty for an uploaded one."""
    plugin_import = snapshot.plugin_imports.get(plugin.plugin)
    return "" if plugin_import is None or plugin_import.plugin_origin != plugin.origin else plugin_import.name


class PluginApi(NounApi[NounParts], grpc.PluginServiceServicer):
    """Plugins."""

    noun = PLUGIN

    async def GetPlugin(self, request: pb.GetPluginRequest, context: Context) -> pb.GetPluginResponse:
        """Returns one plugin."""
        return pb.GetPluginResponse(plugin=self._shown(found(self._snapshot, request.name, request.version)))

    async def ListPlugins(self, request: pb.ListPluginsRequest, context: Context) -> pb.ListPluginsResponse:
        """Returns a page of plugins."""
        limit, after = page_limit(request.page_size), key_of(request.page_token)
        plugins = newest_first(
            plugin
            for plugin in self._snapshot.plugins.values()
            if request.name in ("", plugin.plugin) and has_labels(plugin.labels, request.labels.items())
        )
        rest = [plugin for plugin in plugins if not after or _is_after(plugin, after)]
        token = token_for(rest[limit - 1].name) if len(rest) > limit else ""
        return pb.ListPluginsResponse(plugins=[self._shown(plugin) for plugin in rest[:limit]], next_page_token=token)

    async def UploadPlugin(
        self, requests: AsyncIterator[pb.UploadPluginRequest], context: Context
    ) -> pb.UploadPluginResponse:
        """Receives a file, inspects it and stores it."""
        first = await anext(aiter(requests), None)
        if first is None or first.WhichOneof("piece") != "header":
            raise InvalidArgument.of("piece", "" if first is None else "chunk", "a header first, then chunks")
        header, files = checked_header(first.header), self.parts.plugins
        self._check_room(header)
        pieces = _chunks(requests)
        size = header.size_bytes if header.HasField("size_bytes") else None
        async with files.received(
            pieces, size_bytes=size, sha256=header.sha256, may_be_empty=header.any_file
        ) as received:
            inspected = await inspect(received.file, header.file_name, files.scratch, any_file=header.any_file)
            new_plugin = made_of(header, received, inspected, files.storage.kind)
            if header.inspect_only:
                return pb.UploadPluginResponse(plugin=plugin_message(new_plugin))
            same(self._snapshot, new_plugin)
            async with files.stored(new_plugin.uid, received.file):
                return await self._create(header, new_plugin)

    async def DownloadPlugin(
        self, request: pb.DownloadPluginRequest, context: Context
    ) -> AsyncIterator[pb.DownloadPluginResponse]:
        """Sends a file."""
        plugin = found(self._snapshot, request.name, request.version)
        if not 0 <= request.offset <= plugin.size_bytes:
            raise InvalidArgument.of("offset", request.offset, f"0 to {plugin.size_bytes}, the size of the file")
        yield pb.DownloadPluginResponse(plugin=self._shown(plugin))
        async for piece in self.parts.plugins.read(plugin, request.offset):
            yield pb.DownloadPluginResponse(chunk=piece)

    async def ListWorkerPlugins(
        self, request: pb.ListWorkerPluginsRequest, context: Context
    ) -> pb.ListWorkerPluginsResponse:
        """Returns a page of workers' reports on plugins. Raises NotFound for an unknown worker cluster."""
        plugins = worker_plugins(self.parts, request.worker_cluster)
        part, token = page(plugins, worker_plugin_key, request.page_size, request.page_token)
        return pb.ListWorkerPluginsResponse(worker_plugins=part, next_page_token=token)

    def _forget(self, gone: Plugin) -> None:
        """Forgets the file of a deleted plugin."""
        hit("plugin-forgotten")
        self.parts.plugins.forget(gone)

    @writing(after=_forget)
    def DeletePlugin(self, tx: Transaction, request: pb.DeletePluginRequest) -> Plugin:
        """Deletes a plugin."""
        return delete(tx, request)

    @writing()
    def UpdatePlugin(self, tx: Transaction, request: pb.UpdatePluginRequest) -> Plugin:
        """Changes the description, labels or extra of a plugin."""
        return update(tx, request)

    def _shown(self, plugin: Plugin, request: Any = None) -> plugin_pb2.Plugin:
        return plugin_message(plugin, self._snapshot.users_of_plugin(plugin.name))

    def _fields(self, plugin: Plugin, tx: Transaction) -> dict[str, Any]:
        return {PLUGIN: plugin_message(plugin, tx.snapshot.users_of_plugin(plugin.name))}

    def _check_room(self, header: pb.UploadHeader) -> None:
        """Refuses a file that cannot be kept before it comes, unless it may be stored already, or is sent again."""
        if not header.request_id:
            check_origin(PLUGIN, "", origin_of(header), self._snapshot, field="header.origin")
        self.parts.plugins.quotas.check_file(header.size_bytes)
        plugins = self._snapshot.plugins.values()
        if not any(plugin.size_bytes == header.size_bytes for plugin in plugins):
            self.parts.plugins.quotas.check_total(sum(plugin.size_bytes for plugin in plugins), header.size_bytes)

    async def _create(self, header: pb.UploadHeader, new_plugin: Plugin) -> pb.UploadPluginResponse:
        quotas = self.parts.plugins.quotas
        return await write_once(
            self.parts.store,
            header,
            lambda tx: self._fields(create(tx, new_plugin, quotas), tx),
            pb.UploadPluginResponse(),
        )


async def _chunks(requests: AsyncIterator[pb.UploadPluginRequest]) -> AsyncIterator[bytes]:
    async for request in requests:
        if request.WhichOneof("piece") != "chunk":
            raise InvalidArgument.of("piece", request.WhichOneof("piece") or "", "a chunk: the header comes once")
        yield checked_piece(request.chunk)


def _is_after(plugin: Plugin, key: str) -> bool:
    """Returns whether a plugin comes after a key's plugin, which may be gone, in the order of lists."""
    return compared(plugin, dataclasses.replace(plugin, name=key)) > 0


API = PluginApi

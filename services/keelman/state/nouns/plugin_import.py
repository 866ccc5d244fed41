"""Plugin imports: plugins whose files are copied from buckets, by an operation."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

from keelman.api.connect.v1 import plugin_import_pb2, plugin_pb2
from keelman.api.connect.v1 import plugin_import_service_pb2 as pb
from keelman.api.connect.v1 import plugin_import_service_pb2_grpc as grpc
from keelman.model.errors import AlreadyExists, FailedPrecondition
from keelman.model.operation import OperationKind, OperationTarget
from keelman.model.plugins.plugin import Plugin, plugin_key
from keelman.model.plugins.plugin_import import VERSION, PluginImport, PluginImportState, PluginSource, checked_source
from keelman.rpc.mapping import message_of, value_of
from keelman.state.nouns.parts import NounParts
from keelman.state.operations.begin import begin
from keelman.state.plugins.importing import STEPS
from keelman.state.resources.annotations import annotated, new_annotations, origin_page, reworded
from keelman.state.resources.checks import check_free, present
from keelman.state.resources.hidden import shown_spec
from keelman.state.resources.noun import Noun
from keelman.state.resources.serving import NounApi, get, list_page, writing
from keelman.state.resources.snapshot import PLUGIN, PLUGIN_IMPORT, Snapshot
from keelman.state.resources.transaction import Transaction

DELETED = "its plugin import was deleted"


def import_message(plugin_import: PluginImport) -> plugin_import_pb2.PluginImport:
    """Returns a plugin import as users and events see it."""
    message = message_of(
        plugin_import_pb2.PluginImport, plugin_import, **annotated(shown_spec(plugin_import).annotations)
    )
    if plugin_import.state is PluginImportState.ACTIVE:
        message.plugin.CopyFrom(
            plugin_pb2.PluginRef(name=plugin_import.name, version=VERSION, sha256=plugin_import.sha256)
        )
    return message


CONTENT = ("source", "code", "message", "operation", "size_bytes", "sha256", "md5")
NOUN = Noun(PluginImport, import_message, {"content": CONTENT, "spec": "annotations"})


def answered(plugin_import: PluginImport, snapshot: Snapshot) -> plugin_import_pb2.PluginImport:
    """Returns a plugin import with the users of its plugin."""
    message = import_message(plugin_import)
    message.users.extend(snapshot.users_of_plugin(plugin_key(plugin_import.name, VERSION)))
    return message


def create(tx: Transaction, request: pb.CreatePluginImportRequest) -> PluginImport:
    """Stores a new plugin import, whose file an operation fetches.

    Raises InvalidArgument for an illegal source, AlreadyExists and FailedPrecondition if another has the name or the
    origin.
    """
    check_free("plugin import", request.name, tx.snapshot.plugin_imports)
    if any(plugin.plugin == request.name for plugin in tx.snapshot.plugins.values()):
        raise AlreadyExists(f"name: a plugin named {request.name!r} exists already: choose another name")
    annotations = new_annotations(PLUGIN_IMPORT, request, tx.snapshot)
    source = checked_source("source", source_of(request.source))
    plugin_import = PluginImport(request.name, str(uuid.uuid4()), tx.now, tx.now, source, annotations)
    target = OperationTarget(PLUGIN_IMPORT, plugin_import.name, goal=str(PluginImportState.ACTIVE))
    operation = begin(tx, OperationKind.IMPORT_PLUGIN, target, STEPS, {}, origin=annotations.origin)
    return tx.put(dataclasses.replace(plugin_import, operation=operation.name))


def source_of(message: plugin_import_pb2.PluginSource) -> PluginSource:
    """Returns the source of a file."""
    return value_of(PluginSource, message)


def update(tx: Transaction, request: pb.UpdatePluginImportRequest) -> PluginImport:
    """Changes the annotations of the plugin import."""
    plugin_import = present(tx, PluginImport, request.name, request.etag)
    return tx.put(reworded(plugin_import, import_message(plugin_import), PLUGIN_IMPORT, request))


def delete(tx: Transaction, request: pb.DeletePluginImportRequest) -> tuple[PluginImport, Plugin | None]:
    """Deletes a plugin import with its plugin, and returns both. Raises FailedPrecondition if its plugin is used."""
    plugin_import = present(tx, PluginImport, request.name, request.etag)
    key = plugin_key(plugin_import.name, VERSION)
    if users := ", ".join(tx.snapshot.users_of_plugin(key)):
        raise FailedPrecondition(
            f"plugin {key} of plugin import {plugin_import.name!r} is used by worker clusters {users}: "
            "have them name another, or none, first",
            reason="IN_USE",
            metadata={"worker_clusters": users},
        )
    operation = tx.snapshot.operations.get(plugin_import.operation)
    if operation is not None and not operation.has_ended and not operation.cancel_reason:
        tx.put(dataclasses.replace(operation, cancel_reason=DELETED))
    plugin = tx.snapshot.plugins.get(key)
    if plugin is not None and plugin.origin == plugin_import.plugin_origin:
        tx.drop(PLUGIN, key)
    else:
        plugin = None
    tx.drop(PLUGIN_IMPORT, plugin_import.name)
    return plugin_import, plugin


class PluginImportApi(NounApi[NounParts], grpc.PluginImportServiceServicer):
    """Plugin imports."""

    noun = PLUGIN_IMPORT
    GetPluginImport, ListPluginImports = get, list_page

    @writing()
    def CreatePluginImport(self, tx: Transaction, request: pb.CreatePluginImportRequest) -> PluginImport:
        """Stores a plugin import, and begins to fetch its file."""
        return create(tx, request)

    @writing()
    def UpdatePluginImport(self, tx: Transaction, request: pb.UpdatePluginImportRequest) -> PluginImport:
        """Changes the annotations of a plugin import."""
        return update(tx, request)

    def _forget(self, gone: tuple[PluginImport, Plugin | None]) -> None:
        """Forgets the file of a deleted plugin import."""
        if gone[1] is not None:
            self.parts.plugins.forget(gone[1])

    @writing(after=_forget)
    def DeletePluginImport(
        self, tx: Transaction, request: pb.DeletePluginImportRequest
    ) -> tuple[PluginImport, Plugin | None]:
        """Deletes a plugin import with its plugin."""
        return delete(tx, request)

    def _page(self, request: pb.ListPluginImportsRequest) -> tuple[list[PluginImport], str]:
        return origin_page(self._snapshot, PLUGIN_IMPORT, request)

    def _shown(self, plugin_import: PluginImport, request: Any) -> plugin_import_pb2.PluginImport:
        return answered(plugin_import, self._snapshot)

    def _fields(self, result: PluginImport | tuple[PluginImport, Plugin | None], tx: Transaction) -> dict[str, Any]:
        plugin_import = result if isinstance(result, PluginImport) else result[0]
        return {PLUGIN_IMPORT: answered(plugin_import, tx.snapshot)}


API = PluginImportApi

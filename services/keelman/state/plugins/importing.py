"""Makes a plugin of a file in a bucket: fetches, inspects and stores it."""

from __future__ import annotations

import dataclasses

from keelman.model.annotations import Origin
from keelman.model.errors import AlreadyExists, FailedPrecondition, InvalidArgument
from keelman.model.operation import Operation, OperationState
from keelman.model.plugins.plugin import Plugin, PluginKind, plugin_key
from keelman.model.plugins.plugin_import import VERSION, PluginContent, PluginImport, PluginImportState, code_of
from keelman.state.database.failpoints import hit
from keelman.state.database.times import moment
from keelman.state.operations.kinds import OperationProcedure, StepWork
from keelman.state.operations.moves import Done, Outcome
from keelman.state.plugins.buckets import Buckets
from keelman.state.plugins.files import PluginFiles, Quotas, Received
from keelman.state.plugins.inspecting import inspect
from keelman.state.resources.snapshot import PLUGIN
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Transaction
from keelman.workers.plugins.archive import ArchiveRefused
from keelman.workers.plugins.inspection import Inspection

FETCH = "fetch"
STEPS = (FETCH,)
FETCH_SECONDS = 30.0
"""How long an unreachable server is tried again."""
NOT_ZIP = frozenset(("kind", "broken"))
"""Rules of refusals of files that are not archives; all other rules refuse unsafe archives."""
_ENDINGS = {PluginContent.JAR: ".jar", PluginContent.ZIP: ".zip", PluginContent.UNSPECIFIED: ""}
MAX_FILE_NAME = 200


def procedure(store: ResourceStore, files: PluginFiles, buckets: Buckets) -> OperationProcedure:
    """Returns the steps of plugin imports."""
    return OperationProcedure(
        {FETCH: StepWork(Fetching(store, files, buckets).fetch, seconds=FETCH_SECONDS)}, _never, _noted
    )


def _never(operation: Operation) -> bool:
    return False


def _noted(tx: Transaction, operation: Operation) -> None:
    """Stores in the plugin import the condition that it waits for, or the reason of its failure."""
    plugin_import = tx.snapshot.plugin_imports.get(operation.target.name)
    if (
        plugin_import is None
        or plugin_import.operation != operation.name
        or plugin_import.state is not PluginImportState.CREATING
    ):
        return
    changed = dataclasses.replace(plugin_import, message=operation.message)
    if operation.error is not None:
        changed = _failed(plugin_import, code_of(operation.error.reason), operation.error.message)
    elif operation.state is OperationState.CANCELED:
        changed = _failed(plugin_import, code_of(""), operation.message)
    if changed != plugin_import:
        tx.put(changed)


def _failed(plugin_import: PluginImport, code: str, message: str) -> PluginImport:
    return dataclasses.replace(plugin_import, state=PluginImportState.FAILED, code=code, message=message)


class Fetching:
    """The one step: after a crash all of it is done again, under the same uid."""

    def __init__(self, store: ResourceStore, files: PluginFiles, buckets: Buckets) -> None:
        self._store, self._files, self._buckets = store, files, buckets

    async def fetch(self, operation: Operation) -> Outcome:
        """Copies the file and makes the plugin, unless that was done already."""
        plugin_import = self._store.snapshot.plugin_imports.get(operation.target.name)
        if plugin_import is None or plugin_import.operation != operation.name:
            raise _gone(operation)
        if plugin_import.state is PluginImportState.ACTIVE:
            return Done("it was there already")
        files = self._files
        async with files.received(self._buckets.read(plugin_import.source)) as received:
            hit("import-fetched")
            plugin = await self._look_into(plugin_import, received)
            async with files.stored(plugin.uid, received.file):
                async with self._store.write() as tx:
                    _activate(tx, operation, plugin, files.quotas)
                hit("import-stored")
        return Done(f"{received.size_bytes} bytes")

    async def _look_into(self, plugin_import: PluginImport, received: Received) -> Plugin:
        file_name = file_name_of(plugin_import)
        try:
            inspected = await inspect(received.file, file_name, self._files.scratch)
        except ArchiveRefused as error:
            rule = error.metadata.get("rule", "")
            reason = "NOT_ZIP" if rule in NOT_ZIP else "UNSAFE_ARCHIVE"
            raise InvalidArgument(f"{plugin_import.source}: {error.message}", reason=reason) from None
        check_content(plugin_import, inspected)
        origin: Origin = plugin_import.plugin_origin
        assert inspected.kind is not None, "a file has a kind"
        return Plugin(
            plugin_key(plugin_import.name, VERSION), plugin_import.plugin_uid, moment(0), moment(0), file_name,
            inspected.kind, received.size_bytes, received.sha256, received.md5, inspected.classes, inspected.problems,
            storage=self._files.storage.kind, origin=origin,
        )  # fmt: skip


def file_name_of(plugin_import: PluginImport) -> str:
    """Returns the name of the import's file: the last part of its key; unless that is a jar or wheel, with the ending
    of the declared content."""
    name = "".join(c for c in plugin_import.source.key.rstrip("/").rpartition("/")[2] if c.isprintable() and c != "\\")
    name = name[-MAX_FILE_NAME:] or plugin_import.name
    ending = _ENDINGS[plugin_import.source.content]
    return name if name.lower().endswith((".jar", ".whl", ending)) else name + ending


def check_content(plugin_import: PluginImport, inspected: Inspection) -> None:
    """Raises InvalidArgument for a file that is not an archive of the declared kind, and for one without a class that a
    connector's configuration can name."""
    if inspected.kind is PluginKind.TAR_GZ:
        raise InvalidArgument(f"{plugin_import.source} is a tar archive, and no jar or zip archive", reason="NOT_ZIP")
    if not inspected.classes:
        reason = f": {'; '.join(inspected.problems[:3])}" if inspected.problems else ""
        raise InvalidArgument(
            f"{plugin_import.source} has no class of a connector, converter, transform or predicate{reason}",
            reason="NO_CONNECTOR_CLASS",
        )


def _activate(tx: Transaction, operation: Operation, plugin: Plugin, quotas: Quotas) -> None:
    """Stores the plugin and marks the import as done. Raises FailedPrecondition for an import that was deleted
    meanwhile."""
    plugin_import = tx.snapshot.plugin_imports.get(operation.target.name)
    if plugin_import is None or plugin_import.operation != operation.name:
        raise _gone(operation)
    if plugin.name in tx.snapshot.resources(PLUGIN):
        raise AlreadyExists(f"plugin {plugin.plugin} has a version {plugin.version} already", reason="PLUGIN_THERE")
    quotas.check_total(sum(plugin.size_bytes for plugin in tx.snapshot.plugins.values()), plugin.size_bytes)
    tx.put(dataclasses.replace(plugin, create_time=tx.now))
    tx.put(
        dataclasses.replace(
            plugin_import, state=PluginImportState.ACTIVE, message="", size_bytes=plugin.size_bytes,
            sha256=plugin.sha256, md5=plugin.md5,
        )
    )  # fmt: skip


def _gone(operation: Operation) -> FailedPrecondition:
    return FailedPrecondition(f"plugin import {operation.target.name!r} was deleted", reason="IMPORT_GONE")

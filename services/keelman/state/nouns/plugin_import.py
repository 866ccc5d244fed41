"""Plugin imports: plugins whose files are copied from buckets, by an operation."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.message import Message
from sqlmodel import Field, SQLModel

from keelman.api.connect.v1 import plugin_import_pb2, plugin_pb2
from keelman.api.connect.v1 import plugin_import_service_pb2 as pb
from keelman.api.connect.v1 import plugin_import_service_pb2_grpc as grpc
from keelman.connect.config.secret_keys import shown_json
from keelman.model.cluster import Annotations
from keelman.model.errors import AlreadyExists, FailedPrecondition
from keelman.model.operation import OperationKind, Target
from keelman.model.plugin import Plugin, plugin_key
from keelman.model.plugin_import import (
    VERSION,
    PluginContent,
    PluginImport,
    PluginImportState,
    PluginSource,
    checked_source,
)
from keelman.rpc.masks import masked
from keelman.rpc.server import Context, Service
from keelman.rpc.times import to_timestamp
from keelman.state.nouns.checks import check_etag, check_free, check_numbers
from keelman.state.nouns.clusters import annotate, annotations_of, check_mask, checked_annotations, origin_page
from keelman.state.nouns.noun import Noun, Parts, service
from keelman.state.nouns.operation import begin
from keelman.state.nouns.rows import big_column, json_column, micros, moment, plain, read
from keelman.state.nouns.serving import written
from keelman.state.nouns.taken import check_origin
from keelman.state.operations.import_steps import STEPS
from keelman.state.snapshot import PLUGIN, PLUGIN_IMPORT, Snapshot

if TYPE_CHECKING:
    from keelman.state.store import Transaction

DELETED = "its plugin import was deleted"
M = TypeVar("M", bound=Message)


class PluginImportRow(SQLModel, table=True):
    """A plugin import; `content` is JSON of where its file is and what came of it, `spec` of what is said of it."""

    __tablename__ = "plugin_import"
    name: str = Field(primary_key=True)
    uid: str
    create_time: int = Field(sa_column=big_column())
    update_time: int = Field(sa_column=big_column())
    revision: int = Field(sa_column=big_column())
    state: str
    content: dict[str, Any] = Field(sa_column=json_column())
    spec: dict[str, Any] = Field(sa_column=json_column())


@dataclass(frozen=True, slots=True)
class _Content:
    source: PluginSource
    code: str = ""
    message: str = ""
    operation: str = ""
    size_bytes: int = 0
    sha256: str = ""
    md5: str = ""


def to_row(made: PluginImport) -> dict[str, Any]:
    """The values of its row."""
    content = _Content(
        made.source, made.code, made.message, made.operation, made.size_bytes, made.sha256, made.md5
    )  # fmt: skip
    return {
        "name": made.name, "uid": made.uid, "create_time": micros(made.create_time),
        "update_time": micros(made.update_time), "revision": int(made.etag or 0), "state": str(made.state),
        "content": plain(content), "spec": plain(made.annotations),
    }  # fmt: skip


def from_row(row: PluginImportRow) -> PluginImport:
    """The plugin import of a row."""
    content = read(_Content, row.content)
    return PluginImport(
        name=row.name, uid=row.uid, create_time=moment(row.create_time), update_time=moment(row.update_time),
        etag=str(row.revision), state=PluginImportState(row.state), annotations=read(Annotations, row.spec),
        source=content.source, code=content.code, message=content.message, operation=content.operation,
        size_bytes=content.size_bytes, sha256=content.sha256, md5=content.md5,
    )  # fmt: skip


def import_message(made: PluginImport) -> plugin_import_pb2.PluginImport:
    """A plugin import as users and events see it."""
    source = made.source
    message = plugin_import_pb2.PluginImport(
        name=made.name,
        uid=made.uid,
        create_time=to_timestamp(made.create_time),
        update_time=to_timestamp(made.update_time),
        etag=made.etag,
        source=plugin_import_pb2.PluginSource(
            bucket=source.bucket,
            key=source.key,
            version=source.version,
            content=plugin_import_pb2.PluginContent.Value(f"PLUGIN_CONTENT_{source.content}"),
        ),
        state=plugin_import_pb2.PluginImportState.Value(f"PLUGIN_IMPORT_STATE_{made.state}"),
        code=made.code,
        message=made.message,
        size_bytes=made.size_bytes,
        md5=made.md5,
        operation=made.operation,
    )
    annotations = made.annotations
    if annotations.extra is not None:
        annotations = dataclasses.replace(annotations, extra=shown_json(annotations.extra))
    annotate(message, annotations)
    if made.state is PluginImportState.ACTIVE:
        message.plugin.CopyFrom(plugin_pb2.PluginRef(name=made.name, version=VERSION, sha256=made.sha256))
    return message


NOUN = Noun(PluginImport, PluginImportRow, to_row, from_row, import_message)


def answered(made: PluginImport, snapshot: Snapshot) -> plugin_import_pb2.PluginImport:
    """A plugin import with who uses its plugin."""
    message = import_message(made)
    message.users.extend(snapshot.users_of_plugin(plugin_key(made.name, VERSION)))
    return message


def create(tx: Transaction, request: pb.CreatePluginImportRequest) -> PluginImport:
    """A new plugin import, whose file an operation fetches.

    Raises InvalidArgument for a source that cannot be, AlreadyExists and FailedPrecondition for a name and an origin
    that another has.
    """
    check_free("plugin import", request.name, tx.snapshot.plugin_imports)
    if any(one.plugin == request.name for one in tx.snapshot.plugins.values()):
        raise AlreadyExists(f"name: a plugin named {request.name!r} exists already: choose another name")
    given = annotations_of(request)
    check_origin(PLUGIN_IMPORT, request.name, given.origin, tx.snapshot, field="origin")
    check_numbers("extra", request.extra)
    annotations = checked_annotations("", given, None)
    source = checked_source("source", source_of(request.source))
    made = PluginImport(request.name, str(uuid.uuid4()), tx.now, tx.now, source, annotations)
    target = Target(PLUGIN_IMPORT, made.name, goal=str(PluginImportState.ACTIVE))
    operation = begin(tx, OperationKind.IMPORT_PLUGIN, target, STEPS, {}, origin=annotations.origin)
    return tx.put(dataclasses.replace(made, operation=operation.name))


def source_of(message: plugin_import_pb2.PluginSource) -> PluginSource:
    """Where a file is."""
    content = plugin_import_pb2.PluginContent.Name(message.content).removeprefix("PLUGIN_CONTENT_")
    return PluginSource(message.bucket, message.key, message.version, PluginContent(content))


def update(tx: Transaction, request: pb.UpdatePluginImportRequest) -> PluginImport:
    """The plugin import with other words about it."""
    found = _found(tx, request.name, request.etag)
    check_mask(request.update_mask)
    check_numbers("plugin_import.extra", request.plugin_import.extra)
    sent = annotations_of(masked(import_message(found), request.plugin_import, request.update_mask))
    given = dataclasses.replace(sent, origin=found.annotations.origin)
    annotations = checked_annotations("plugin_import.", given, found.annotations)
    return tx.put(dataclasses.replace(found, annotations=annotations))


def delete(tx: Transaction, request: pb.DeletePluginImportRequest) -> tuple[PluginImport, Plugin | None]:
    """The plugin import that is gone, with its plugin. Raises FailedPrecondition for one whose plugin is used."""
    found = _found(tx, request.name, request.etag)
    key = plugin_key(found.name, VERSION)
    if users := ", ".join(tx.snapshot.users_of_plugin(key)):
        raise FailedPrecondition(
            f"plugin {key} of plugin import {found.name!r} is used by worker clusters {users}: have them name another, "
            "or none, first",
            reason="IN_USE",
            metadata={"worker_clusters": users},
        )
    operation = tx.snapshot.operations.get(found.operation)
    if operation is not None and not operation.has_ended and not operation.cancel_reason:
        tx.put(dataclasses.replace(operation, cancel_reason=DELETED))
    plugin = tx.snapshot.plugins.get(key)
    if plugin is not None and plugin.origin == found.plugin_origin:
        tx.drop(PLUGIN, key)
    else:
        plugin = None
    tx.drop(PLUGIN_IMPORT, found.name)
    return found, plugin


def _found(tx: Transaction, name: str, etag: str) -> PluginImport:
    found: PluginImport = tx.snapshot.named(PLUGIN_IMPORT, name)
    check_etag(name, etag, found.etag)
    return found


@dataclass(frozen=True, slots=True)
class PluginImportApi(grpc.PluginImportServiceServicer):
    """Plugin imports."""

    parts: Parts

    async def GetPluginImport(self, request: pb.GetPluginImportRequest, context: Context) -> pb.GetPluginImportResponse:
        """One plugin import."""
        snapshot = self.parts.store.snapshot
        return pb.GetPluginImportResponse(plugin_import=answered(snapshot.named(PLUGIN_IMPORT, request.name), snapshot))

    async def ListPluginImports(
        self, request: pb.ListPluginImportsRequest, context: Context
    ) -> pb.ListPluginImportsResponse:
        """A page of plugin imports."""
        snapshot = self.parts.store.snapshot
        part, token = origin_page(snapshot, PLUGIN_IMPORT, request)
        return pb.ListPluginImportsResponse(
            plugin_imports=[answered(one, snapshot) for one in part], next_page_token=token
        )

    async def CreatePluginImport(
        self, request: pb.CreatePluginImportRequest, context: Context
    ) -> pb.CreatePluginImportResponse:
        """Begins to fetch a file."""
        return await self._written(request, pb.CreatePluginImportResponse, create)

    async def UpdatePluginImport(
        self, request: pb.UpdatePluginImportRequest, context: Context
    ) -> pb.UpdatePluginImportResponse:
        """Changes what is said of one."""
        return await self._written(request, pb.UpdatePluginImportResponse, update)

    async def DeletePluginImport(
        self, request: pb.DeletePluginImportRequest, context: Context
    ) -> pb.DeletePluginImportResponse:
        """Forgets one, with its plugin and the file."""
        gone: list[Plugin] = []

        def work(tx: Transaction, request: pb.DeletePluginImportRequest) -> PluginImport:
            found, plugin = delete(tx, request)
            gone.extend([] if plugin is None else [plugin])
            return found

        answer = await self._written(request, pb.DeletePluginImportResponse, work)
        for plugin in gone:
            self.parts.plugins.forget(plugin)
        return answer

    async def _written(self, request: Any, answer: type[M], work: Callable[[Transaction, Any], PluginImport]) -> M:
        def fields(tx: Transaction) -> dict[str, Any]:
            made = work(tx, request)
            return {"plugin_import": answered(made, tx.snapshot)}

        return await written(self.parts.store, request, answer, fields)


def services(parts: Parts) -> list[Service]:
    """The gRPC services of plugin imports."""
    add = grpc.add_PluginImportServiceServicer_to_server
    return [service("connect", "PluginImportService", add, PluginImportApi(parts))]

"""Objects that are kept as documents of the state service: one kind, its settings, and what answers add to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from keelman.api.connect.v1 import document_service_pb2 as pb
from keelman.api.connect.v1.document_pb2 import Document
from keelman.gateway.ohara.control import Control
from keelman.gateway.ohara.definitions.setting import Definitions, SettingDef
from keelman.gateway.ohara.keys import API, ObjectKey, checked_key
from keelman.gateway.ohara.resource import Json, Resource
from keelman.gateway.ohara.structs import struct_of, value_of
from keelman.gateway.ohara.values import Settings, created, edited
from keelman.gateway.ohara.wording import exists, not_found
from keelman.model.errors import AlreadyExists, NotFound


class Stored(Resource):
    """A kind that is stored and answered. Settings come back as they were sent, with all that is secret in them."""

    KIND: ClassVar[str]
    DEFINITIONS: ClassVar[Definitions]

    def __init__(self, control: Control) -> None:
        self._control = control

    async def list(self) -> Sequence[Json]:
        """All objects of the kind."""
        found = await self._control.all(
            self._control.documents.ListDocuments, pb.ListDocumentsRequest, "documents",
            kind=f"{API}.{self.KIND}", with_secrets=True,
        )  # fmt: skip
        return await self._answered(found)

    async def get(self, key: ObjectKey) -> Json:
        """One object. Raises no_such."""
        if (document := await self._found(key)) is None:
            raise not_found(self.KIND, key)
        return (await self._answered([document]))[0]

    async def create(self, settings: Settings) -> Json:
        """A new object. Raises OharaError for one whose key is taken."""
        made = await self._checked(created(self._definitions(settings), settings))
        key = checked_key(made["group"], made["name"])
        try:
            return await self._put(key, made, create_only=True)
        except AlreadyExists:
            raise exists(self.KIND, key) from None

    async def put(self, key: ObjectKey, settings: Settings) -> Json:
        """An object, changed or new. Raises Conflict or AlreadyExists where somebody else was faster."""
        if (document := await self._found(key)) is None:
            made = await self._checked(created(self._definitions(settings), {**settings, **key.json}))
            return await self._put(key, made, create_only=True)
        previous = value_of(document.content)
        merged = edited(self._definitions(previous), previous, {**settings, **key.json})
        return await self._put(key, await self._checked({**merged, **key.json}), etag=document.etag)

    async def delete(self, key: ObjectKey) -> None:
        """Forgets an object."""
        if (document := await self._found(key)) is None:
            return
        await self._check_delete(key, value_of(document.content))
        request = pb.DeleteDocumentRequest(kind=document.kind, scope=document.scope, key=document.key)
        try:
            await self._control.ask(self._control.documents.DeleteDocument, request)
        except NotFound:  # somebody else was faster
            return

    def _definitions(self, settings: Settings) -> Sequence[SettingDef]:
        """The table that settings are held against."""
        return [one for one in self.DEFINITIONS if not one.internal]

    async def _checked(self, settings: Settings) -> Settings:
        """The settings as they are to be stored. Raises OharaError for what no table says."""
        return settings

    async def _check_delete(self, key: ObjectKey, settings: Settings) -> None:
        """Raises OharaError for an object that may not be deleted."""

    async def _completed(self, objects: Sequence[Json]) -> Sequence[Json]:
        """What answers have beside settings and lastModified."""
        return objects

    async def _found(self, key: ObjectKey) -> Document | None:
        request = pb.GetDocumentRequest(
            kind=f"{API}.{self.KIND}", scope=key.group, key=key.name, with_secrets=True
        )  # fmt: skip
        try:
            document: Document = (await self._control.ask(self._control.documents.GetDocument, request)).document
        except NotFound:
            return None
        return document

    async def _put(self, key: ObjectKey, settings: Settings, *, etag: str = "", create_only: bool = False) -> Json:
        document = Document(
            kind=f"{API}.{self.KIND}", scope=key.group, key=key.name, content=struct_of(settings), etag=etag
        )
        request = pb.PutDocumentRequest(document=document, create_only=create_only)
        stored = (await self._control.ask(self._control.documents.PutDocument, request)).document
        answer: dict[str, Any] = {**settings, "lastModified": stored.update_time.ToMilliseconds()}
        return (await self._completed([answer]))[0]

    async def _answered(self, documents: Sequence[Document]) -> Sequence[Json]:
        return await self._completed(
            [{**value_of(one.content), "lastModified": one.update_time.ToMilliseconds()} for one in documents]
        )

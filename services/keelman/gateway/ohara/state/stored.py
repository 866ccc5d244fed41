"""Objects stored as documents: the state service keeps them under their kind, group and name."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from keelman.api.connect.v1 import document_service_pb2 as pb
from keelman.api.connect.v1.document_pb2 import Document
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.state.structs import struct_of, value_of
from keelman.gateway.ohara.wire.keys import API, ObjectKey
from keelman.model.errors import NotFound


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document; `modified` is in milliseconds since 1970."""

    key: ObjectKey
    content: Mapping[str, Any]
    secrets: Mapping[str, str] = field(default_factory=dict)
    etag: str = ""
    modified: int = 0


class Stored:
    """The documents of one kind, e.g. zookeeper. They are read with their secrets: users get back the settings that
    they sent."""

    def __init__(self, control: OharaControl, kind: str) -> None:
        self._control = control
        self._kind = f"{API}.{kind}"

    async def list(self) -> list[StoredDocument]:
        """Returns all documents, by group and name."""
        documents = await self._control.all(pb.ListDocumentsRequest, kind=self._kind, with_secrets=True)
        return [_stored(document) for document in documents]

    async def get(self, key: ObjectKey) -> StoredDocument | None:
        """Returns one document; None if it does not exist."""
        request = pb.GetDocumentRequest(kind=self._kind, scope=key.group, key=key.name, with_secrets=True)
        try:
            return _stored((await self._control.ask(request)).document)
        except NotFound:
            return None

    async def put(
        self,
        key: ObjectKey,
        content: Mapping[str, Any],
        secrets: Mapping[str, str] | None = None,
        *,
        etag: str = "",
        new: bool = False,
    ) -> StoredDocument:
        """Stores a document. Raises AlreadyExists if `new` is set and it exists, Conflict for an etag that is not the
        present one."""
        document = Document(
            kind=self._kind, scope=key.group, key=key.name, etag=etag, content=struct_of(content), secrets=secrets
        )
        request = pb.PutDocumentRequest(document=document, create_only=new)
        answer = (await self._control.ask(request)).document
        return StoredDocument(key, content, secrets or {}, answer.etag, answer.update_time.ToMilliseconds())

    async def delete(self, key: ObjectKey) -> None:
        """Deletes a document, if it exists."""
        request = pb.DeleteDocumentRequest(kind=self._kind, scope=key.group, key=key.name)
        with suppress(NotFound):
            await self._control.ask(request)


def _stored(document: Document) -> StoredDocument:
    return StoredDocument(
        ObjectKey(document.scope, document.key), value_of(document.content), dict(document.secrets), document.etag,
        document.update_time.ToMilliseconds(),
    )  # fmt: skip

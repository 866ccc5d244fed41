"""Documents: JSON that an API built on ours keeps, with what is secret in it apart."""

from __future__ import annotations

import dataclasses
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.protobuf.json_format import MessageToDict
from sqlmodel import Field, SQLModel

from keelman.api.connect.v1 import document_pb2
from keelman.api.connect.v1 import document_service_pb2 as pb
from keelman.api.connect.v1 import document_service_pb2_grpc as grpc
from keelman.connect.config.secret_keys import kept_json, shown_json
from keelman.model.document import Document, check_document_key, check_scope, document_name, parts_of_name
from keelman.model.errors import AlreadyExists, Conflict, InvalidArgument, NotFound
from keelman.model.names import checked_name
from keelman.rpc.pages import key_of, page_limit, token_for
from keelman.rpc.server import Context, Service
from keelman.rpc.times import to_timestamp
from keelman.state.nouns.checks import check_etag, check_numbers
from keelman.state.nouns.noun import Noun, Parts, service
from keelman.state.nouns.rows import big_column, json_column, micros, moment
from keelman.state.nouns.serving import Remembered, written
from keelman.state.snapshot import DOCUMENT, Snapshot

if TYPE_CHECKING:
    from keelman.state.store import Transaction

MAX_BYTES = 512 << 10  # its event has to fit into a record of Kafka
MAX_SECRET_NAME = 255
PAGE_BYTES = 2 << 20  # clients that set nothing take messages of up to 4 MiB
SECRETS = "secrets"  # under a key of this name all is secret, for the sealer and for who shows it


class DocumentRow(SQLModel, table=True):
    """A document; `spec` is JSON of its content and its secrets."""

    __tablename__ = "document"
    name: str = Field(primary_key=True)
    uid: str
    create_time: int = Field(sa_column=big_column())
    update_time: int = Field(sa_column=big_column())
    revision: int = Field(sa_column=big_column())
    spec: dict[str, Any] = Field(sa_column=json_column())


def to_row(document: Document) -> dict[str, Any]:
    """The values of its row."""
    return {
        "name": document.name, "uid": document.uid, "create_time": micros(document.create_time),
        "update_time": micros(document.update_time), "revision": int(document.etag or 0),
        "spec": {"content": document.content, SECRETS: document.secrets},
    }  # fmt: skip


def from_row(row: DocumentRow) -> Document:
    """The document of a row."""
    return Document(
        *parts_of_name(row.name), row.uid, moment(row.create_time), moment(row.update_time), row.spec["content"],
        row.spec[SECRETS], str(row.revision),
    )  # fmt: skip


def document_message(document: Document, *, with_secrets: bool = False) -> document_pb2.Document:
    """A document as users see it, and with its secrets hidden as events do."""
    content, secrets = document.content, document.secrets
    if not with_secrets:
        content, secrets = shown_json(content), shown_json(secrets, SECRETS)
    made = document_pb2.Document(
        kind=document.kind,
        scope=document.scope,
        key=document.key,
        uid=document.uid,
        create_time=to_timestamp(document.create_time),
        update_time=to_timestamp(document.update_time),
        etag=document.etag,
        secrets=secrets,
    )
    made.content.update(content)
    return made


NOUN = Noun(Document, DocumentRow, to_row, from_row, document_message)


def found(snapshot: Snapshot, kind: str, scope: str, key: str) -> Document:
    """The document of a kind, scope and key. Raises NotFound."""
    check_document_key("", kind, scope, key)
    document = snapshot.documents.get(document_name(kind, scope, key))
    if document is None:
        raise NotFound(
            f"there is no document {key!r} of kind {kind!r} in scope {scope!r}",
            metadata={"kind": kind, "scope": scope, "key": key},
        )
    return document


def put(tx: Transaction, request: pb.PutDocumentRequest) -> Document:
    """The document of a request, stored.

    Raises AlreadyExists for one that is there and was to be new, Conflict for an etag that is not the present one's,
    InvalidArgument for what cannot be kept.
    """
    given = request.document
    check_document_key("document.", given.kind, given.scope, given.key)
    check_content(given)
    name = document_name(given.kind, given.scope, given.key)
    present = tx.snapshot.documents.get(name)
    if present is not None and request.create_only:
        raise AlreadyExists(
            f"document.key: there is a document {given.key!r} of kind {given.kind!r} in scope {given.scope!r} already",
            metadata={"kind": given.kind, "scope": given.scope, "key": given.key},
        )
    if present is not None:
        check_etag(name, given.etag, present.etag)
    elif given.etag:
        raise Conflict(
            f"etag: {given.etag!r} is of no document {name!r}: there is none",
            reason="ETAG_MISMATCH",
            metadata={"name": name, "etag": ""},
        )
    made = present or Document(given.kind, given.scope, given.key, str(uuid.uuid4()), tx.now, tx.now)
    content = kept_json("document.content", MessageToDict(given.content), made.content)
    secrets = kept_json("document.secrets", dict(given.secrets), made.secrets, SECRETS)
    return tx.put(dataclasses.replace(made, content=content, secrets=secrets))


def delete(tx: Transaction, request: pb.DeleteDocumentRequest) -> Document:
    """The document that is gone. Raises NotFound, and Conflict for an etag that is not the present one."""
    document = found(tx.snapshot, request.kind, request.scope, request.key)
    check_etag(document.name, request.etag, document.etag)
    tx.drop(DOCUMENT, document.name)
    return document


def check_content(given: document_pb2.Document) -> None:
    """Raises InvalidArgument for content and secrets that cannot be kept."""
    size = given.content.ByteSize() + sum(len(name) + len(text.encode()) for name, text in given.secrets.items())
    if size > MAX_BYTES:
        raise InvalidArgument.of("document.content", f"{size} bytes", f"at most {MAX_BYTES} bytes with its secrets")
    check_numbers("document.content", given.content)
    for name in given.secrets:
        if not name or len(name) > MAX_SECRET_NAME:
            raise InvalidArgument.of("document.secrets", name[:20], f"names of 1 to {MAX_SECRET_NAME} characters")


@dataclass(frozen=True, slots=True)
class DocumentApi(grpc.DocumentServiceServicer):
    """Documents."""

    parts: Parts
    _messages: Remembered[Document, document_pb2.Document] = dataclasses.field(
        default_factory=lambda: Remembered(document_message)
    )
    _with_secrets: Remembered[Document, document_pb2.Document] = dataclasses.field(
        default_factory=lambda: Remembered(lambda one: document_message(one, with_secrets=True))
    )

    async def GetDocument(self, request: pb.GetDocumentRequest, context: Context) -> pb.GetDocumentResponse:
        """One document."""
        document = found(self.parts.store.snapshot, request.kind, request.scope, request.key)
        return pb.GetDocumentResponse(document=document_message(document, with_secrets=request.with_secrets))

    async def ListDocuments(self, request: pb.ListDocumentsRequest, context: Context) -> pb.ListDocumentsResponse:
        """A page of documents; of large ones fewer than were asked for."""
        limit, after = page_limit(request.page_size), tuple(key_of(request.page_token).split("\0"))
        if request.kind:
            checked_name("kind", request.kind)
        check_scope("scope", request.scope)
        wanted = self.parts.store.snapshot.documents_of(request.kind, request.scope)
        rest = [one for one in sorted(wanted, key=_order) if after == ("",) or _order(one) > after]
        answer, size = pb.ListDocumentsResponse(), 0
        messages = self._with_secrets if request.with_secrets else self._messages
        for number, one in enumerate(rest):
            made = messages.copy(one.name, one)
            size += made.ByteSize()
            if number and (number == limit or size > PAGE_BYTES):
                answer.next_page_token = token_for("\0".join(_order(rest[number - 1])))
                break
            answer.documents.append(made)
        return answer

    async def PutDocument(self, request: pb.PutDocumentRequest, context: Context) -> pb.PutDocumentResponse:
        """Keeps a document."""
        return await written(
            self.parts.store,
            request,
            pb.PutDocumentResponse,
            lambda tx: {"document": document_message(put(tx, request))},
        )

    async def DeleteDocument(self, request: pb.DeleteDocumentRequest, context: Context) -> pb.DeleteDocumentResponse:
        """Forgets a document."""
        return await written(
            self.parts.store,
            request,
            pb.DeleteDocumentResponse,
            lambda tx: {"document": document_message(delete(tx, request))},
        )


def _order(document: Document) -> tuple[str, str, str]:
    return document.kind, document.scope, document.key


def services(parts: Parts) -> list[Service]:
    """The gRPC services of documents."""
    return [service("connect", "DocumentService", grpc.add_DocumentServiceServicer_to_server, DocumentApi(parts))]

"""Documents: JSON that an API built on keelman keeps, with its secrets apart."""

from __future__ import annotations

import dataclasses
import uuid
from dataclasses import dataclass
from typing import Any

from google.protobuf.json_format import MessageToDict

from keelman.api.connect.v1 import document_pb2
from keelman.api.connect.v1 import document_service_pb2 as pb
from keelman.api.connect.v1 import document_service_pb2_grpc as grpc
from keelman.connect.config.secret_keys import kept_json, shown_json
from keelman.model.document import Document, check_document_key, check_scope, document_name, parts_of_name
from keelman.model.errors import AlreadyExists, Conflict, InvalidArgument, NotFound
from keelman.model.rules.names import checked_name
from keelman.rpc.mapping import message_of
from keelman.rpc.pages import key_of, page_limit, token_for
from keelman.rpc.server import Context
from keelman.state.nouns.parts import NounParts
from keelman.state.resources.checks import check_etag, check_numbers
from keelman.state.resources.noun import Noun
from keelman.state.resources.serving import NounApi, Remembered, writing
from keelman.state.resources.snapshot import DOCUMENT, Snapshot
from keelman.state.resources.transaction import Transaction

MAX_BYTES = 512 << 10  # its event has to fit into a record of Kafka
MAX_SECRET_NAME = 255
PAGE_BYTES = 2 << 20  # clients with default settings accept messages of up to 4 MiB
NAMED = ("kind", "scope", "key")
SECRETS = "secrets"  # all values under a key of this name are secret, for the sealer and for answers


def document_message(document: Document, *, with_secrets: bool = False) -> document_pb2.Document:
    """Returns a document as users see it; with its secrets hidden, as events do."""
    content, secrets = document.content, document.secrets
    if not with_secrets:
        content, secrets = shown_json(content), shown_json(secrets, SECRETS)
    return message_of(document_pb2.Document, document, content=content or None, secrets=secrets)


NOUN = Noun(
    Document, document_message, {"spec": ("content", SECRETS)}, left_out=NAMED,
    fields=lambda name, _: dict(zip(NAMED, parts_of_name(name), strict=True)),
)  # fmt: skip


def found(snapshot: Snapshot, kind: str, scope: str, key: str) -> Document:
    """Returns the document of a kind, scope and key. Raises NotFound."""
    check_document_key("", kind, scope, key)
    document = snapshot.documents.get(document_name(kind, scope, key))
    if document is None:
        raise NotFound(
            f"no document {key!r} of kind {kind!r} in scope {scope!r}",
            metadata={"kind": kind, "scope": scope, "key": key},
        )
    return document


def put(tx: Transaction, request: pb.PutDocumentRequest) -> Document:
    """Stores the document of a request and returns it.

    Raises AlreadyExists if it exists and `create_only` is set, Conflict for an etag other than the present one,
    InvalidArgument for content that cannot be kept.
    """
    document = request.document
    check_document_key("document.", document.kind, document.scope, document.key)
    check_content(document)
    name = document_name(document.kind, document.scope, document.key)
    present = tx.snapshot.documents.get(name)
    if present is not None and request.create_only:
        raise AlreadyExists(
            f"document.key: there is a document {document.key!r} of kind {document.kind!r} in scope "
            f"{document.scope!r} already",
            metadata={"kind": document.kind, "scope": document.scope, "key": document.key},
        )
    if present is not None:
        check_etag(name, document.etag, present.etag)
    elif document.etag:
        raise Conflict(
            f"etag: {document.etag!r} is of no document: document {name!r} does not exist",
            reason="ETAG_MISMATCH",
            metadata={"name": name, "etag": ""},
        )
    former = present or Document(document.kind, document.scope, document.key, str(uuid.uuid4()), tx.now, tx.now)
    content = kept_json("document.content", MessageToDict(document.content), former.content)
    secrets = kept_json("document.secrets", dict(document.secrets), former.secrets, SECRETS)
    return tx.put(dataclasses.replace(former, content=content, secrets=secrets))


def delete(tx: Transaction, request: pb.DeleteDocumentRequest) -> Document:
    """Deletes a document and returns it. Raises NotFound, and Conflict for an etag other than the present one."""
    document = found(tx.snapshot, request.kind, request.scope, request.key)
    check_etag(document.name, request.etag, document.etag)
    tx.drop(DOCUMENT, document.name)
    return document


def check_content(document: document_pb2.Document) -> None:
    """Raises InvalidArgument for content and secrets that cannot be kept."""
    size = document.content.ByteSize() + sum(len(name) + len(text.encode()) for name, text in document.secrets.items())
    if size > MAX_BYTES:
        raise InvalidArgument.of("document.content", f"{size} bytes", f"at most {MAX_BYTES} bytes with its secrets")
    check_numbers("document.content", document.content)
    for name in document.secrets:
        if not name or len(name) > MAX_SECRET_NAME:
            raise InvalidArgument.of("document.secrets", name[:20], f"names of 1 to {MAX_SECRET_NAME} characters")


@dataclass(frozen=True, slots=True)
class DocumentApi(NounApi[NounParts], grpc.DocumentServiceServicer):
    """Documents."""

    noun = DOCUMENT

    _messages: Remembered[Document, document_pb2.Document] = dataclasses.field(
        default_factory=lambda: Remembered(document_message)
    )
    _with_secrets: Remembered[Document, document_pb2.Document] = dataclasses.field(
        default_factory=lambda: Remembered(lambda document: document_message(document, with_secrets=True))
    )

    @writing()
    def PutDocument(self, tx: Transaction, request: pb.PutDocumentRequest) -> Document:
        """Stores a document."""
        return put(tx, request)

    @writing()
    def DeleteDocument(self, tx: Transaction, request: pb.DeleteDocumentRequest) -> Document:
        """Deletes a document."""
        return delete(tx, request)

    async def GetDocument(self, request: pb.GetDocumentRequest, context: Context) -> pb.GetDocumentResponse:
        """Returns one document."""
        document = found(self.parts.store.snapshot, request.kind, request.scope, request.key)
        return pb.GetDocumentResponse(document=document_message(document, with_secrets=request.with_secrets))

    async def ListDocuments(self, request: pb.ListDocumentsRequest, context: Context) -> pb.ListDocumentsResponse:
        """Returns a page of documents; fewer than requested if they are large."""
        limit, after = page_limit(request.page_size), tuple(key_of(request.page_token).split("\0"))
        if request.kind:
            checked_name("kind", request.kind)
        check_scope("scope", request.scope)
        documents = self.parts.store.snapshot.documents_of(request.kind, request.scope)
        rest = [document for document in sorted(documents, key=_order) if after == ("",) or _order(document) > after]
        answer, size = pb.ListDocumentsResponse(), 0
        messages = self._with_secrets if request.with_secrets else self._messages
        for number, document in enumerate(rest):
            message = messages.copy(document.name, document)
            size += message.ByteSize()
            if number and (number == limit or size > PAGE_BYTES):
                answer.next_page_token = token_for("\0".join(_order(rest[number - 1])))
                break
            answer.documents.append(message)
        return answer

    def _fields(self, document: Document, tx: Transaction) -> dict[str, Any]:
        return {DOCUMENT: document_message(document)}


def _order(document: Document) -> tuple[str, str, str]:
    return document.kind, document.scope, document.key


API = DocumentApi

"""Documents over real gRPC on both databases: kept, listed, replaced, deleted; their secrets stay sealed."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from keelman.api.connect.v1 import document_pb2
from keelman.api.connect.v1 import document_service_pb2 as pb
from keelman.api.event.v1 import event_pb2
from keelman.model.errors import AlreadyExists, Conflict, InvalidArgument, NotFound
from keelman.rpc.errors import translated
from keelman.rpc.watching import watch
from keelman.state.nouns.document import MAX_BYTES, PAGE_BYTES
from keelman.state.secrets.sealed_rows import rekey_file
from support.eventually import eventually
from support.state.service import Clients, state_in_loop
from support.state.stores import open_store

pytestmark = pytest.mark.component
CANARY = "canary-0815"


async def put(
    clients: Clients, key: str, content: dict[str, Any] | None = None, *, scope: str = "default",
    kind: str = "ohara.object", secrets: dict[str, str] | None = None, etag: str = "", **more: Any,
) -> document_pb2.Document:  # fmt: skip
    document = document_pb2.Document(kind=kind, scope=scope, key=key, secrets=secrets, etag=etag)
    document.content.update(content or {})
    with translated():
        return (await clients.documents.PutDocument(pb.PutDocumentRequest(document=document, **more))).document


async def get(clients: Clients, key: str, **more: Any) -> document_pb2.Document:
    request = pb.GetDocumentRequest(**{"kind": "ohara.object", "scope": "default", "key": key} | more)
    with translated():
        return (await clients.documents.GetDocument(request)).document


async def listed(clients: Clients, **fields: Any) -> list[str]:
    found_documents, request = [], pb.ListDocumentsRequest(**fields)
    while True:
        answer = await clients.documents.ListDocuments(request)
        found_documents += [f"{document.kind}|{document.scope}|{document.key}" for document in answer.documents]
        request.page_token = answer.next_page_token
        if not request.page_token:
            return found_documents


async def test_a_document_from_its_first_put_to_its_end(clients: Clients) -> None:
    content = {"name": "ws", "tags": {"a": [1, 2.5, None, True, {"b": ""}]}, "port": 22}
    response = await put(clients, "ws", content, request_id="r1", create_only=True)
    assert await put(clients, "ws", content, request_id="r1", create_only=True) == response
    assert await get(clients, "ws") == response
    assert (response.kind, response.scope, response.key) == ("ohara.object", "default", "ws")
    assert response.content["tags"]["a"][1] == 2.5
    assert response.create_time == response.update_time
    with pytest.raises(AlreadyExists, match=r"'ws' of kind 'ohara\.object' in scope 'default'"):
        await put(clients, "ws", create_only=True)

    changed = await put(clients, "ws", {"port": 23}, etag=response.etag)
    assert (changed.uid, changed.create_time) == (response.uid, response.create_time)
    assert changed.etag != response.etag
    assert dict(changed.content) == {"port": 23}
    with pytest.raises(Conflict, match="etag") as refused:
        await put(clients, "ws", etag=response.etag)
    assert refused.value.reason == "ETAG_MISMATCH"
    with pytest.raises(Conflict, match="does not exist"):
        await put(clients, "other", etag=response.etag)

    ask = pb.DeleteDocumentRequest(kind="ohara.object", scope="default", key="ws", etag=response.etag)
    with pytest.raises(Conflict, match="etag"), translated():
        await clients.documents.DeleteDocument(ask)
    ask.etag, ask.request_id = changed.etag, "gone"
    assert (await clients.documents.DeleteDocument(ask)).document == changed
    assert (await clients.documents.DeleteDocument(ask)).document == changed
    with pytest.raises(NotFound, match="no document 'ws'"):
        await get(clients, "ws")
    assert (await put(clients, "ws")).uid != response.uid


async def test_of_two_puts_that_were_to_create_one_does(clients: Clients) -> None:
    puts = (put(clients, "ws", {"n": n}, create_only=True) for n in range(8))
    answers = await asyncio.gather(*puts, return_exceptions=True)
    won = [answer for answer in answers if isinstance(answer, document_pb2.Document)]
    assert len(won) == 1
    assert all(isinstance(answer, AlreadyExists) for answer in answers if answer is not won[0])
    assert await get(clients, "ws") == won[0]


async def test_lists_are_in_the_order_of_kind_scope_and_key_in_pages_by_number_and_bytes(clients: Clients) -> None:
    for kind, scope, key in (
        ("b", "", "k"), ("a.b", "s", "k"), ("a", "s/t", "k%2F"), ("a", "s", "z"), ("a", "s", "a/b"), ("a", "s.t", "k"),
    ):  # fmt: skip
        await put(clients, key, {"key": key}, scope=scope, kind=kind)
    every = ["a|s|a/b", "a|s|z", "a|s.t|k", "a|s/t|k%2F", "a.b|s|k", "b||k"]
    assert await listed(clients) == await listed(clients, page_size=1) == await listed(clients, page_size=4) == every
    assert await listed(clients, kind="a", page_size=3) == every[:4]
    assert await listed(clients, kind="a", scope="s") == every[:2]
    assert await listed(clients, scope="s") == [*every[:2], every[4]]
    assert (await get(clients, "k%2F", kind="a", scope="s/t")).content["key"] == "k%2F"

    for number in range(6):
        await put(clients, f"{number}", {"text": "x" * (MAX_BYTES - 200)}, kind="large")
    answer = await clients.documents.ListDocuments(pb.ListDocumentsRequest(kind="large"))
    assert 1 < len(answer.documents) < 6
    assert answer.ByteSize() < PAGE_BYTES + 1000
    assert await listed(clients, kind="large") == [f"large|default|{n}" for n in range(6)]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"kind": "Big"}, "document.kind"),
        ({"kind": ""}, "document.kind"),
        ({"key": ""}, "document.key"),
        ({"key": "k" * 256}, "document.key"),
        ({"key": "a\0b"}, "document.key"),
        ({"scope": "s" * 256}, "document.scope"),
        ({"scope": "a\nb"}, "document.scope"),
        ({"content": {"text": "x" * MAX_BYTES}}, "document.content"),
        ({"secrets": {"password": "x" * MAX_BYTES}}, "document.content"),
        ({"secrets": {"": "x"}}, "document.secrets"),
        ({"secrets": {"password": "[hidden]"}}, "document.secrets.password"),
        ({"content": {"user.password": "[hidden]"}}, "document.content.user.password"),
        ({"content": {"a": [{"b": float("nan")}]}}, r"document.content.a\[0\].b"),
    ],
)
async def test_what_cannot_be_kept_is_refused(clients: Clients, more: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidArgument, match=named):
        await put(clients, **{"key": "k"} | more)
    assert await listed(clients) == []


async def test_secrets_are_shown_to_who_asks_for_them_and_nowhere_else(tmp_path: Path) -> None:
    content = {"user": "me", "tags": {"api.key": f"{CANARY}-tag"}, "url": f"http://me:{CANARY}-url@h"}
    secrets = {"password": f"{CANARY}-password", "note": f"{CANARY}-note"}
    async with state_in_loop(tmp_path) as (clients, _):
        answers = [await put(clients, "n1", content, secrets=secrets, request_id="one")]
        answers += [await put(clients, "n1", content, secrets=secrets, request_id="one"), await get(clients, "n1")]
        assert dict(answers[0].secrets) == {"password": "[hidden]", "note": "[hidden]"}
        assert answers[0].content["tags"]["api.key"] == "[hidden]"
        full = await get(clients, "n1", with_secrets=True)
        assert dict(full.secrets) == secrets
        assert full.content["tags"]["api.key"] == f"{CANARY}-tag"

        # A document as shown is sent back: it stays the same except for the changes.
        answers[0].secrets["note"] = f"{CANARY}-other"
        del answers[0].content["url"]
        request = pb.PutDocumentRequest(document=answers[0])
        answers.append((await clients.documents.PutDocument(request)).document)
        full = await get(clients, "n1", with_secrets=True)
        assert dict(full.secrets) == {"password": f"{CANARY}-password", "note": f"{CANARY}-other"}
        assert "url" not in full.content
        (everything,) = (await clients.documents.ListDocuments(pb.ListDocumentsRequest(with_secrets=True))).documents
        assert everything == full
        answers += (await clients.documents.ListDocuments(pb.ListDocumentsRequest())).documents
        answers[0].secrets["note"] = "[hidden]"
        assert CANARY not in str(answers)
    files = [file.read_bytes() for file in (tmp_path / "state").glob("state.db*")]
    assert not any(CANARY.encode() in data for data in files)
    with sqlite3.connect(tmp_path / "state" / "state.db") as database:
        assert "sealed:1:" in database.execute("SELECT payload FROM resource WHERE noun = 'document'").fetchone()[0]
        events = [event_pb2.Event.FromString(p) for (p,) in database.execute("SELECT payload FROM outbox")]
    assert [event.name for event in events] == ["ohara.object/default/n1"] * 2
    assert {event.document.secrets["password"] for event in events} == {"[hidden]"}
    await rekey_file(str(tmp_path / "state" / "state.db"), tmp_path / "state" / "secrets.key")
    async with open_store(str(tmp_path / "state" / "state.db")) as store:
        (stored,) = store.snapshot.documents.values()
        assert stored.secrets == {"password": f"{CANARY}-password", "note": f"{CANARY}-other"}


async def test_they_are_there_after_a_restart_and_a_watch_sees_each_change(tmp_path: Path, url: str) -> None:
    settings = {"database": url, "key_file": tmp_path / "secrets.key"}
    async with state_in_loop(tmp_path, **settings) as (clients, _):
        response = await put(clients, "a/b", {"n": 1}, scope="x%y")
    async with state_in_loop(tmp_path, **settings) as (clients, _):
        seen: list[event_pb2.Event] = []

        async def follow() -> None:
            async for _, events in watch(clients.channel, ["document"]):
                seen.extend(events)

        following = asyncio.ensure_future(follow())
        try:
            await eventually(lambda: [e.document for e in seen] == [response])
            changed = await put(clients, "a/b", {"n": 2}, scope="x%y")
            await clients.documents.DeleteDocument(
                pb.DeleteDocumentRequest(kind=response.kind, scope=response.scope, key=response.key)
            )
            await eventually(lambda: [e.document for e in seen] == [response, changed, changed])
        finally:
            following.cancel()
            await asyncio.wait([following])
        assert seen[-1].type == event_pb2.EVENT_TYPE_DELETED
        assert {event.name for event in seen} == {"ohara.object/x%25y/a%2Fb"}

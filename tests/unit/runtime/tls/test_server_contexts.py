"""An https server as clients see it: a refused client gets the reason, and a silent client blocks no other."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

from keelman.runtime.http import protocol as http_protocol
from keelman.runtime.http import server as http_server
from keelman.runtime.http.server import serve_http
from keelman.runtime.supervise import Siblings
from keelman.runtime.tls.contexts import server_context
from support.certificates import PASSWORD, Authority, Issued

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
SECONDS = 60.0


async def here(scope: Any, receive: Any, send: Any) -> None:
    """Answers a whole request after a moment, in which any further bytes would be seen."""
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] != "http.request":
        return
    for _ in range(100):
        await asyncio.sleep(0)
    await Response("here")(scope, receive, send)


class Parties:
    """A server that wants certificates, and its clients."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority()
        self._folder = folder
        own = self.authority.issue("server", "127.0.0.1").write_pkcs12(folder / "server.p12")
        self.server = {
            "ssl.keystore.location": str(own),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.location": str(self.authority.write_trust(folder / "trust.p12")),
            "ssl.truststore.password": PASSWORD,
            "ssl.client.auth": "required",
        }

    def client(self, issued: Issued | None = None) -> ssl.SSLContext:
        """Returns the client context with this certificate."""
        context = ssl.create_default_context(cadata=self.authority.pem)
        if issued is not None:
            file = self._folder / "client.pem"
            file.write_text(issued.key_pem + issued.chain_pem)
            context.load_cert_chain(file)
        return context

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[int]:
        """The server's port."""
        tls = server_context(self.server)
        async with serve_http(here, host="127.0.0.1", port=0, label="test", tls=tls, grace_seconds=SECONDS) as port:
            yield port


@pytest.fixture
def parties(tmp_path: Path) -> Parties:
    return Parties(tmp_path)


async def answer(port: int, context: ssl.SSLContext) -> bytes:
    """Returns the first bytes of the answer to a request."""
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        try:
            writer.write(REQUEST)
            return await reader.read(1024)
        finally:
            writer.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("whose", "alert"),
    [("nobody", "CERTIFICATE_REQUIRED HANDSHAKE_FAILURE"), ("a stranger", "UNKNOWN_CA")],
)
async def test_who_is_refused_is_told_why(parties: Parties, version: ssl.TLSVersion, whose: str, alert: str) -> None:
    context = parties.client(Authority("other").issue("stranger") if whose == "a stranger" else None)
    context.maximum_version = version
    async with parties.served() as port:
        with pytest.raises(ssl.SSLError) as refused:
            await answer(port, context)
        assert any(word in str(refused.value.reason) for word in alert.split()), refused.value
        assert (await answer(port, parties.client(parties.authority.issue("me")))).endswith(b"here")


async def test_http_is_told_that_this_is_https(parties: Parties, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no more bytes follow."""
    monkeypatch.setattr(http_server, "HANDSHAKE_SECONDS", 600.0)
    async with parties.served() as port, asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST)
        answer = await reader.read()
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body) == {"error_code": 400, "message": "HTTP 400 Bad Request: this port speaks https"}


@contextlib.contextmanager
def silent(port: int, context: ssl.SSLContext) -> Iterator[ssl.SSLSocket]:
    """A client that has its answer and reads no more, like clients that pool connections."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as client,
    ):
        client.sendall(REQUEST)
        assert client.recv(1024).startswith(b"HTTP/1.1 200 ")
        yield client


async def test_a_silent_client_does_not_hold_up_the_end(parties: Parties) -> None:
    """A client that has not begun its handshake does not delay the end either."""
    context, ends = parties.client(parties.authority.issue("me")), asyncio.Event()

    async def serve(ports: asyncio.Queue[int]) -> None:
        async with parties.served() as port:
            await ports.put(port)
            await ends.wait()

    async with Siblings() as siblings:
        ports: asyncio.Queue[int] = asyncio.Queue()
        served = siblings.start(serve(ports))
        port = await ports.get()
        with contextlib.ExitStack() as clients:
            stored = await asyncio.to_thread(clients.enter_context, silent(port, context))
            clients.enter_context(socket.create_connection(("127.0.0.1", port)))
            begun = time.monotonic()
            ends.set()
            await served
            assert time.monotonic() - begun < SECONDS / 2, "the grace is twice as long"
            rest = await asyncio.to_thread(stored.recv, 1024)
            assert rest in (b"", b"here"), "it was notified of the end"


async def test_handshakes_that_never_end_give_way(parties: Parties, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before their time is over."""
    monkeypatch.setattr(http_protocol, "MAX_CONNECTIONS", 16)
    monkeypatch.setattr(http_server, "HANDSHAKE_SECONDS", 600.0)
    async with parties.served() as port:
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        try:
            async with asyncio.timeout(SECONDS):
                for reader, _ in opened[:16]:
                    assert await reader.read() == b""
            assert (await answer(port, parties.client(parties.authority.issue("me")))).endswith(b"here")
        finally:
            for _, writer in opened:
                writer.close()

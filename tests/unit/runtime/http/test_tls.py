"""An https server as its clients see it: who is refused is told why, and nobody who is silent holds anybody up."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

from keelman.runtime.http import listener as http_door
from keelman.runtime.http import protocol as http_protocol
from keelman.runtime.http.server import serve_http
from keelman.runtime.supervise import Siblings
from keelman.runtime.tls.contexts import server_context
from keelman.testing.certificates import PASSWORD, Authority, Issued

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
SECONDS = 60.0


async def here(scope: Any, receive: Any, send: Any) -> None:
    """Answers a whole request, and a moment later, when whatever else has come is seen."""
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] != "http.request":
        return
    for _ in range(100):
        await asyncio.sleep(0)
    await Response(bytes(2 << 20) + b"here" if scope["path"] == "/large" else "here")(scope, receive, send)


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
        """What a client with this certificate connects with."""
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
    """What a request of a client's gets first."""
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
    """And that this is all."""
    monkeypatch.setattr(http_door, "HANDSHAKE_SECONDS", 600.0)
    async with parties.served() as port, asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST)
        said = await reader.read()
        writer.close()
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body) == {"error_code": 400, "message": "HTTP 400 Bad Request: this port speaks https"}


@contextlib.contextmanager
def silent(port: int, context: ssl.SSLContext) -> Iterator[ssl.SSLSocket]:
    """A client that has its answer and reads nothing more, as those do that keep connections for later."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as client,
    ):
        client.sendall(REQUEST)
        assert client.recv(1024).startswith(b"HTTP/1.1 200 ")
        yield client


async def test_a_silent_client_does_not_hold_up_the_end(parties: Parties) -> None:
    """Nor does one that has not even begun its handshake."""
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
            kept = await asyncio.to_thread(clients.enter_context, silent(port, context))
            clients.enter_context(socket.create_connection(("127.0.0.1", port)))
            begun = time.monotonic()
            ends.set()
            await served
            assert time.monotonic() - begun < SECONDS / 2, "the grace is twice as long"
            rest = await asyncio.to_thread(kept.recv, 1024)
            assert rest in (b"", b"here"), "it was told that this is the end"


async def test_handshakes_that_never_end_give_way(parties: Parties, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before their time is over."""
    monkeypatch.setattr(http_protocol, "MAX_CONNECTIONS", 16)
    monkeypatch.setattr(http_door, "HANDSHAKE_SECONDS", 600.0)
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


class Halving:
    """A client that can end each of its sides by itself, which neither asyncio nor an SSL socket of Python's can."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._plain = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="127.0.0.1")

    def said(self, request: bytes, *, notify: bool, shut: bool) -> bytes:
        """What the server answers until it ends its side: by a word of TLS if it can be heard, and the connection."""
        with self._plain:
            self._do(self._tls.do_handshake)
            self._tls.write(request)
            if notify:
                with contextlib.suppress(ssl.SSLWantReadError):
                    self._tls.unwrap()
            self._plain.sendall(self._out.read())  # all at once, with the last of the handshake
            if shut:
                self._plain.shutdown(socket.SHUT_WR)
            said = b""
            with contextlib.suppress(ssl.SSLZeroReturnError):  # the end, to one that has said so too
                while part := self._do(lambda: self._tls.read(1 << 16)):
                    said += part
            if notify:
                assert self._plain.recv(1) == b"", "the connection has ended too"
            return said

    def _do(self, step: Callable[[], Any]) -> Any:
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                if not isinstance(self._tls.version(), str) or self._out.pending:
                    self._plain.sendall(self._out.read())
                part = self._plain.recv(1 << 16)
                assert part, "the connection ended before TLS did"
                self._in.write(part)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("ends", ["TLS", "TCP", "TLS and TCP"])
@pytest.mark.parametrize(
    ("request_bytes", "answers"),
    [
        (REQUEST, 1),
        (REQUEST * 3, 3),
        (b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n", 1),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na", 0),
        (b"", 0),
    ],
)
async def test_who_has_said_all_is_answered(
    parties: Parties, version: ssl.TLSVersion, ends: str, request_bytes: bytes, answers: int
) -> None:
    """A client that ends its side behind its request still gets the answer, and then the end."""
    notify, shut = "TLS" in ends, "TCP" in ends
    context = parties.client(parties.authority.issue("me"))
    context.maximum_version = version
    async with parties.served() as port, asyncio.timeout(SECONDS):
        client = Halving(port, context)
        said = await asyncio.to_thread(client.said, request_bytes, notify=notify, shut=shut)
        assert said.count(b"HTTP/1.1 200 ") == answers
        assert said.endswith(b"here") == bool(answers)
        assert len(said) > 2 << 20 or b"large" not in request_bytes

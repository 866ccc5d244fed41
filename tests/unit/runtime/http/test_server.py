"""Hostile and broken clients on raw sockets: each gets a 4xx or is closed; other clients are answered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keelman.runtime.http import bodies as http_bodies
from keelman.runtime.http import protocol as http_protocol
from keelman.runtime.http.bodies import BoundedBodies
from keelman.runtime.http.server import serve_http
from support.eventually import eventually

LIMIT = 100_000


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """Port and app of a server with small bounds; it answers with the number of bytes that it received."""
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 1.0)
    monkeypatch.setattr(http_protocol, "READ_SECONDS", 1.0)
    monkeypatch.setattr(http_protocol, "MAX_CONNECTIONS", 16)
    monkeypatch.setattr(http_bodies, "DRAIN_SECONDS", 1.0)
    monkeypatch.setattr(http_bodies, "BODY_SECONDS", 1.0)
    monkeypatch.setattr(http_bodies, "MAX_BODY_BYTES", LIMIT)
    monkeypatch.setattr(http_bodies, "TOGETHER_BYTES", 3 * LIMIT)

    async def count(request: Request) -> Response:
        return Response(str(len(await request.body())))

    async def late(request: Request) -> Response:
        for _ in range(100):
            await asyncio.sleep(0)  # time to see further bytes
        return await count(request)

    async def large(request: Request) -> Response:
        return Response(bytes(64 * 1024 * 1024))

    routed = Starlette(
        routes=[
            Route("/", count, methods=["GET", "POST"]),
            Route("/large", large),
            Route("/late", late, methods=["GET", "POST"]),
        ]
    )
    app = BoundedBodies(routed)
    async with serve_http(app, host="127.0.0.1", port=0, label="test", grace_seconds=0.1) as port:
        yield port, app


async def exchange(port: int, *pieces: bytes) -> bytes:
    """Sends the request and returns all bytes until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(60):
            with contextlib.suppress(ConnectionError):
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
            with contextlib.suppress(ConnectionError):
                return await reader.read()
            return b""
    finally:
        writer.close()


async def answered(port: int) -> bool:
    """Whether another client gets an answer."""
    answer = await exchange(port, b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc")
    return answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"\r\n\r\n3")


POST = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("name", "request_bytes", "statuses"),
    [
        ("no HTTP at all", b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03 hello\r\n\r\n", (400,)),
        ("HTTP/2 at once", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (505,)),
        ("no host", b"GET / HTTP/1.1\r\n\r\n", (400,)),
        ("bytes in the path", b"GET /\xff\x00 HTTP/1.1\r\nHost: x\r\n\r\n", (400,)),
        ("a long path", b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", (414,)),
        ("many headers", b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 50_000 + b"\r\n", (431,)),
        ("a header that folds", b"GET / HTTP/1.1\r\nHost: x\r\nA\x00: b\r\n\r\n", (400,)),
        ("a negative length", POST + b"Content-Length: -1\r\n\r\n", (400,)),
        ("no length", POST + b"Content-Length: many\r\n\r\n", (400,)),
        ("two lengths", POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", (400,)),
        ("a length and chunks", POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (400,)),
        ("an unknown encoding", POST + b"Transfer-Encoding: gzip\r\n\r\n", (400, 501)),
        ("a bad chunk", POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", (400,)),
        ("a chunk of a length beyond all", POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 30 + b"\r\n", (400,)),
        ("an enormous length", POST + b"Content-Length: 99999999999999999999\r\n\r\n", (413,)),
        ("a large body", POST + b"Content-Length: 5000000\r\n\r\n" + bytes(5_000_000), (413,)),
        ("large chunks", POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"ffff\r\n" + bytes(0xFFFF) + b"\r\nffff\r\n"
         + bytes(0xFFFF) + b"\r\n0\r\n\r\n", (413,)),
        ("an unknown method", b"BREW / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", (405,)),
    ],
)  # fmt: skip
async def test_what_is_malformed_is_refused(server: Any, name: str, request_bytes: bytes, statuses: Any) -> None:
    port, _ = server
    answer = await exchange(port, request_bytes)
    assert int(answer.split()[1]) in statuses
    assert b"bytearray" not in answer
    if int(answer.split()[1]) != 405:
        assert b"application/json" in answer
        assert b'"error_code":' + answer.split()[1] in answer
    assert await answered(port)


def head(line: bytes, size: int) -> bytes:
    """A request with this first line and a head of this size."""
    begun = line + b"\r\nHost: x\r\nConnection: close\r\nX: "
    return begun + b"a" * (size - len(begun) - 4) + b"\r\n\r\n"


GET = b"GET / HTTP/1.1"
SENT_ON = GET + b"\r\nX-Keelman-Seconds: 5.000"


@pytest.mark.parametrize(
    ("request_bytes", "status", "reason"),
    [
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505, b"HTTP/2.0 is not spoken here: use HTTP/1.1"),
        (b"HEAD / HTTP/3.0\r\nHost: x\r\n\r\n", 505, b""),
        (b"GET / HTTP/1.2\r\nHost: x\r\n\r\n", 505, b"HTTP/1.2 is not spoken here"),
        (b"GET / HTTP/0.9\r\n\r\n", 505, b"HTTP/0.9 is not spoken here"),
        (b"GET / HTTP/1.0\r\n\r\n", 200, b""),
        (head(GET, 8192), 200, b""),
        (head(GET, 8193), 431, b"the request's head is larger than 8192 bytes"),
        (head(SENT_ON, 8192 + 1024), 200, b""),
        (head(SENT_ON, 8193 + 1024), 431, b"the request's head is larger than 8192 bytes"),
        (head(GET, 20_000), 431, b"the request's head is larger than 8192 bytes"),
        (head(GET, 20_000)[:-4], 431, b"the request's head is larger than 8192 bytes"),
        (b"GET /?" + b"a" * 8180 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431, b"the request's head is larger than 8192"),
        (b"GET /?" + b"a" * 8192 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, b"the request's target is longer than 8192"),
        (b"GET /?" + b"a" * 20_000, 414, b"the request's target is longer than 8192 bytes"),
        (head(GET, 5_000_000), 431, b"the request's head is larger than 8192 bytes"),
    ],
)
async def test_versions_and_heads_are_those_that_connect_takes(
    server: Any, request_bytes: bytes, status: int, reason: bytes
) -> None:
    port, _ = server
    answer = await exchange(port, request_bytes)
    assert (int(answer.split()[1]), answer.count(b"HTTP/1.1 ")) == (status, 1), answer
    assert reason in answer
    assert await answered(port)


async def test_a_second_request_is_judged_as_the_first(server: Any) -> None:
    port, _ = server
    answer = await exchange(port, b"GET /late HTTP/1.1\r\nHost: x\r\n\r\n" + head(GET, 9000))
    assert [answer.count(status) for status in (b"HTTP/1.1 200 ", b"HTTP/1.1 431 ")] == [1, 1], answer


@pytest.mark.parametrize("answers", [1, 2])
async def test_empty_lines_before_a_request_are_passed_over(server: Any, answers: int) -> None:
    """Some clients send an empty line after a body."""
    port, _ = server
    first = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" if answers == 2 else b"\r\n\n"
    answer = await exchange(port, first + b"\r\n" * 5000 + POST + b"Content-Length: 2\r\n\r\nab")
    assert answer.count(b"HTTP/1.1 200 ") == answers
    assert answer.endswith(b"2")


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://X:1", 200),
        ("HTTPS://x:1/?a=http://y", 200),
        ("http://y/", 400),
        ("http:///", 400),
        ("http://x:1/b", 404),
    ],
)
async def test_a_target_may_name_the_host(server: Any, target: str, status: int) -> None:
    port, _ = server
    answer = await exchange(port, f"GET {target} HTTP/1.1\r\nHost: x:1\r\nConnection: close\r\n\r\n".encode())
    assert int(answer.split()[1]) == status, answer
    assert (b"names another host" in answer) == (status == 400)


async def test_a_refusal_tells_why(server: Any) -> None:
    port, _ = server
    answer = await exchange(port, b"GET / HTTP/1.1\r\n\r\n")
    assert b'"HTTP 400 Bad Request: Missing mandatory Host: header"' in answer, answer


@pytest.mark.parametrize(
    ("begun", "status"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: ", b"408"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHo", b"408"),
        (POST + b"Content-Length: 10\r\n\r\nabc", b"408"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n", b"408"),
    ],
)
async def test_what_never_ends_is_ended(server: Any, begun: bytes, status: bytes) -> None:
    """Sending byte by byte does not help either: the time counts from the beginning."""
    port, _ = server
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(begun)

    async def trickle() -> None:
        with contextlib.suppress(ConnectionError):
            while begun:
                writer.write(b"x" if not begun.endswith(b"a\r\n") else b"1\r\na\r\n")
                await writer.drain()
                await asyncio.sleep(0.2)

    trickling, answer = asyncio.ensure_future(trickle()), b""
    try:
        async with asyncio.timeout(60):
            while part := await reader.read(1024):  # kept although a byte that comes too late is answered with a reset
                answer += part
    except ConnectionError:
        pass
    finally:
        trickling.cancel()
        writer.close()
    assert status in answer
    if not status:
        assert answer == b""
    assert await answered(port)


@pytest.mark.parametrize(
    ("request_bytes", "answers"),
    [
        (b"GET /late HTTP/1.1\r\nHost: x\r\n\r\n", 1),
        (b"GET /late HTTP/1.1\r\nHost: x\r\n\r\n" * 3, 3),
        (b"POST /late HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 1),
        (b"POST /late HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na", 0),
        (b"GET /late HTTP/1.1\r\nHo", 0),
    ],
)
async def test_who_has_said_all_is_answered(server: Any, request_bytes: bytes, answers: int) -> None:
    """A client that closes its side after its request still gets the answer, and then the end."""
    port, _ = server
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request_bytes)
    writer.write_eof()
    async with asyncio.timeout(60):
        assert (await reader.read()).count(b"HTTP/1.1 200 ") == answers
    writer.close()


async def test_what_is_too_large_is_not_asked_for(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that sends `Expect: 100-continue` before its body is refused at once."""
    monkeypatch.setattr(http_bodies, "DRAIN_SECONDS", 600.0)
    port, _ = server
    answer = await exchange(port, POST + b"Expect: 100-continue\r\nContent-Length: 5000000\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 "), answer


async def test_idle_connections_give_way(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest-waiting clients are closed first, long before their time is over."""
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 600.0)
    port, _ = server
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
    try:
        async with asyncio.timeout(60):
            for reader, _ in opened[:20]:
                assert await reader.read() == b""
        assert not any(reader.at_eof() for reader, _ in opened[-10:])
        assert await answered(port)
    finally:
        for _, writer in opened:
            writer.close()


async def test_all_that_are_too_many_give_way_though_they_come_at_once(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 600.0)
    port, _ = server
    opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]  # the server sees none before the last
    try:
        assert await answered(port), "behind them"
        await eventually(lambda: _connected(port) <= 16, seconds=60)
    finally:
        for writer in opened:
            writer.close()


async def test_large_bodies_are_bounded_together(server: Any) -> None:
    port, app = server
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
    head = POST + b"Content-Length: %d\r\n\r\n" % LIMIT
    for _, writer in held:
        writer.write(head + bytes(LIMIT - 1))
        await writer.drain()
    answers = [await reader.read() for reader, _ in held]
    assert sum(b" 429 " in answer for answer in answers) >= 1
    assert sum(b" 408 " in answer for answer in answers) >= 1
    for _, writer in held:
        writer.close()
    await eventually(lambda: app._held == 0, seconds=60)
    assert await answered(port)


async def test_who_does_not_read_is_left(server: Any) -> None:
    port, _ = server
    _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    await writer.drain()
    transport = writer.transport
    transport.pause_reading()  # type: ignore[attr-defined]
    await eventually(lambda: _connected(port) == 0, seconds=60)
    writer.close()
    assert await answered(port)


def _connected(port: int) -> int:
    """The number of clients that the server still has."""
    mine = psutil.Process().net_connections("tcp")
    return sum(c.laddr.port == port and c.status == "ESTABLISHED" for c in mine)


@pytest.mark.parametrize(("piece", "status"), [(b"a", b"408"), (b"a" * 200, b"200")], ids=["too slow", "quick enough"])
async def test_a_body_has_a_least_rate(
    server: Any, monkeypatch: pytest.MonkeyPatch, piece: bytes, status: bytes
) -> None:
    monkeypatch.setattr(http_protocol, "BODY_SECONDS", 0.4)
    monkeypatch.setattr(http_protocol, "BODY_BYTES", 100)
    monkeypatch.setattr(http_bodies, "BODY_SECONDS", 60.0)
    port, _ = server
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = asyncio.ensure_future(reader.read())
    try:
        writer.write(POST + b"Content-Length: %d\r\n\r\n" % (20 * len(piece)))
        for _ in range(20):
            if answer.done():
                break
            writer.write(piece)
            await asyncio.sleep(0.05)
        async with asyncio.timeout(60):
            assert (await answer).startswith(b"HTTP/1.1 " + status)
    finally:
        writer.close()


async def test_an_answered_request_that_never_ends_is_closed(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "REST_SECONDS", 0.1)
    monkeypatch.setattr(http_bodies, "BODY_SECONDS", 60.0)
    port, app = server

    async def refused(scope: Any, receive: Any, send: Any) -> None:
        await Response("no", 403)(scope, receive, send)

    monkeypatch.setattr(app, "_app", refused)
    monkeypatch.setattr(app, "_read", lambda *_: asyncio.sleep(0, result=True))
    answer = await exchange(port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
    assert answer.startswith(b"HTTP/1.1 403"), "and then the end"


async def test_unfinished_requests_give_way_where_nothing_is_idle(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_bodies, "BODY_SECONDS", 60.0)
    port, _ = server
    begun = [await asyncio.open_connection("127.0.0.1", port) for _ in range(16)]
    try:
        for _, writer in begun:
            writer.write(POST + b"Content-Length: 10\r\n\r\nabc")
            await writer.drain()
        assert await answered(port)
        async with asyncio.timeout(60):
            first, _ = begun[0]
            with contextlib.suppress(ConnectionError):
                assert await first.read() == b"", "the oldest was closed"
    finally:
        for _, writer in begun:
            writer.close()

"""Of too many connections, those whose requests are being refused are closed before those of other clients."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keelman.runtime.http import protocol as http_protocol
from keelman.runtime.http.server import serve_http

MOST = 16
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
REFUSED = b"GET /refused HTTP/1.1\r\nHost: x\r\n\r\n"
ANSWER = b"\r\n\r\nyes"


async def test_requests_that_are_refused_give_way_before_idle_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "MAX_CONNECTIONS", MOST)
    begun = asyncio.Semaphore(0)

    async def served(request: Request) -> Response:
        return Response("yes")

    async def refused(request: Request) -> Response:
        http_protocol.give_way(request.scope)
        begun.release()
        await asyncio.sleep(600)
        return Response()

    app = Starlette(routes=[Route("/", served), Route("/refused", refused)])
    async with serve_http(app, host="127.0.0.1", port=0, label="test", grace_seconds=0.1) as port, asyncio.timeout(60):
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST)]
        try:
            idle, waiting = opened[:2], opened[2:]
            for reader, writer in idle:
                writer.write(GET)
                await reader.readuntil(ANSWER)
            for _, writer in waiting:
                writer.write(REFUSED)
                await begun.acquire()
            opened.append(await asyncio.open_connection("127.0.0.1", port))
            with contextlib.suppress(ConnectionError):
                assert await waiting[0][0].read() == b"", "the oldest was closed"
            for reader, writer in (*idle, opened[-1]):
                writer.write(GET)
                await reader.readuntil(ANSWER)
        finally:
            for _, writer in opened:
                writer.close()

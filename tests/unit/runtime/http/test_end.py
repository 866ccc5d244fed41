"""The end of an HTTP server: connected clients are answered, later clients are refused."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import psutil
import pytest
from starlette.responses import Response

from keelman.runtime.http import protocol as http_protocol
from keelman.runtime.http.server import serve_http
from keelman.runtime.supervise import Siblings
from support.eventually import eventually

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Ending:
    """A server that ends when it is told to."""

    def __init__(self) -> None:
        self.ends = asyncio.Event()
        self.ports: asyncio.Queue[int] = asyncio.Queue()

    async def serve(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await Response("here")(scope, receive, send)

        async with serve_http(app, host="127.0.0.1", port=0, label="test", grace_seconds=60) as port:
            await self.ports.put(port)
            await self.ends.wait()


async def test_who_has_just_come_is_answered_though_the_server_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "FIRST_SECONDS", 60.0)
    server = Ending()
    async with Siblings() as siblings:
        served = siblings.start(server.serve())
        port = await server.ports.get()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        other, last = await asyncio.open_connection("127.0.0.1", port)
        last.write(REQUEST)
        async with asyncio.timeout(60):
            assert await other.readuntil(b"here"), "both were taken in"
            last.close()
            server.ends.set()
            await eventually(lambda: not _listens(port), seconds=60)
            writer.write(REQUEST)
            assert await reader.readuntil(b"here")
            writer.close()
            await served


async def test_who_stands_in_the_door_when_it_closes_is_let_in() -> None:
    """The clients' connections are established by the system."""
    server = Ending()
    async with Siblings() as siblings:
        served = siblings.start(server.serve())
        port = await server.ports.get()
        waiting = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(20)]
        for task in waiting:
            task.sendall(REQUEST)
        server.ends.set()  # and the server has accepted none of them yet
        await served
        for task in waiting:
            with task:
                assert task.recv(1024).startswith(b"HTTP/1.1 200 ")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


def _listens(port: int) -> bool:
    return any(c.laddr.port == port and c.status == "LISTEN" for c in psutil.Process().net_connections("tcp"))

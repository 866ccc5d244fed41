"""What is asked of a process's health, over a real socket: once, and again and again over one connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from keelman.rpc.health import HealthClient, is_serving
from keelman.rpc.server import Service, serve
from keelman.runtime.supervise import first_of

ECHO = Service(
    "test.Echo",
    lambda _, server: server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", {}),)),
    None,
)


@asynccontextmanager
async def counted(socket: Path, to: Path) -> AsyncIterator[list[int]]:
    """Passes on what comes to `socket`; the list has an entry for each connection."""
    connections: list[int] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(len(connections))
        try:
            back_reader, back_writer = await asyncio.open_unix_connection(to)
        except OSError:
            writer.close()
            return
        try:
            await first_of(passed_on(reader, back_writer), passed_on(back_reader, writer))
        finally:
            writer.close()
            back_writer.close()

    async with await asyncio.start_unix_server(connected, socket):
        yield connections


async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()


async def test_health_is_not_serving_until_ready(tmp_path: Path) -> None:
    socket = tmp_path / "s.sock"
    address = f"unix:{socket}"
    assert not await is_serving(address)
    async with serve(ECHO, socket=socket) as health:
        assert not await is_serving(address)
        await health.ready()
        assert await is_serving(address, timeout_seconds=60)
        assert await is_serving(address, timeout_seconds=60, service=ECHO.name)
        await health.unready()
        assert not await is_serving(address)
    assert not socket.exists()


async def test_a_connection_is_kept_while_it_is_answered_and_the_next_process_is_found(tmp_path: Path) -> None:
    socket, behind = tmp_path / "front.sock", tmp_path / "s.sock"
    async with counted(socket, behind) as connections:
        client = HealthClient(f"unix:{socket}")
        async with serve(ECHO, socket=behind) as health:
            await health.ready()
            for _ in range(5):
                assert await client.is_serving(timeout_seconds=60)
            assert len(connections) == 1
        assert not await client.is_serving()
        async with serve(ECHO, socket=behind) as health:
            await health.ready()
            assert await client.is_serving(timeout_seconds=60), "at once: it does not wait for another try"
        await client.close()

"""The leader's writer with a broker that refuses it, and a client that is given up before a broker answers."""

import asyncio
import struct

import pytest

from keelman.kafka.clients import low_level_client
from keelman.kafka.writer import FencingWriter
from keelman.model.errors import Unavailable


async def plain_speech(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A listener without TLS, which answers the client's hello with plain HTTP."""
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()


async def test_a_broker_that_refuses_us_later_on_is_tried_again() -> None:
    """The refusal ends a worker only at the first contact, when no task runs yet."""
    server = await asyncio.start_server(plain_speech, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        properties = {"bootstrap.servers": f"127.0.0.1:{port}", "security.protocol": "SSL"}
        writer = FencingWriter(properties, client_id="c", transactional_id="connect-cluster-g")
        with pytest.raises(Unavailable, match=r"connect-cluster-g cannot be claimed: 127\.0\.0\.1:\d+: TLS failed"):
            await writer.claim()
        with pytest.raises(Unavailable):
            await writer.write("configs", [(b"k", b"v")])


async def test_a_client_given_up_before_its_first_answer_leaves_no_connection() -> None:
    event, gone = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A broker that answers ApiVersions (Metadata's alone: key 3, from 0 to 1) and no other request."""
        size, _, _, correlation = struct.unpack(">ihhi", await reader.readexactly(12))
        await reader.readexactly(size - 8)
        writer.write(struct.pack(">iihihhh", 16, correlation, 0, 1, 3, 0, 1))
        await reader.readexactly(12)
        event.set()
        await reader.read()
        gone.set()
        writer.close()

    async def start(port: int) -> None:
        async with low_level_client({"bootstrap.servers": f"127.0.0.1:{port}"}, client_id="c", timeout_ms=60_000):
            raise AssertionError

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server, asyncio.timeout(60):
        starting = asyncio.ensure_future(start(server.sockets[0].getsockname()[1]))
        await event.wait()
        starting.cancel()
        await asyncio.wait([starting])
        assert starting.cancelled()
        await gone.wait()

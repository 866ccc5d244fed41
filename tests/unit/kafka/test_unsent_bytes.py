"""Whether the other end of a connection accepts the bytes sent to it."""

import asyncio
from dataclasses import dataclass

from keelman.kafka.connections import unsent_bytes
from support.eventually import eventually


@dataclass
class Connection:
    """The part of the library's connection that is used."""

    _writer: asyncio.StreamWriter | None


async def test_it_shrinks_while_the_other_end_reads_and_not_while_it_does_not() -> None:
    ends: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    server = await asyncio.start_server(lambda *end: ends.put_nowait(end), "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    (reader, other), size = await ends.get(), 32 << 20
    connection = Connection(writer)
    assert unsent_bytes(connection) == 0
    writer.write(bytes(size))
    full = 0

    async def stuck() -> bool:
        nonlocal full
        before, full = full, unsent_bytes(connection)
        return 0 < full == before

    await eventually(stuck)
    left = size
    while left > size // 2:
        left -= len(await reader.read(1 << 20))

    async def shrunk() -> bool:
        return unsent_bytes(connection) < full

    await eventually(shrunk)
    for stream in (writer, other):
        stream.transport.abort()
    server.close()
    await server.wait_closed()
    assert unsent_bytes(Connection(None)) == 0

"""A TCP proxy between any client and one server: delays, limits the rate, freezes, cuts, resets, refuses.

It does not interpret the bytes, so it serves Kafka and gRPC alike:

```python
async with Proxy("127.0.0.1", spark_port) as link:
    ...  # clients connect to link.address
    link.weather = Weather(delay_seconds=0.2)
    link.cut()
```
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from keelman.runtime.supervise import Siblings, first_of

CHUNK_BYTES = 1 << 16
CHUNKS_UNDER_WAY = 64
ABORTIVE = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Weather:
    """The behaviour of a link: seconds of delay each way, bytes per second each way (0: no limit), frozen."""

    delay_seconds: float = 0.0
    bytes_per_second: float = 0.0
    frozen: bool = False


CLEAR = Weather()


class Tunnel:
    """One connection through the proxy.

    The two generators yield the bytes to forward; a proxy that knows its protocol overrides them.
    """

    def __init__(self, proxy: Proxy, client: Ends, server: Ends) -> None:
        self.proxy = proxy
        self.client_in, self.client_out = client
        self.server_in, self.server_out = server
        self.client_id = ""
        """The client's id, if the protocol has one; the plain proxy does not read it."""

    async def requests(self) -> AsyncIterator[bytes]:
        """Bytes from the client to the server."""
        while chunk := await self.client_in.read(CHUNK_BYTES):
            yield chunk

    async def answers(self) -> AsyncIterator[bytes]:
        """Bytes from the server to the client."""
        while chunk := await self.server_in.read(CHUNK_BYTES):
            yield chunk

    async def run(self) -> None:
        """Forwards both ways until one way has ended."""
        await first_of(self._carry(self.requests(), self.server_out), self._carry(self.answers(), self.client_out))

    def cut(self) -> None:
        """Closes both ends in order; bytes in transit are lost."""
        self.client_out.close()
        self.server_out.close()

    def reset(self) -> None:
        """Resets both ends."""
        for writer in (self.client_out, self.server_out):
            new_socket: socket.socket | None = writer.get_extra_info("socket")
            if new_socket is not None and new_socket.fileno() >= 0:
                new_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORTIVE)
            writer.transport.abort()

    async def _carry(self, chunks: AsyncIterator[bytes], target: asyncio.StreamWriter) -> None:
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_UNDER_WAY)
        clock = asyncio.get_running_loop().time

        async def take() -> None:
            try:
                async for chunk in chunks:
                    await under_way.put((clock() + self.proxy.weather_of(self).delay_seconds, chunk))
            except (OSError, EOFError):
                pass
            await under_way.put((0.0, b""))
            await asyncio.Event().wait()

        async def give() -> None:
            while True:
                due, chunk = await under_way.get()
                if not chunk:
                    return
                await asyncio.sleep(max(0.0, due - clock()))
                weather = await self.proxy.thawed(self)
                if weather.bytes_per_second:
                    await asyncio.sleep(len(chunk) / weather.bytes_per_second)
                if not target.is_closing():  # the other direction ends with the connection
                    with contextlib.suppress(OSError):
                        target.write(chunk)
                        await target.drain()

        await first_of(take(), give())


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def everyone(_tunnel: Tunnel) -> bool:
    """Chooses all connections."""
    return True


class Proxy:
    """Listens on a port of its own and forwards connections. Used in one event loop, as `async with`."""

    def __init__(self, host: str, port: int, *, tunnel: Callable[..., Tunnel] = Tunnel) -> None:
        """`host` and `port` are the server's; it need not run yet, and may come and go."""
        self.host = "127.0.0.1"
        self.port = 0
        self.affects: Callable[[Tunnel], bool] = everyone
        """Which connections the weather is for."""
        self.refusing = False
        """True to reset new connections at once."""
        self._target = (host, port)
        self._make = tunnel
        self._weather = CLEAR
        self._changed = asyncio.Event()
        self._tunnels: set[Tunnel] = set()
        self._siblings = Siblings()
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        """host:port for clients."""
        return f"{self.host}:{self.port}"

    @property
    def to_port(self) -> int:
        """The server's port."""
        return self._target[1]

    @property
    def tunnels(self) -> tuple[Tunnel, ...]:
        """The open connections."""
        return tuple(self._tunnels)

    @property
    def weather(self) -> Weather:
        """The link's present behaviour."""
        return self._weather

    @weather.setter
    def weather(self, weather: Weather) -> None:
        self._weather = weather
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def weather_of(self, tunnel: Tunnel) -> Weather:
        """One connection's present behaviour."""
        return self._weather if self.affects(tunnel) else CLEAR

    async def thawed(self, tunnel: Tunnel) -> Weather:
        """The weather of a connection, once it is not frozen."""
        while (weather := self.weather_of(tunnel)).frozen:
            await self._changed.wait()
        return weather

    def cut(self, chosen: Callable[[Tunnel], bool] = everyone) -> int:
        """Closes the chosen connections; returns their number."""
        return self._end([t for t in self._tunnels if chosen(t)], Tunnel.cut)

    def reset(self, chosen: Callable[[Tunnel], bool] = everyone) -> int:
        """Resets the chosen connections; returns their number."""
        return self._end([t for t in self._tunnels if chosen(t)], Tunnel.reset)

    def _end(self, tunnels: list[Tunnel], how: Callable[[Tunnel], None]) -> int:
        for tunnel in tunnels:
            how(tunnel)
        return len(tunnels)

    async def __aenter__(self) -> Proxy:
        await self._siblings.__aenter__()
        self._server = await asyncio.start_server(self._accepted, self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: Any) -> None:
        assert self._server is not None
        self._server.close()
        await self._siblings.__aexit__(*error)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._siblings.start(self._serve((reader, writer)))

    async def _serve(self, client: Ends) -> None:
        try:
            if self.refusing:
                raise ConnectionRefusedError
            server = await asyncio.open_connection(*self._target)
        except OSError:
            client[1].transport.abort()
            return
        tunnel = self._make(self, client, server)
        self._tunnels.add(tunnel)
        try:
            await tunnel.run()
        finally:
            self._tunnels.discard(tunnel)
            for writer in (client[1], server[1]):
                writer.transport.abort()

"""Serves an ASGI application over HTTP in this process's loop, without signals, workers or threads of its own.

Connections are accepted here, https ones after their handshake.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, TypeAlias

import uvicorn

from keelman.runtime.http.bodies import unambiguous
from keelman.runtime.http.protocol import BoundedHttpProtocol, most_connections
from keelman.runtime.processes.ports import check_port

HANDSHAKE_SECONDS = 10.0
LAST_HANDSHAKE_SECONDS = 1.0
FULL_SECONDS = 0.2  # how long no connection is accepted once this process has no descriptors left


Admits: TypeAlias = Callable[[socket.socket], bool]
"""Returns whether a new connection is served."""


def all_peers(client: socket.socket) -> bool:
    """Admits every connection."""
    return True


class Listener:
    """One listening socket, from its creation until `close`, which must be awaited and loses no connection.

    A handshake has 10 s, and of too many at once the oldest is given up: connections in a handshake are not yet counted
    by `BoundedHttpProtocol`.
    """

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], BoundedHttpProtocol],
        tls: ssl.SSLContext | None = None,
        admits: Admits = all_peers,
    ) -> None:
        """`make` returns a connection's protocol; connections that `admits` refuses are closed. The socket becomes this
        listener's own."""
        listener.setblocking(False)
        self._listener = listener
        self._make = make
        self._tls = tls
        self._admits = admits
        self._loop = asyncio.get_running_loop()
        self._greeted: dict[asyncio.Task[None], None] = {}
        self._closed = False
        self._open()

    async def close(self) -> None:
        """Refuses new connections. Returns once those that had arrived are accepted, or given up."""
        self._closed = True
        self._loop.remove_reader(self._listener)
        while self._take():  # to the system they are connected
            pass
        self._listener.close()
        if self._greeted:
            await asyncio.wait(self._greeted, timeout=LAST_HANDSHAKE_SECONDS)
        for task in self._greeted:
            task.cancel()
        await asyncio.gather(*self._greeted, return_exceptions=True)

    def _open(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listener, self._take)

    def _take(self) -> bool:
        """Accepts one connection. Returns False if none waits."""
        try:
            client, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError:  # no descriptor is left
            self._loop.remove_reader(self._listener)
            self._loop.call_later(FULL_SECONDS, self._open)
            return False
        if not self._admits(client):
            client.close()
            return True
        task = self._loop.create_task(self._greet(client))
        self._greeted[task] = None
        task.add_done_callback(lambda done: self._met(done, client))
        if len(self._greeted) > most_connections() // 4:
            next(iter(self._greeted)).cancel()
        return True

    async def _greet(self, client: socket.socket) -> None:
        client.setblocking(False)
        protocol = self._make()
        with contextlib.suppress(OSError):  # the client has gone, or its handshake has failed
            await self._loop.connect_accepted_socket(
                lambda: protocol,
                client,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else HANDSHAKE_SECONDS,
            )
            if self._closed:
                protocol.shutdown()

    def _met(self, done: asyncio.Task[None], client: socket.socket) -> None:
        del self._greeted[done]
        if done.cancelled():
            client.close()


BACKLOG = 1024
KEEP_ALIVE_SECONDS = 75


@contextlib.asynccontextmanager
async def serve_http(
    app: Any,
    *,
    host: str,
    port: int,
    label: str,
    tls: ssl.SSLContext | None = None,
    grace_seconds: float = 5.0,
    admits: Admits = all_peers,
) -> AsyncIterator[int]:
    """Serves `app` until the block is left, then running requests get the grace to end; yields the port.

    With `tls` it speaks https; connections that `admits` refuses are closed. `label` names the setting of host and port
    in messages. Raises Unavailable (PORT_TAKEN) if the port is taken and InvalidArgument for an address that is not
    this host's. Adds no headers of its own: a proxy's answers are unchanged.
    """
    check_port(label, host, port)
    config = uvicorn.Config(
        unambiguous(app),
        http=BoundedHttpProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=math.ceil(grace_seconds),
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    server.servers = []  # we listen ourselves
    listener = socket.create_server(
        (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
    )
    # Else the second packet of an answer waits up to 40 ms for the receipt of the first. asyncio sets this only on
    # sockets created for TCP explicitly; connections inherit it from their listener.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    port = int(listener.getsockname()[1])
    # The server's own run loop would take over the signals and wake ten times a second; its end is all we need of it.
    accepting = Listener(listener, partial(BoundedHttpProtocol, config, server.server_state, {}), tls, admits)
    try:
        yield port
    finally:
        await accepting.close()
        await server.shutdown()

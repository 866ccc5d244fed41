"""Serves an ASGI application over HTTP in this process's loop, without signals, workers or threads of its own."""

from __future__ import annotations

import contextlib
import math
import socket
import ssl
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import uvicorn

from keelman.runtime.http.bodies import unambiguous
from keelman.runtime.http.listener import Listener
from keelman.runtime.http.protocol import BoundedHttpProtocol
from keelman.runtime.processes.ports import check_port

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
) -> AsyncIterator[int]:
    """Serves `app` until the block is left, then lets requests end for the grace; yields the port.

    With `tls` it speaks https. `label` names the setting of host and port in messages. Raises Unavailable (PORT_TAKEN)
    when the port is taken and InvalidArgument for an address that is not this host's. Adds no headers of its own: a
    proxy's answers stay as is.
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
    # sockets that say they are TCP's; connections have it from their listener.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    port = int(listener.getsockname()[1])
    # The server's own run loop would take over the signals and wake ten times a second; its end is all we need of it.
    accepting = Listener(listener, partial(BoundedHttpProtocol, config, server.server_state, {}), tls)
    try:
        yield port
    finally:
        await accepting.close()
        await server.shutdown()

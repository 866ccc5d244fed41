"""TCP connections to hosts that may be gone: a host without power or cable refuses nobody, it is silent."""

from __future__ import annotations

import asyncio
import socket

SILENT_SECONDS = 3.0
"""A host that lives takes a connection at once, however busy it is, since its kernel does. Without a bound the system
tries for two minutes, and a client for its whole time for a request."""
NEXT_SECONDS = 1.0
"""So long a first server is waited for before a second is tried beside it."""


async def reached(host: str, port: int) -> socket.socket:
    """A connected socket, to the first of the host's addresses that takes one. Raises OSError, TimeoutError too."""
    loop = asyncio.get_running_loop()
    problem: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            made = socket.socket(family, kind, protocol)
        except OSError as error:  # a family that this host does not have
            problem = error
            continue
        made.setblocking(False)
        try:
            async with asyncio.timeout(SILENT_SECONDS):
                await loop.sock_connect(made, address)
        except TimeoutError:
            made.close()
            problem = TimeoutError(f"{host}:{port} is silent: nothing there took the connection")
        except OSError as error:
            made.close()
            problem = error
        except BaseException:
            made.close()
            raise
        else:
            return made
    raise problem

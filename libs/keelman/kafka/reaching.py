"""Reaches brokers although some hosts may be down: a host without power or cable refuses nothing, it is silent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

from aiokafka.errors import KafkaError
from aiokafka.structs import BrokerMetadata

SILENT_SECONDS = 3.0
"""A live host's kernel accepts a connection at once, however busy the host is. Without this bound the system tries for
two minutes, and a client for its whole request timeout."""
NEXT_SECONDS = 1.0
"""The time to wait for a first server before a second is tried in parallel."""
SOON_SECONDS = 0.25
"""A broker that has not accepted a connection by then may be silent."""
REMEMBERED_SECONDS = 10.0
UNHEARD_MS = 30_000
"""The longest that sent data may stay unacknowledged, or a connection without any sign of life. By default the system
doubles the time between retransmissions: after a network cut of half a minute, a connection would stay silent for
another half minute.

Not shorter: the system also counts a live host that takes no more data, such as a paused broker, or a broker that does
not read from a client beyond its quota. Clients wait as long for an answer themselves (request.timeout.ms)."""
ALIVE = {"SO_KEEPALIVE": 1, "TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": UNHEARD_MS}

N = TypeVar("N")
A = TypeVar("A")
_silent: dict[tuple[str, int], float] = {}
os.register_at_fork(after_in_child=_silent.clear)


async def reach(host: str, port: int) -> socket.socket:
    """Returns a socket connected to the first address of the host that accepts. Raises OSError, also TimeoutError."""
    loop = asyncio.get_running_loop()
    problem: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError as error:  # a family that this host does not have
            problem = error
            continue
        try:
            sock.setblocking(False)
            _bound(sock)
            async with asyncio.timeout(SILENT_SECONDS):
                await loop.sock_connect(sock, address)
        except TimeoutError:
            if _is_connected(sock):  # this process was held up, not the host
                return sock
            sock.close()
            problem = TimeoutError(f"{host}:{port} is silent: nothing there took the connection")
        except OSError as error:
            sock.close()
            problem = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise problem


def _bound(sock: socket.socket) -> None:
    """Has the system close a connection whose other end has gone silent, on platforms that support it."""
    for name, value in ALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(socket.SOL_SOCKET if name.startswith("SO_") else socket.IPPROTO_TCP, option, value)


def _is_connected(sock: socket.socket) -> bool:
    try:
        sock.getpeername()
    except OSError:
        return False
    return True


def note_silent(host: str, port: int) -> None:
    """Notes that a request or a connection to this broker was given up."""
    _silent[host, port] = time.monotonic()


def is_silent(host: str, port: int) -> bool:
    """Whether a client of this process has lately waited for this broker in vain: try other brokers first."""
    at = _silent.get((host, port))
    return at is not None and time.monotonic() - at < REMEMBERED_SECONDS


def silent_nodes(brokers: Iterable[BrokerMetadata]) -> set[int]:
    """Returns the ids of the silent brokers among these."""
    return {broker.nodeId for broker in brokers if is_silent(broker.host, broker.port)}


@contextlib.contextmanager
def connecting(host: str, port: int) -> Iterator[None]:
    """Wraps the opening of a connection: remembers whether the broker was silent."""
    begun = time.monotonic()
    try:
        yield
    except BaseException:  # also when the waiting caller is cancelled
        if time.monotonic() - begun > SOON_SECONDS:
            note_silent(host, port)
        raise
    _silent.pop((host, port), None)


async def first_answer(nodes: Iterable[N], ask: Callable[[N], Awaitable[A]], *, seconds: float = NEXT_SECONDS) -> A:
    """Returns the first answer of any broker. Queries the next broker when one fails, or in parallel when one has been
    silent for `seconds`.

    Raises the error of the last of them: KafkaError, OSError, TimeoutError.
    """
    problem: BaseException = KafkaError("no broker is known")
    left = list(nodes)
    waiting: set[asyncio.Future[A]] = set()
    try:
        while left or waiting:
            if left:
                waiting.add(asyncio.ensure_future(ask(left.pop(0))))
            done, waiting = await asyncio.wait(
                waiting, timeout=seconds if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for answer in done:
                try:
                    return answer.result()
                except (KafkaError, OSError) as error:
                    problem = error
    finally:
        for answer in waiting:
            answer.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    raise problem

"""Reaches brokers although some hosts may be gone: one without power or cable refuses nobody, it is silent."""

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
"""A host that lives takes a connection at once, however busy it is, since its kernel does. Without a bound the system
tries for two minutes, and a client for its whole time for a request."""
NEXT_SECONDS = 1.0
"""So long a first server is waited for before a second is tried beside it."""
SOON_SECONDS = 0.25
"""Who has not taken a connection by then may be silent."""
REMEMBERED_SECONDS = 10.0
UNHEARD_MS = 30_000
"""So long a connection may have sent what the other host has not taken, or have heard nothing from it. The system's own
way is to send again after twice the time, and twice that: where the network was cut for half a minute, a connection is
silent for another half after it heals.

Not less: the system counts a host, too, that lives and takes no more, as one whose broker reads nothing from a client
that is beyond its quota, or stands still. Clients wait for an answer as long by themselves (request.timeout.ms)."""
ALIVE = {"SO_KEEPALIVE": 1, "TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": UNHEARD_MS}

N = TypeVar("N")
A = TypeVar("A")
_silent: dict[tuple[str, int], float] = {}
os.register_at_fork(after_in_child=_silent.clear)


async def reach(host: str, port: int) -> socket.socket:
    """A connected socket, to the first of the host's addresses that takes one. Raises OSError, TimeoutError too."""
    loop = asyncio.get_running_loop()
    problem: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            made = socket.socket(family, kind, protocol)
        except OSError as error:  # a family that this host does not have
            problem = error
            continue
        try:
            made.setblocking(False)
            _bound(made)
            async with asyncio.timeout(SILENT_SECONDS):
                await loop.sock_connect(made, address)
        except TimeoutError:
            if _is_connected(made):  # this process was held up, not the host
                return made
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


def _bound(made: socket.socket) -> None:
    """Has the system give a connection up whose other end is not heard, where it can."""
    for name, value in ALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            made.setsockopt(socket.SOL_SOCKET if name.startswith("SO_") else socket.IPPROTO_TCP, option, value)


def _is_connected(made: socket.socket) -> bool:
    try:
        made.getpeername()
    except OSError:
        return False
    return True


def note_silent(host: str, port: int) -> None:
    """A request to this broker was given up, or a connection to it."""
    _silent[host, port] = time.monotonic()


def is_silent(host: str, port: int) -> bool:
    """Whether a client of this process has lately waited for this broker for nothing: ask others first."""
    at = _silent.get((host, port))
    return at is not None and time.monotonic() - at < REMEMBERED_SECONDS


def silent_nodes(brokers: Iterable[BrokerMetadata]) -> set[int]:
    """The ids of those among these brokers."""
    return {broker.nodeId for broker in brokers if is_silent(broker.host, broker.port)}


@contextlib.contextmanager
def connecting(host: str, port: int) -> Iterator[None]:
    """Around a connection's making: remembers whether the broker was silent."""
    begun = time.monotonic()
    try:
        yield
    except BaseException:  # also when whoever waits for it gives up
        if time.monotonic() - begun > SOON_SECONDS:
            note_silent(host, port)
        raise
    _silent.pop((host, port), None)


async def first_answer(nodes: Iterable[N], ask: Callable[[N], Awaitable[A]], *, seconds: float = NEXT_SECONDS) -> A:
    """The answer of the first broker that gives one. The next is asked when one fails, and beside one that has been
    silent for so many seconds.

    Raises what the last of them raised: KafkaError, OSError, TimeoutError.
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

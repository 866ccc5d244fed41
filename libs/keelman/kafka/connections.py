"""Sends requests on connections of the library, without what it wraps around each."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import sys
import termios
from typing import Any

from aiokafka.client import ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.errors import NodeNotReadyError, RequestTimedOutError

from keelman.kafka.clients import Client
from keelman.kafka.reaching import note_silent

BATCHES = ConnectionGroup.COORDINATION
"""The library's name for a second connection to a broker; record batches have it for themselves. A broker serves the
requests of one connection one after another, so what is asked of a coordinator, or about topics, would wait behind
batches that replicas or a quota hold up, and giving it up would give up those batches."""


async def connection_to(client: Client, node: int, group: ConnectionGroup = ConnectionGroup.DEFAULT) -> Any | None:
    """aiokafka's connection to a broker, made where there is none; None when it cannot be had.

    The library's own `send` would do, but that two requests behind one connection that is being made may change places.
    """
    return await client._get_conn(node, group=group)


def open_connection(client: Client, node: int, group: ConnectionGroup = ConnectionGroup.DEFAULT) -> Any | None:
    """The connection to a broker that there is; None where there is none to use."""
    found = client._conns.get((node, group))
    return found if found is not None and found.connected() else None


def unsent_bytes(connection: Any) -> int:
    """What was sent on a connection and its other end has not taken yet, where the system reports it."""
    writer = connection._writer
    if writer is None:
        return 0
    waiting = 0
    with contextlib.suppress(
        OSError, ValueError, AttributeError
    ):  # closed meanwhile, or a system that does not report it
        waiting = int(writer.transport.get_write_buffer_size())
        found = fcntl.ioctl(writer.get_extra_info("socket").fileno(), termios.TIOCOUTQ, b"\0" * 4)
        waiting += int.from_bytes(found, sys.byteorder)
    return waiting


async def ask_about(client: Client, topic: str) -> bool:
    """Asks the brokers again for what they know of all topics in use, from now on this one too. False: no answer."""
    known = topic in client._topics
    return bool(await (client.force_metadata_update() if known else client.add_topic(topic)))


def give_up(connection: Any) -> None:
    """Closes a connection without waiting until the broker has taken what was sent: a frozen one never does."""
    writer = connection._writer
    note_silent(connection.host, connection.port)
    connection.close(reason=CloseReason.CONNECTION_TIMEOUT)
    if writer is not None:
        writer.transport.abort()


async def answer_of(client: Client, node: int, request: Any) -> Any:
    """What a broker answers, as the library's `send` of a client, sooner. Raises KafkaError."""
    connection = await connection_to(client, node)
    if connection is None:
        raise NodeNotReadyError(f"no connection to broker {node}")
    waiting = connection.ask(request)
    try:
        async with asyncio.timeout(client._request_timeout_ms / 1000):
            return await waiting
    except TimeoutError:
        give_up(connection)
        raise RequestTimedOutError from None

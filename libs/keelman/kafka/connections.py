"""Sends requests on aiokafka's connections directly, without the library's wrapping of each request."""

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
"""The library's name for a second connection to a broker, used here for record batches alone. A broker serves the
requests of one connection in order: coordinator and metadata requests would wait behind batches that replicas or a
quota delay, and closing the connection for them would lose those batches."""


async def connection_to(client: Client, node: int, group: ConnectionGroup = ConnectionGroup.DEFAULT) -> Any | None:
    """Returns aiokafka's connection to a broker, opened if needed; None when it cannot be opened.

    The library's own `send` is not used: two requests that wait for the same new connection may change their order.
    """
    return await client._get_conn(node, group=group)


def open_connection(client: Client, node: int, group: ConnectionGroup = ConnectionGroup.DEFAULT) -> Any | None:
    """Returns the existing connection to a broker; None if there is no usable one."""
    connection = client._conns.get((node, group))
    return connection if connection is not None and connection.connected() else None


def unsent_bytes(connection: Any) -> int:
    """Returns the number of bytes that the other end has not acknowledged yet, if the system reports it."""
    writer = connection._writer
    if writer is None:
        return 0
    waiting = 0
    with contextlib.suppress(
        OSError, ValueError, AttributeError
    ):  # closed meanwhile, or a system that does not report it
        waiting = int(writer.transport.get_write_buffer_size())
        packed = fcntl.ioctl(writer.get_extra_info("socket").fileno(), termios.TIOCOUTQ, b"\0" * 4)
        waiting += int.from_bytes(packed, sys.byteorder)
    return waiting


async def ask_about(client: Client, topic: str) -> bool:
    """Refreshes the metadata of all topics in use, from now on including this one. Returns False without an answer."""
    is_known = topic in client._topics
    return bool(await (client.force_metadata_update() if is_known else client.add_topic(topic)))


def give_up(connection: Any) -> None:
    """Closes a connection without waiting until the broker has taken the sent bytes: a frozen broker never does."""
    writer = connection._writer
    note_silent(connection.host, connection.port)
    connection.close(reason=CloseReason.CONNECTION_TIMEOUT)
    if writer is not None:
        writer.transport.abort()


async def answer_of(client: Client, node: int, request: Any) -> Any:
    """Returns a broker's answer, like the `send` of the library's client but sooner. Raises KafkaError."""
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

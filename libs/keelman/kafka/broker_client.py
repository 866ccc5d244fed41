"""Subclasses the library's clients to use connections of our own, which record why a broker refused the first contact
(`bootstrap_errors`) and close before their session ends (`security.reauthentication`).

A host that is gone, rather than only its broker, is silent: a client waits for it no longer than `reaching` allows, and
no other connection waits for it.

The library names its connection's class in one function, and that function where it connects; so this module overrides
both places where a client connects, and its connection's `connect`, as in aiokafka 0.14. Its admin client, consumer and
producer each create a client, which is replaced before its first use.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import socket
import struct
import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from aiokafka import AIOKafkaClient, AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import ConnectionGroup
from aiokafka.conn import READER_LIMIT, AIOKafkaProtocol, CloseReason
from aiokafka.errors import KafkaConnectionError, KafkaError, RequestTimedOutError, StaleMetadata
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.util import create_future

from keelman.kafka.answers import Answer, AnswerProtocol
from keelman.kafka.bootstrap_errors import NoneAnswered, connect
from keelman.kafka.reaching import NEXT_SECONDS, connecting, note_silent, reach
from keelman.kafka.security.reauthentication import RenewedConnection
from keelman.runtime.supervise import heeded

_INT32 = struct.Struct(">i")
_CORRELATION_AT = 8
"""The offset of a message's correlation id, after its size and the request's key and version."""
_ARGUMENTS = frozenset(inspect.signature(AIOKafkaClient.__init__).parameters)
_BOOTSTRAP = "bootstrap", ConnectionGroup.DEFAULT


class ClientConnection(RenewedConnection):
    """A connection whose metadata requests do not create topics.

    The library's do: the broker creates each missing topic with its default number of partitions, before keelman
    creates it properly, and recreates a topic that was just deleted.
    """

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects, and logs in. Raises KafkaError and OSError."""
        with connecting(self.host, self.port):
            return await self._begin()

    async def _begin(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        self._closed_fut = create_future()
        secure = self._security_protocol.endswith("SSL")
        reader = asyncio.StreamReader(limit=READER_LIMIT, loop=loop)
        protocol = AIOKafkaProtocol(self._closed_fut, reader, loop=loop)
        sock = await reach(self.host, self.port)
        has_transport = False

        def of_transport() -> AIOKafkaProtocol:
            nonlocal has_transport
            has_transport = True
            return protocol

        try:
            async with asyncio.timeout(self._request_timeout):
                transport, _ = await loop.create_connection(
                    of_transport,
                    sock=sock,
                    ssl=self._ssl_context if secure else None,
                    server_hostname=self.host if secure else None,
                )
        except BaseException:
            if has_transport:  # it closes the socket: it would otherwise use whatever gets that descriptor next
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
            else:
                sock.close()
            raise
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        self._reader, self._writer, self._protocol = reader, writer, protocol
        self._read_task = self._create_reader_task()
        if self._max_idle_ms is not None:
            self._idle_handle = loop.call_soon(self._idle_check, weakref.ref(self))
        try:
            await self._do_version_lookup()
            if self._security_protocol.startswith("SASL"):
                await self._do_sasl_handshake()
        except BaseException:
            self.close()
            raise
        transport.set_protocol(AnswerProtocol(self))
        return reader, writer

    def send(self, request: Any, expect_response: bool = True) -> Any:
        """Sends a request; returns an awaitable of its answer. Raises KafkaError where it cannot be sent."""
        return super().send(_without_creation(request), expect_response)

    def ask(self, request: Any) -> Answer:
        """Sends a request; returns its answer, which has no time-out. Raises KafkaError where it cannot be sent.

        The library's `send` gives a coroutine that waits with a timer: a task and two turns of the loop for each.
        """
        return self.prepared(request)()

    def prepared(self, request: Any) -> Callable[[], Answer]:
        """Encodes the request now; returns a function that sends it, to be called once."""
        request = _without_creation(request).prepare(self._versions)
        header = request.build_request_header(correlation_id=0, client_id=self._client_id).encode()
        body = request.encode()
        message = bytearray().join((_INT32.pack(len(header) + len(body)), header, body))
        return partial(self._ask, request, message)

    def _ask(self, request: Any, message: bytearray) -> Answer:
        writer = self._writer
        if writer is None:
            raise KafkaConnectionError(f"no connection to broker at {self.host}:{self.port}")
        number = self._next_correlation_id()
        _INT32.pack_into(message, _CORRELATION_AT, number)
        try:
            writer.transport.write(message)
        except OSError as error:
            self.close(CloseReason.CONNECTION_BROKEN)
            raise KafkaConnectionError(f"connection at {self.host}:{self.port} broken: {error}") from error
        answer = Answer(self._loop)
        self._requests.append((number, request, answer))
        return answer


def _without_creation(request: Any) -> Any:
    if type(request) is MetadataRequest:
        return MetadataRequest(request._topics, allow_auto_topic_creation=False)
    return request


class BrokerClient(AIOKafkaClient):  # type: ignore[misc]
    """Takes the arguments of the library's class. Used in the loop that it was made in."""

    _sync_task: asyncio.Task[None] | None

    async def close(self) -> None:
        """Closes all connections. Raises CancelledError where the library would swallow it."""
        await heeded(super().close())

    async def bootstrap(self) -> None:
        """Reads the brokers' addresses from the first bootstrap server that answers; tries the next in parallel when
        one does not answer at once. Raises NoneAnswered."""
        waiting: set[asyncio.Task[tuple[ClientConnection, Any] | None]] = set()
        left, answer = list(self.hosts), None
        try:
            while answer is None and (left or waiting):
                if left:
                    host, port, _ = left.pop(0)
                    waiting.add(asyncio.create_task(self._ask_first(host, port)))
                done, waiting = await asyncio.wait(
                    waiting, timeout=NEXT_SECONDS if left else None, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    answer = _kept(answer, task.result())
        finally:
            await _given_up(waiting)
        if answer is None:
            raise NoneAnswered(f"none of {self.hosts} answers")
        connection, metadata = answer
        self.cluster.update_metadata(metadata)
        if self.cluster.brokers():
            connection.close()
        else:  # a cluster without topics may name no brokers: the connection serves until it does
            self._conns[_BOOTSTRAP] = connection
        if self._sync_task is None:
            self._sync_task = asyncio.create_task(self._md_synchronizer())

    async def _ask_first(self, host: str, port: int) -> tuple[ClientConnection, Any] | None:
        """Returns the connection and the answer to the first request; None without an answer."""
        try:
            connection = await self._connect(host, port)
        except (KafkaError, OSError):
            return None
        try:
            return connection, await connection.send(MetadataRequest([]))
        except (KafkaError, OSError):
            connection.close()
            return None
        except BaseException:
            connection.close()
            raise

    async def _get_conn(
        self, node_id: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT, no_hint: bool = False
    ) -> Any | None:
        """Returns the connection to a broker, opened if needed; None when it cannot be opened."""
        key = node_id, group
        connection = self._conns.get(key)
        if connection is not None:
            if connection.connected():
                return connection
            del self._conns[key]
        try:
            broker = self.cluster.broker_metadata(node_id)
            if broker is None:
                raise StaleMetadata(f"broker {node_id} is not in the metadata")
            async with _turns(self).setdefault(key, asyncio.Lock()):
                if key not in self._conns:
                    self._conns[key] = await self._connect(broker.host, broker.port, self._on_connection_closed)
                return self._conns[key]
        except (KafkaError, OSError):
            self.force_metadata_update()  # perhaps it has moved
            return None

    async def send(self, node_id: Any, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT) -> Any:
        """Returns the broker's answer. Raises KafkaError.

        The library closes the connection of a request that had no answer in time, and looks it up by its broker.
        Another request that timed out at the same moment may have closed it and begun to reconnect: then the lookup
        fails, and the KeyError would end the sender, for example the client's own task that follows the brokers.
        """
        try:
            return await super().send(node_id, request, group=group)
        except KeyError as error:
            if error.args != ((node_id, group),):
                raise
            raise RequestTimedOutError from None
        except RequestTimedOutError:
            broker = self.cluster.broker_metadata(node_id)
            if broker is not None:
                note_silent(broker.host, broker.port)
            raise

    async def _connect(self, host: str, port: int, on_close: Callable[..., None] | None = None) -> ClientConnection:
        """Returns a new connection with an open session. Raises KafkaError and OSError."""
        connection = ClientConnection(
            host,
            port,
            client_id=self._client_id,
            request_timeout_ms=self._request_timeout_ms,
            ssl_context=self._ssl_context,
            security_protocol=self._security_protocol,
            on_close=on_close,
            max_idle_ms=self._connections_max_idle_ms,
            sasl_mechanism=self._sasl_mechanism,
            sasl_plain_username=self._sasl_plain_username,
            sasl_plain_password=self._sasl_plain_password,
            sasl_kerberos_service_name=self._sasl_kerberos_service_name,
            sasl_kerberos_domain_name=self._sasl_kerberos_domain_name,
            sasl_oauth_token_provider=self._sasl_oauth_token_provider,
        )
        await connect(connection)
        return connection


class BrokerAdminClient(AIOKafkaAdminClient):  # type: ignore[misc]
    """Takes the arguments of the library's class."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._client = _client(arguments)


class BrokerConsumer(AIOKafkaConsumer):  # type: ignore[misc]
    """Takes the arguments of the library's class, but no topics."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._client = _client(arguments)

    async def learn(self, topics: Iterable[str]) -> None:
        """Requests the leaders of all these topics at once. When it needs offsets of unknown topics, the library itself
        requests one topic after another, with a pause of a tenth of a second before each."""
        await self._client.set_topics(list(topics))

    async def stop(self) -> None:
        """Leaves its group and closes all. Raises CancelledError where the library would swallow it."""
        await heeded(super().stop())


class BrokerProducer(AIOKafkaProducer):  # type: ignore[misc]
    """Takes the arguments of the library's class."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.client = self._sender.client = _client(arguments)
        self.client.cluster = self._metadata  # the producer's other parts hold this object already

    async def stop(self) -> None:
        """Sends the rest and closes all. Raises CancelledError where the library would swallow it."""
        await heeded(super().stop())


def _turns(client: BrokerClient) -> dict[Any, asyncio.Lock]:
    """Returns a connection lock per broker: with the library's single lock all would wait for a silent broker."""
    locks: dict[Any, asyncio.Lock] = client.__dict__.setdefault("_connecting", {})
    return locks


def _kept(
    first: tuple[ClientConnection, Any] | None, second: tuple[ClientConnection, Any] | None
) -> tuple[ClientConnection, Any] | None:
    if first is not None and second is not None:
        second[0].close()
    return first or second


async def _given_up(waiting: set[asyncio.Task[tuple[ClientConnection, Any] | None]]) -> None:
    for task in waiting:
        task.cancel()
    for answer in await asyncio.gather(*waiting, return_exceptions=True):
        if isinstance(answer, tuple):
            answer[0].close()


def _client(arguments: Mapping[str, Any]) -> BrokerClient:
    return BrokerClient(**{name: value for name, value in arguments.items() if name in _ARGUMENTS})

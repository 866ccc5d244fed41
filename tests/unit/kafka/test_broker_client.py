"""The clients' own connections: their class, and the error when none can be opened."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiokafka.admin.client
import aiokafka.client
import aiokafka.conn
import pytest
from aiokafka.client import ConnectionGroup
from aiokafka.errors import KafkaConnectionError, RequestTimedOutError
from aiokafka.protocol.metadata import MetadataRequest, MetadataRequest_v5

from keelman.kafka.bootstrap_errors import NoneAnswered, bootstrap_errors
from keelman.kafka.broker_client import (
    BrokerAdminClient,
    BrokerClient,
    BrokerConsumer,
    BrokerProducer,
    ClientConnection,
)
from keelman.kafka.clients import admin_client
from keelman.kafka.reaching import NEXT_SECONDS, SILENT_SECONDS
from keelman.kafka.security.reauthentication import TokenLogin
from keelman.model.errors import Unavailable
from support.certificates import Authority
from support.eventually import eventually


@contextlib.asynccontextmanager
async def hanging_up() -> AsyncIterator[int]:
    """The port of a server that accepts each connection and closes it at the first request."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


def closed_port() -> int:
    with socket.socket() as single_socket:
        single_socket.bind(("127.0.0.1", 0))
        port: int = single_socket.getsockname()[1]
        return port


@contextlib.contextmanager
def silent() -> Iterator[int]:
    """The port of a server whose queue is full: as with a lost host, no packet comes from it."""
    with socket.socket() as server, contextlib.ExitStack() as waiting:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port: int = server.getsockname()[1]
        for _ in range(2):
            connection = waiting.enter_context(socket.socket())
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                connection.connect(("127.0.0.1", port))
        yield port


async def test_a_silent_host_is_soon_given_up() -> None:
    with silent() as port:
        client = BrokerClient(bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=60_000)
        begun = time.monotonic()
        with pytest.raises(NoneAnswered):
            await client.bootstrap()
        await client.close()
    assert SILENT_SECONDS - 0.5 < time.monotonic() - begun < SILENT_SECONDS + 20


async def test_a_silent_host_does_not_keep_from_asking_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    with silent() as port:
        client = BrokerClient(bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=60_000)
        requests: list[int] = []

        async def ask(_host: str, port: int) -> None:
            requests.append(port)
            await asyncio.sleep(0 if port == 2 else 60)

        monkeypatch.setattr(client, "_ask_first", ask)
        monkeypatch.setattr(BrokerClient, "hosts", [("h", 1, 0), ("h", 2, 0), ("h", 3, 0)])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5 * NEXT_SECONDS):
                await client.bootstrap()
        await client.close()
    assert requests == [1, 2, 3], "the second refused at once"


def test_the_library_keeps_its_own_names() -> None:
    assert aiokafka.client.create_conn is aiokafka.conn.create_conn
    for module in (aiokafka.client, aiokafka.admin.client):
        assert module.MetadataRequest is MetadataRequest
    assert aiokafka.client.AIOKafkaClient.send.__module__ == "aiokafka.client"
    for name in ("create_conn", "OAuthAuthenticator", "AIOKafkaConnection"):
        assert getattr(aiokafka.conn, name).__module__.startswith("aiokafka.")


async def test_each_client_connects_as_the_others_do() -> None:
    arguments = {"bootstrap_servers": ["127.0.0.1:1"], "client_id": "t", "request_timeout_ms": 5000}
    admin, consumer = BrokerAdminClient(**arguments), BrokerConsumer(**arguments, enable_auto_commit=False)
    producer = BrokerProducer(**arguments, acks="all", enable_idempotence=True)
    for client in (admin._client, consumer._client, producer.client, producer._sender.client):
        assert isinstance(client, BrokerClient)
        assert (client.hosts[0][:2], client._client_id, client._request_timeout_ms) == (("127.0.0.1", 1), "t", 5000)
    assert producer.client.cluster is producer._message_accumulator._cluster
    for client_of_library in (admin, consumer, producer):
        await client_of_library.close() if client_of_library is admin else await client_of_library.stop()


@pytest.mark.parametrize("topics", [None, [], ["a", "b"]])
async def test_questions_about_topics_create_none(topics: list[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(aiokafka.conn.AIOKafkaConnection, "send", lambda _, request, expect: sent.append(request))
    ClientConnection.send(ClientConnection.__new__(ClientConnection), MetadataRequest(topics))
    assert sent[0].build(MetadataRequest_v5).to_object() == {"topics": topics, "allow_auto_topic_creation": False}


@pytest.mark.parametrize(
    ("key", "error"), [((3, ConnectionGroup.DEFAULT), RequestTimedOutError), ((4, ConnectionGroup.DEFAULT), KeyError)]
)
async def test_a_connection_closed_by_another_request_is_a_time_out(
    key: Any, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def closed(*_: Any, **__: Any) -> None:
        raise KeyError(key)

    monkeypatch.setattr(aiokafka.client.AIOKafkaClient, "send", closed)
    broker_client = BrokerClient(bootstrap_servers=["127.0.0.1:1"], client_id="t")
    with pytest.raises(error):
        await broker_client.send(3, MetadataRequest([]))
    await broker_client.close()


async def test_what_a_broker_said_is_raised_with_its_address_and_a_hint() -> None:
    async with hanging_up() as port:
        broker_client = BrokerClient(bootstrap_servers=[f"127.0.0.1:{port}"], client_id="t", request_timeout_ms=5000)
        with pytest.raises(KafkaConnectionError, match=rf"127\.0\.0\.1:{port}: .*\(perhaps .*security\.protocol\)"):
            async with bootstrap_errors({}):
                await broker_client.bootstrap()
        with pytest.raises(NoneAnswered):  # not in a first contact
            await broker_client.bootstrap()
        await broker_client.close()


async def test_an_unreachable_address_is_named() -> None:
    port = closed_port()
    with pytest.raises(Unavailable, match=f"no broker answers at 127.0.0.1:{port}: .*"):
        async with admin_client({"bootstrap.servers": f"127.0.0.1:{port}"}, client_id="t"):
            raise AssertionError("it was reached")


async def test_a_broker_that_is_not_in_the_metadata_has_no_connection() -> None:
    broker_client = BrokerClient(bootstrap_servers=["127.0.0.1:1"], client_id="t")
    assert await broker_client._get_conn(7) is None
    await broker_client.close()


async def test_a_refused_token_is_a_failed_login() -> None:
    with pytest.raises(aiokafka.errors.SaslAuthenticationFailed, match="the token is refused: expired"):
        await TokenLogin(sasl_oauth_token_provider=None).step(b"expired")


async def test_who_gives_up_in_the_middle_of_a_tls_connection_leaves_no_socket_behind(tmp_path: Path) -> None:
    """A connection that kept a freed descriptor once met the next connection with the same number."""
    authority, file = Authority(), tmp_path / "server.pem"
    issued = authority.issue("server")
    file.write_text(issued.key_pem + issued.chain_pem)
    shown, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    shown.load_cert_chain(file)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    there = set[asyncio.StreamWriter]()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there.add(writer)
        with contextlib.suppress(OSError):
            await reader.read()
        there.discard(writer)
        writer.close()

    async with await asyncio.start_server(hold, "127.0.0.1", 0, ssl=shown) as server:
        port = server.sockets[0].getsockname()[1]
        for turns in range(100):
            connection = ClientConnection("127.0.0.1", port, security_protocol="SSL", ssl_context=trusting)
            connecting = asyncio.ensure_future(connection.connect())
            for _ in range(turns):
                await asyncio.sleep(0)
            has_begun = connection.connected()
            connecting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await connecting
            if has_begun:  # all steps of the connection have been cancelled once
                connection.close()
                break
        else:
            pytest.fail("it never came to a connection")
        await eventually(lambda: not there, seconds=10, what="all are closed")


async def test_who_is_cancelled_while_it_closes_a_client_is_cancelled() -> None:
    """The library takes the cancellation for that of the task which it ends itself, and continues."""
    client = BrokerClient(bootstrap_servers=f"127.0.0.1:{closed_port()}")
    ending = asyncio.Event()

    async def slow_to_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await asyncio.sleep(0.05)  # as a task that closes a connection does

    client._sync_task = asyncio.create_task(slow_to_end())
    await asyncio.sleep(0)
    closing = asyncio.create_task(client.close())
    await ending.wait()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing

"""The clients' own connections: which class they are of, and what is known when none can be had."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import aiokafka.client
import aiokafka.conn
import pytest
from aiokafka.errors import KafkaConnectionError

from keelman.kafka.bootstrap_errors import NoneAnswered, bootstrap_errors
from keelman.kafka.broker_client import BrokerAdminClient, BrokerClient
from keelman.kafka.clients import admin_client
from keelman.kafka.security.reauthentication import TokenLogin
from keelman.model.errors import Unavailable


@contextlib.asynccontextmanager
async def hanging_up() -> AsyncIterator[int]:
    """The port of a server that takes each connection and closes it at the first question."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def test_the_library_keeps_its_own_names() -> None:
    assert aiokafka.client.create_conn is aiokafka.conn.create_conn
    for name in ("create_conn", "OAuthAuthenticator", "AIOKafkaConnection"):
        assert getattr(aiokafka.conn, name).__module__.startswith("aiokafka.")


async def test_an_admin_client_connects_as_the_others_do() -> None:
    made = BrokerAdminClient(bootstrap_servers=["127.0.0.1:1"], client_id="t")
    assert isinstance(made._client, BrokerClient)
    await made.close()


async def test_what_a_broker_said_is_raised_with_its_address_and_a_hint() -> None:
    async with hanging_up() as port:
        made = BrokerClient(bootstrap_servers=[f"127.0.0.1:{port}"], client_id="t", request_timeout_ms=5000)
        with pytest.raises(KafkaConnectionError, match=rf"127\.0\.0\.1:{port}: .*\(perhaps .*security\.protocol\)"):
            async with bootstrap_errors({}):
                await made.bootstrap()
        with pytest.raises(NoneAnswered):  # outside of a first contact
            await made.bootstrap()
        await made.close()


async def test_an_unreachable_address_is_named() -> None:
    port = closed_port()
    with pytest.raises(Unavailable, match=f"no broker answers at 127.0.0.1:{port}: .*"):
        async with admin_client({"bootstrap.servers": f"127.0.0.1:{port}"}, client_id="t"):
            raise AssertionError("it was reached")


async def test_a_broker_that_is_not_in_the_metadata_has_no_connection() -> None:
    made = BrokerClient(bootstrap_servers=["127.0.0.1:1"], client_id="t")
    assert await made._get_conn(7) is None
    await made.close()


async def test_a_refused_token_is_a_failed_login() -> None:
    with pytest.raises(aiokafka.errors.SaslAuthenticationFailed, match="the token is refused: expired"):
        await TokenLogin(sasl_oauth_token_provider=None).step(b"expired")

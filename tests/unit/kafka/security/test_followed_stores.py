"""Key and trust stores that are replaced while clients run: later connections use the new ones."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from keelman.kafka.security.tls_sasl import for_aiokafka
from keelman.model.errors import InvalidArgument
from support.certificates import PASSWORD, Authority, Issued


@contextlib.asynccontextmanager
async def server(issued: Issued, folder: Path) -> AsyncIterator[int]:
    """A server that shows this certificate and hangs up; yields its port."""
    pair = folder / "pair.pem"
    pair.write_text(issued.key_pem + issued.chain_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    running = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with running:
        yield running.sockets[0].getsockname()[1]


async def connected(port: int, context: ssl.SSLContext) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    except ssl.SSLError:
        return False
    writer.close()
    return True


def connects(port: int, context: ssl.SSLContext) -> bool:
    """As `connected`, but blocking, for a thread."""
    try:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            context.wrap_socket(connection, server_hostname="127.0.0.1").close()
    except ssl.SSLError:
        return False
    return True


def properties(store: Path) -> dict[str, str]:
    where = {"ssl.truststore.location": str(store), "ssl.truststore.password": PASSWORD}
    return {"security.protocol": "SSL", **where}


def context_of(fields: Mapping[str, str]) -> Any:
    return for_aiokafka(fields)["ssl_context"]


async def test_a_client_trusts_those_who_are_in_its_store_by_now(tmp_path: Path) -> None:
    old, new, store = Authority("old"), Authority("new"), tmp_path / "trust.p12"
    old.write_trust(store)
    context = context_of(properties(store))
    async with server(new.issue("broker", "127.0.0.1"), tmp_path) as port:
        assert not await connected(port, context)
        new.write_trust(tmp_path / "next.p12", old).replace(store)
        assert await connected(port, context)
        assert await asyncio.to_thread(connects, port, context)
    async with server(old.issue("broker", "127.0.0.1"), tmp_path) as port:
        assert await connected(port, context)
        new.write_trust(tmp_path / "last.p12").replace(store)
        assert not await connected(port, context)


async def test_a_store_that_is_half_written_changes_nothing(tmp_path: Path) -> None:
    authority, store = Authority(), tmp_path / "trust.p12"
    context = context_of(properties(authority.write_trust(store)))
    async with server(authority.issue("broker", "127.0.0.1"), tmp_path) as port:
        store.write_bytes(store.read_bytes()[:100])
        assert await connected(port, context)
        store.unlink()
        assert await connected(port, context)


def test_a_store_that_cannot_be_read_at_first_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot be read"):
        context_of(properties(tmp_path / "none.p12"))

"""Sessions that brokers end, after a time or with a token: clients of the brokers do not notice."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from aiokafka.protocol.metadata import MetadataRequest

from keelman.kafka.clients import low_level_client
from keelman.kafka.connections import connection_to
from keelman.kafka.security import reauthentication
from keelman.kafka.security.jaas import SCRAM
from keelman.kafka.security.oauth import ALLOWED_KEY, allow_urls
from keelman.worker.group.farewell import Note
from support.brokers.secure_broker import SECRET, USER, SecureBroker
from support.eventually import eventually
from support.servers.token_server import token_server

pytestmark = pytest.mark.component
SECONDS = 300.0
TOKEN_SECONDS = 10.0
PAUSE_SECONDS = 0.005
Properties = dict[str, str]


def scram(broker: SecureBroker, listener: str) -> Properties:
    return {
        "bootstrap.servers": broker.at(listener),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{SCRAM} required username="{USER}" password="{SECRET}";',
    }


async def sessions(properties: Properties, many: int) -> None:
    """Sends requests to a broker until it has accepted this many connections. Raises KafkaError for a lost request."""
    used: list[Any] = []
    async with low_level_client(properties, client_id="busy", timeout_ms=30_000) as client:
        node = client.get_random_node()
        async with asyncio.timeout(SECONDS):
            while len(used) < many:
                connection = await connection_to(client, node)
                if connection not in used:
                    used.append(connection)
                assert await connection.ask(MetadataRequest([]))
                await asyncio.sleep(PAUSE_SECONDS)  # otherwise it takes a processor, and so does the broker
        await eventually(
            lambda: all(connection._writer is None for connection in used[:-1]), what="those before are closed"
        )


async def test_no_request_is_lost_when_a_broker_ends_sessions(
    broker: SecureBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reauthentication, "PARTS", (0.4, 0.5))  # so short a session is soon over
    await sessions(scram(broker, "SHORT"), 3)


async def test_no_request_is_lost_when_tokens_end(broker: SecureBroker) -> None:
    with token_server() as server:
        allow_urls(server.url)
        server.life_seconds = TOKEN_SECONDS
        await sessions(broker.with_tokens_of(server.url), 3)
        assert len(server.asked) >= 3, "with a token of its own each"


async def test_what_is_asked_before_a_session_ends_is_answered(broker: SecureBroker) -> None:
    login = scram(broker, "SASL")
    async with low_level_client(login, client_id="asking", timeout_ms=30_000) as client:
        connection: Any = await connection_to(client, client.get_random_node())
        answers = [connection.ask(MetadataRequest([])) for _ in range(3)]
        answers[-1].cancel()
        connection.retire()
        assert not connection.connected()
        async with asyncio.timeout(SECONDS):
            for answer in answers[:-1]:
                assert (await answer).brokers
        await eventually(lambda: connection._writer is None, what="the connection is closed")


async def test_a_farewell_is_said_with_a_token(broker: SecureBroker, tmp_path: Path) -> None:
    """A process of its own sends the farewell; it needs the list of allowed token servers."""
    with token_server() as server:
        properties, member = tmp_path / "worker.properties", tmp_path / "member.json"
        fields = broker.with_tokens_of(server.url) | {ALLOWED_KEY: server.url}
        properties.write_text("".join(f"{key}={value}\n" for key, value in fields.items()))
        Note("gone", "http://w:1/", leader=False, group="g", session_ms=10_000, rebalance_ms=1_000).write(member)
        command = [sys.executable, "-m", "keelman.worker.group.farewell"]
        command += [f"--properties-file={properties}", f"--member-file={member}"]

        async def said() -> bool:
            return await (await asyncio.create_subprocess_exec(*command)).wait() == 0

        await eventually(said, seconds=SECONDS)  # the broker's first group of all takes it a moment
        assert not member.exists()

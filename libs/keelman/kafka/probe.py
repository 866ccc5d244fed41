"""Queries one broker over a single connection without a client's background work: whether it answers and which
certificate it shows; and has it reread its configuration."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from keelman.kafka.topic_requests import ChangeConfig, ConfigChanged
from keelman.model.errors import InvalidArgument, Unavailable

PLAIN: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """A broker's answer: the cluster's registered and unfenced brokers, and its controller's id (-1: none yet)."""

    brokers: tuple[tuple[int, str, int], ...]
    controller: int

    def serves(self, node_id: int) -> bool:
        """True when that broker has joined its cluster and serves clients."""
        return any(node == node_id for node, _, _ in self.brokers)


async def ask_broker(
    host: str, port: int, properties: Mapping[str, str] = PLAIN, *, seconds: float = 2.0
) -> BrokerAnswer | None:
    """Sends one Metadata request without topics; None without an answer in time. `properties` are those of Java's
    clients: how the connection is secured; None, too, if files that they name cannot be used."""
    try:
        async with _connection(host, port, properties, seconds) as connection:
            reply = await connection.send(MetadataRequest([], False))
    except (OSError, TimeoutError, KafkaError, asyncio.IncompleteReadError, InvalidArgument):
        return None
    return BrokerAnswer(tuple((b[0], b[1], b[2]) for b in reply.brokers), int(reply.controller_id))


async def broker_answers(bootstrap: str, *, seconds: float = 2.0) -> bool:
    """True when any of the bootstrap servers (host:port, comma-separated) knows at least one broker; queries all at
    once, as a server whose host is gone is silent."""

    async def answers(server: str) -> bool:
        host, _, port = server.strip().rpartition(":")
        answer = await ask_broker(host.strip("[]"), int(port), seconds=seconds)
        return answer is not None and bool(answer.brokers)

    asking = [asyncio.create_task(answers(server)) for server in bootstrap.split(",")]
    try:
        for answer in asyncio.as_completed(asking):
            if await answer:
                return True
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    return False


async def unset_broker_configs(
    host: str, port: int, node_id: int, keys: Collection[str], properties: Mapping[str, str], *, seconds: float
) -> None:
    """Removes dynamic configurations from the broker with this address and node id, which then uses the ones that it
    was started with. Raises Unavailable with the reason if it does not."""
    try:
        async with _connection(host, port, properties, seconds) as connection:
            answer: ConfigChanged = await connection.send(ChangeConfig(str(node_id), {}, keys, of_broker=True))
    except (OSError, TimeoutError, KafkaError, asyncio.IncompleteReadError) as error:
        raise _not_asked(host, port, error) from None
    if answer.code:
        raise Unavailable(f"the broker at {host}:{port} refused its configuration: {answer.message or answer.code}")


async def ask_certificate(host: str, port: int, properties: Mapping[str, str], *, seconds: float) -> bytes:
    """Returns the certificate, in DER, that the broker shows there. Raises Unavailable."""
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port, ssl=_secured(properties)["ssl_context"])
    except (OSError, TimeoutError) as error:
        raise _not_asked(host, port, error) from None
    try:
        return writer.get_extra_info("ssl_object").getpeercert(binary_form=True) or b""
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def _connection(
    host: str, port: int, properties: Mapping[str, str], seconds: float
) -> AsyncIterator[AIOKafkaConnection]:
    secured = _secured(properties) if properties else {}
    async with asyncio.timeout(seconds):
        connection = await create_conn(
            host, port, client_id="keelman-probe", request_timeout_ms=int(seconds * 1000), **secured
        )
        try:
            yield connection
        finally:
            connection.close()


def _secured(properties: Mapping[str, str]) -> dict[str, Any]:
    from keelman.kafka.security.tls_sasl import for_aiokafka  # noqa: PLC0415  (many probes need no TLS)

    return for_aiokafka(properties)


def _not_asked(host: str, port: int, error: BaseException) -> Unavailable:
    return Unavailable(f"the broker at {host}:{port} was not reached: {error or type(error).__name__}")

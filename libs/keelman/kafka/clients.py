"""Kafka clients made from Java's client properties: one place that knows how these map to aiokafka's arguments."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import aiokafka.client
from aiokafka import AIOKafkaClient, AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from aiokafka.helpers import create_ssl_context
from aiokafka.protocol.metadata import MetadataRequest

from keelman.model.errors import InvalidArgument, Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logging import get_logger

log = get_logger()

# The library logs every failed connection, many times a second while brokers are away. What matters is raised too, and
# told by whoever catches it.
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

# The library asks about topics in a way that has brokers make each that is not there: with their own number of
# partitions, before we make it as it should be, and one that was just deleted once more.
aiokafka.client.MetadataRequest = partial(MetadataRequest, allow_auto_topic_creation=False)

Client: TypeAlias = AIOKafkaClient
Consumer: TypeAlias = AIOKafkaConsumer
Producer: TypeAlias = AIOKafkaProducer
Admin: TypeAlias = AIOKafkaAdminClient
ClientError: TypeAlias = KafkaError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_JAAS = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def client_arguments(properties: Mapping[str, str]) -> dict[str, Any]:
    """aiokafka's connection arguments. Raises InvalidArgument naming the property at fault."""
    servers = [s.strip() for s in properties.get("bootstrap.servers", "").split(",") if s.strip()]
    if not servers:
        raise InvalidArgument.of("bootstrap.servers", "", "host:port, comma-separated")
    for server in servers:
        host, _, port = server.rpartition(":")
        if not host or not port.isdigit():
            raise InvalidArgument.of("bootstrap.servers", server, "host:port, comma-separated")
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise InvalidArgument.of("security.protocol", protocol, "one of " + ", ".join(PROTOCOLS))
    arguments: dict[str, Any] = {"bootstrap_servers": servers, "security_protocol": protocol}
    if protocol in ("SSL", "SASL_SSL"):
        arguments["ssl_context"] = _tls(properties)
    if protocol.startswith("SASL"):
        arguments |= _sasl(properties)
    return arguments


def _tls(properties: Mapping[str, str]) -> Any:
    for key in ("ssl.truststore.type", "ssl.keystore.type"):
        if properties.get(key, "PEM").upper() != "PEM":
            raise InvalidArgument.of(key, properties[key], "PEM")
    try:
        return create_ssl_context(
            cafile=properties.get("ssl.truststore.location"),
            certfile=properties.get("ssl.keystore.location"),
            keyfile=properties.get("ssl.keystore.location"),
            password=properties.get("ssl.key.password"),
        )
    except OSError as error:
        raise InvalidArgument(f"ssl.truststore.location or ssl.keystore.location: {error}") from None


def jaas_credentials(text: str) -> dict[str, str]:
    """`username` and `password`, those of them that a `sasl.jaas.config` names, without its escapes."""
    return {found[1]: re.sub(r"\\(.)", r"\1", found[2]) for found in _JAAS.finditer(text)}


def _sasl(properties: Mapping[str, str]) -> dict[str, Any]:
    mechanism = properties.get("sasl.mechanism", "PLAIN").upper()
    if mechanism not in MECHANISMS:
        raise InvalidArgument.of("sasl.mechanism", mechanism, "one of " + ", ".join(MECHANISMS))
    fields = jaas_credentials(properties.get("sasl.jaas.config", ""))
    if set(fields) != {"username", "password"}:
        raise InvalidArgument('sasl.jaas.config: not legal: a login module with username="..." password="..."')
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": fields["username"],
        "sasl_plain_password": fields["password"],
    }


@contextlib.asynccontextmanager
async def admin_client(properties: Mapping[str, str], *, client_id: str) -> AsyncIterator[Admin]:
    """A started admin client. Raises Unavailable when no broker answers."""
    made = AIOKafkaAdminClient(**client_arguments(properties), client_id=client_id, request_timeout_ms=30_000)
    try:
        await _started(made.start(), properties)
        yield made
    finally:
        await made.close()


@contextlib.asynccontextmanager
async def low_level_client(properties: Mapping[str, str], *, client_id: str, timeout_ms: int) -> AsyncIterator[Client]:
    """A bootstrapped client that sends single requests. Raises Unavailable when no broker answers."""
    made = await open_client(properties, client_id=client_id, timeout_ms=timeout_ms)
    try:
        yield made
    finally:
        await made.close()


async def open_client(properties: Mapping[str, str], *, client_id: str, timeout_ms: int) -> Client:
    """The same for one who closes it himself. Raises Unavailable when no broker answers."""
    made = AIOKafkaClient(**client_arguments(properties), client_id=client_id, request_timeout_ms=timeout_ms)
    try:
        await _started(made.bootstrap(), properties)
    except BaseException:
        await made.close()
        raise
    return made


@contextlib.asynccontextmanager
async def producer(
    properties: Mapping[str, str], *, client_id: str, transactional_id: str | None = None
) -> AsyncIterator[Producer]:
    """A started idempotent producer that partitions as Java does; with a transactional id its predecessor is fenced."""
    made = AIOKafkaProducer(
        **client_arguments(properties),
        client_id=client_id,
        acks="all",
        enable_idempotence=True,
        transactional_id=transactional_id,
        transaction_timeout_ms=10_000,
        linger_ms=0,
    )
    try:
        await _started(made.start(), properties)
        yield made
    finally:
        await made.stop()


def consumer(properties: Mapping[str, str], *, client_id: str, read_committed: bool) -> Consumer:
    """A consumer without a group, not started."""
    return AIOKafkaConsumer(
        **client_arguments(properties),
        client_id=client_id,
        isolation_level="read_committed" if read_committed else "read_uncommitted",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=500,
    )


async def wait_for_brokers(properties: Mapping[str, str], *, client_id: str) -> str:
    """Waits until a broker answers, however long, telling so now and then; returns the Kafka cluster's id."""
    backoff = Backoff(first=0.1, most=2.0)
    tries = 0
    while True:
        try:
            async with admin_client(properties, client_id=client_id) as admin:
                return str((await admin.describe_cluster())["cluster_id"])
        except (Unavailable, KafkaError, OSError) as error:
            if tries % 15 == 0:
                log.info("waiting_for_brokers", servers=properties.get("bootstrap.servers"), error=str(error))
            tries += 1
            await asyncio.sleep(backoff.next())


async def _started(starting: Any, properties: Mapping[str, str]) -> None:
    try:
        await starting
    except (KafkaError, OSError) as error:
        servers = properties.get("bootstrap.servers")
        raise Unavailable(f"no broker answers at {servers}: {error}", reason="NO_BROKER") from None

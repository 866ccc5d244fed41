"""Makes Kafka clients from Java's client properties, and finds why the brokers refused one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeAlias

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError

from keelman.kafka.bootstrap_errors import NoToken, TokenProvider, bootstrap_errors, text_of
from keelman.kafka.broker_client import BrokerAdminClient, BrokerClient
from keelman.kafka.properties.keys import Servers
from keelman.kafka.properties.settings import aiokafka_settings
from keelman.kafka.security import tls_sasl as security
from keelman.model.errors import Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger

log = get_logger()

# The library logs every failed connection, many times a second while brokers are away. Relevant errors are raised too,
# and logged by the code that catches them.
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

Client: TypeAlias = BrokerClient
Admin: TypeAlias = BrokerAdminClient
ClientError: TypeAlias = KafkaError
TooOld: TypeAlias = IncompatibleBrokerVersion
"""Raised for a request that the broker does not support."""


def client_arguments(properties: Mapping[str, str]) -> dict[str, Any]:
    """Returns aiokafka's connection arguments. Raises InvalidArgument naming the property at fault."""
    servers = Servers().of("bootstrap.servers", properties.get("bootstrap.servers", "")).split(",")
    arguments = {"bootstrap_servers": servers, **aiokafka_settings(properties), **security.for_aiokafka(properties)}
    if arguments.get("sasl_mechanism") == "OAUTHBEARER":
        arguments["sasl_oauth_token_provider"] = TokenProvider(security.tokens(properties))
    return arguments


@contextlib.asynccontextmanager
async def admin_client(properties: Mapping[str, str], *, client_id: str) -> AsyncIterator[Admin]:
    """Yields a started admin client. Raises Unavailable if no broker answers, Unauthenticated if none accepts it."""
    client = BrokerAdminClient(**client_arguments(properties), client_id=client_id, request_timeout_ms=30_000)
    try:
        await _start(client.start(), properties)
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def low_level_client(properties: Mapping[str, str], *, client_id: str, timeout_ms: int) -> AsyncIterator[Client]:
    """Yields a bootstrapped client that sends single requests. Raises Unavailable and Unauthenticated."""
    client = BrokerClient(**client_arguments(properties), client_id=client_id, request_timeout_ms=timeout_ms)
    try:
        await _start(client.bootstrap(), properties)
        yield client
    finally:
        await client.close()


async def wait_for_brokers(properties: Mapping[str, str], *, client_id: str) -> str:
    """Waits until a broker answers, however long, and logs it now and then; returns the Kafka cluster's id.

    Raises Unauthenticated when one answers and refuses this client, or is not trusted: a permanent error.
    """
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


def no_broker(properties: Mapping[str, str], error: BaseException) -> Unavailable:
    """Returns the error to raise if no broker answers, for this reason."""
    if isinstance(error, NoToken):
        return Unavailable(text_of(error), reason="NO_TOKEN")
    servers = properties.get("bootstrap.servers")
    text = text_of(error).removeprefix(f"{servers}: ")
    return Unavailable(f"no broker answers at {servers}: {text}", reason="NO_BROKER")


async def _start(starting: Any, properties: Mapping[str, str]) -> None:
    try:
        async with bootstrap_errors(properties):
            await starting
    except (KafkaError, OSError) as error:
        raise no_broker(properties, error) from None

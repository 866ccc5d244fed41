"""The library's clients with connections of ours, which keep why a broker refused the first one (`bootstrap_errors`)
and retire before their session ends (`security.reauthentication`).

The library names its connection's class in a function, and that function where it connects; so both places where a
client connects are here, as aiokafka 0.14 has them. Its admin client, consumer and producer make a client of their own,
which is replaced before it has done anything.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from aiokafka import AIOKafkaClient, AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import ConnectionGroup
from aiokafka.errors import KafkaError, RequestTimedOutError, StaleMetadata
from aiokafka.protocol.metadata import MetadataRequest

from keelman.kafka.bootstrap_errors import NoneAnswered, connect
from keelman.kafka.security.reauthentication import RenewedConnection

_ARGUMENTS = frozenset(inspect.signature(AIOKafkaClient.__init__).parameters)
_BOOTSTRAP = "bootstrap", ConnectionGroup.DEFAULT


class ClientConnection(RenewedConnection):
    """A connection whose questions about topics do not create them.

    The library's do: the broker creates each topic that is not there with its own number of partitions, before we
    create it as it should be, and a topic that was just deleted once more.
    """

    def send(self, request: Any, expect_response: bool = True) -> Any:
        """Sends a request; an awaitable of its answer. Raises KafkaError where it cannot be sent."""
        if isinstance(request, MetadataRequest):
            request = MetadataRequest(request._topics, allow_auto_topic_creation=False)
        return super().send(request, expect_response)


class BrokerClient(AIOKafkaClient):  # type: ignore[misc]
    """Takes the arguments of the library's. Used in the loop that it was made in."""

    _sync_task: asyncio.Task[None] | None

    async def bootstrap(self) -> None:
        """Learns the brokers from the first of the bootstrap servers that answers. Raises NoneAnswered."""
        for host, port, _ in self.hosts:
            try:
                connection = await self._connect(host, port)
            except (KafkaError, OSError):
                continue
            try:
                metadata = await connection.send(MetadataRequest([]))
            except (KafkaError, OSError):
                connection.close()
                continue
            self.cluster.update_metadata(metadata)
            if self.cluster.brokers():
                connection.close()
            else:  # a cluster without topics may name no brokers: the connection serves until it does
                self._conns[_BOOTSTRAP] = connection
            break
        else:
            raise NoneAnswered(f"none of {self.hosts} answers")
        if self._sync_task is None:
            self._sync_task = asyncio.create_task(self._md_synchronizer())

    async def _get_conn(
        self, node_id: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT, no_hint: bool = False
    ) -> Any | None:
        """The connection to a broker, made where there is none; None when it cannot be had."""
        key = node_id, group
        found = self._conns.get(key)
        if found is not None:
            if found.connected():
                return found
            del self._conns[key]
        try:
            broker = self.cluster.broker_metadata(node_id)
            if broker is None:
                raise StaleMetadata(f"broker {node_id} is not in the metadata")
            async with self._get_conn_lock:
                if key not in self._conns:
                    self._conns[key] = await self._connect(broker.host, broker.port, self._on_connection_closed)
                return self._conns[key]
        except (KafkaError, OSError):
            self.force_metadata_update()  # perhaps it has moved
            return None

    async def send(self, node_id: Any, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT) -> Any:
        """The broker's answer. Raises KafkaError.

        The library closes the connection of a request that had no answer in time, and looks for it by its broker.
        Another request that timed out in the same moment may have closed it and begun to connect again: then there is
        none, and the KeyError would end the sender, for example the client's own task that follows the brokers.
        """
        try:
            return await super().send(node_id, request, group=group)
        except KeyError as error:
            if error.args != ((node_id, group),):
                raise
            raise RequestTimedOutError from None

    async def _connect(self, host: str, port: int, on_close: Callable[..., None] | None = None) -> ClientConnection:
        """A new connection, with its session begun. Raises KafkaError and OSError."""
        made = ClientConnection(
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
        await connect(made)
        return made


class BrokerAdminClient(AIOKafkaAdminClient):  # type: ignore[misc]
    """Takes the arguments of the library's."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._client = _client(arguments)


class BrokerConsumer(AIOKafkaConsumer):  # type: ignore[misc]
    """Takes the arguments of the library's, but no topics."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._client = _client(arguments)


class BrokerProducer(AIOKafkaProducer):  # type: ignore[misc]
    """Takes the arguments of the library's."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.client = self._sender.client = _client(arguments)
        self.client.cluster = self._metadata  # what the producer's other parts hold already


def _client(arguments: Mapping[str, Any]) -> BrokerClient:
    return BrokerClient(**{name: value for name, value in arguments.items() if name in _ARGUMENTS})

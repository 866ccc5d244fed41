"""Sends requests to the coordinator of a transactional id, and retries until it gives a conclusive answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from aiokafka.errors import BrokerResponseError, IncompatibleBrokerVersion, KafkaError

from keelman.kafka.answers import Answer
from keelman.kafka.batches.produce_failure import (
    AGAIN,
    COORDINATOR_MOVED,
    ID_DENIED,
    NETWORK,
    UNSUPPORTED,
    ProduceFailure,
    delay,
    first_delay,
)
from keelman.kafka.batches.producer_requests import AddPartitionsAnswer
from keelman.kafka.clients import Client
from keelman.kafka.connections import connection_to, give_up, open_connection
from keelman.kafka.coordinator_lookup import TRANSACTION, coordinator_of
from keelman.kafka.wire.requests import WireRequest


class CoordinatorAnswer(Protocol):
    """An answer of a coordinator, by the field that all of them have."""

    @property
    def error_code(self) -> int:
        """Kafka's error code, 0 for none."""


A = TypeVar("A", bound=CoordinatorAnswer)


class BegunRequest(NamedTuple):
    """A request that is under way."""

    connection: Any
    answer: Answer


class Coordinator:
    """Used in one loop. Without a transactional id any broker will do."""

    def __init__(self, client: Client, transactional_id: str | None, attempt_seconds: float) -> None:
        """`attempt_seconds` limits an attempt: without an answer it is given up together with its connection."""
        self._client = client
        self._transactional_id = transactional_id
        self._attempt_seconds = attempt_seconds
        self._node: int | None = None
        self.losses = 0
        """The number of requests that may have arrived and had no answer."""

    def prepared(self, request: WireRequest) -> Callable[[], BegunRequest] | None:
        """Returns a function that sends the request at once, to be called once; None without an open connection.

        The function raises KafkaError and OSError where the request cannot be sent.
        """
        connection = None if self._node is None else open_connection(self._client, self._node)
        try:
            send = None if connection is None else connection.prepared(request)
        except IncompatibleBrokerVersion:  # `ask` raises its error
            return None
        return None if send is None else lambda: BegunRequest(connection, send())

    async def ask(
        self,
        request: WireRequest,
        answer: type[A],
        *,
        seconds: float,
        repeated: bool = True,
        begun: BegunRequest | None = None,
    ) -> A:
        """Returns an answer without an error. Retries transient errors until the time is over.

        With `repeated` false a request that may have arrived is not sent again. `begun`: the request already sent.
        Raises ProduceFailure.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        tries = 0
        while True:
            code, text, arrived = NETWORK, "the transaction coordinator cannot be reached", False
            try:
                attempt = self._attempt_seconds if repeated else seconds
                sent, begun = begun or await self._send(request, deadline - clock()), None
                broker_answer = await self._answer(sent, attempt)
            except IncompatibleBrokerVersion as error:
                raise ProduceFailure(UNSUPPORTED, str(error)) from None
            except Lost as error:
                self.losses += 1
                text = f"the transaction coordinator did not answer: {error}"
                if not repeated:
                    raise ProduceFailure(NETWORK, text) from None
            except (KafkaError, OSError, TimeoutError) as error:
                code = error.errno if isinstance(error, BrokerResponseError) else NETWORK
                text = f"{text}: {error!r}"
            else:
                code, text, arrived = broker_answer.error_code, type(request).__name__, True
                if not code:
                    return cast("A", broker_answer)
                if isinstance(broker_answer, AddPartitionsAnswer):
                    text = broker_answer.refused
            if code == ID_DENIED:
                text = f"the brokers' access rules keep this client out of transactional id {self._transactional_id!r}"
            if code in COORDINATOR_MOVED or code == NETWORK:
                self._node = None
            if code not in AGAIN or (code == NETWORK and arrived and not repeated) or clock() >= deadline:
                raise ProduceFailure(code, text)
            await asyncio.sleep(delay(tries, first_delay(code)))
            tries += 1

    async def _send(self, request: WireRequest, seconds: float) -> BegunRequest:
        """Sends the request. Any error that it raises means that the request cannot have arrived."""
        async with asyncio.timeout(min(seconds, self._attempt_seconds)):
            if self._node is None:
                self._node = await self._find()
            connection = await connection_to(self._client, self._node)
            if connection is None:
                raise ConnectionError(f"no connection to broker {self._node}")
        return BegunRequest(connection, connection.ask(request))

    async def _answer(self, sent: BegunRequest, attempt: float) -> CoordinatorAnswer:
        """Waits for the answer. Raises Lost: the request may have arrived."""
        try:
            async with asyncio.timeout(attempt):
                return cast("CoordinatorAnswer", await sent.answer)
        except TimeoutError:
            give_up(sent.connection)
            raise Lost(f"no answer within {attempt:g} s") from None
        except (KafkaError, OSError) as error:
            raise Lost(str(error)) from None

    async def _find(self) -> int:
        node = self._client.get_random_node()
        if node is None:
            raise ConnectionError("no broker is known")
        if self._transactional_id is None:
            return int(node)
        return await coordinator_of(self._client, TRANSACTION, self._transactional_id)


class Lost(Exception):
    """A request went out and was not answered."""

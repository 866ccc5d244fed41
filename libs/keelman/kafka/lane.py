"""The way of a producer's record batches to one broker: a connection for them alone, and what is under way on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError

from keelman.kafka.clients import Client
from keelman.kafka.connections import BATCHES, asked, connection_to, give_up
from keelman.kafka.produce_failure import NETWORK, delay, first_delay
from keelman.kafka.wire import Produce, Produced
from keelman.runtime.background import Background

Told: TypeAlias = Callable[[list[Produced], str], None]


class Lane:
    """Used in the loop it was made in."""

    def __init__(self, client: Client, node: int, background: Background, changed: Callable[[], None]) -> None:
        """`changed` is called when the connection was made, or could not be."""
        self.in_flight = 0
        self.retry_at = 0.0
        """When a connection may be tried next."""
        self._client = client
        self._node = node
        self._background = background
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._connection: Any | None = None
        self._connecting = False
        self._tries = 0

    @property
    def open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None and bool(self._connection.connected())

    def connect(self) -> None:
        """Makes a connection anew, once nothing waits for an answer on the old one."""
        if not self._connecting and not self.in_flight:
            self._connecting = True
            self._background.start(self._connected())

    def ask(self, request: Produce, seconds: float, told: Told) -> None:
        """Sends a request. `told` is called, not from in here, with what the answer says of each partition, or with
        nothing and why there is none; a connection that gives none in time is given up.

        Raises IncompatibleBrokerVersion.
        """
        connection = self._connection
        self.in_flight += 1
        try:
            answer = asked(connection, request)
        except IncompatibleBrokerVersion:
            self.in_flight -= 1
            raise
        except (KafkaError, OSError) as error:  # the connection is lost meanwhile
            answer = self._loop.create_future()
            answer.set_exception(error)
        patience = self._loop.call_later(seconds, _late, connection, answer, seconds)
        answer.add_done_callback(partial(self._answered, patience, told))

    def _answered(self, patience: asyncio.TimerHandle, told: Told, answer: asyncio.Future[Any]) -> None:
        patience.cancel()
        self.in_flight -= 1
        error = answer.exception()
        if error is None:
            told(answer.result().parts, "")
        else:
            told([], str(error) if isinstance(error, TimeoutError) else repr(error))

    async def _connected(self) -> None:
        try:
            self._connection = await connection_to(self._client, self._node, BATCHES)
        finally:
            self._connecting = False
        if self._connection is None:
            self.retry_at = self._loop.time() + delay(self._tries, first_delay(NETWORK))
            self._tries += 1
        else:
            self._tries = 0
        self._changed()


def _late(connection: Any, answer: asyncio.Future[Any], seconds: float) -> None:
    if not answer.done():
        answer.set_exception(TimeoutError(f"no answer within {seconds * 1000:.0f} ms"))
        give_up(connection)

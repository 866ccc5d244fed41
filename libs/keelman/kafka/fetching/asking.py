"""Sends one request after the other to one broker, with its time limits but without a timer for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiokafka.errors import NodeNotReadyError, RequestTimedOutError

from keelman.kafka.answers import Answer
from keelman.kafka.clients import Client
from keelman.kafka.connections import connection_to, give_up, open_connection
from keelman.runtime.alarm import Alarm

OVERDUE_SECONDS, OVERDUE_AGAIN_SECONDS = 2.0, 1.0
"""An answer so much later than the broker's own wait may never come: `overdue` is called, and repeated at this
interval."""


class Asking:
    """Used in one loop."""

    def __init__(self, client: Client, node: int, overdue: Callable[[], object]) -> None:
        self._client = client
        self._node = node
        self._overdue = overdue
        self._late = Alarm(self._is_late)
        self._limit = Alarm(self._give_up)
        self._under_way: tuple[Any, Answer] | None = None

    async def ask(self, request: Any, wait_seconds: float) -> Any:
        """Returns the broker's answer, which the broker may delay for `wait_seconds`. Raises KafkaError."""
        self._late.set(wait_seconds + OVERDUE_SECONDS)
        try:
            connection = open_connection(self._client, self._node) or await connection_to(self._client, self._node)
            if connection is None:
                raise NodeNotReadyError(f"no connection to broker {self._node}")
            answer = connection.ask(request)
            self._under_way = connection, answer
            self._limit.set(self._client._request_timeout_ms / 1000)
            return await answer
        finally:
            self._under_way = None
            self._late.off()
            self._limit.off()

    def close(self) -> None:
        """Removes its timers from the loop."""
        self._late.close()
        self._limit.close()

    def _is_late(self) -> None:
        self._overdue()
        self._late.set(OVERDUE_AGAIN_SECONDS)

    def _give_up(self) -> None:
        if self._under_way is not None:
            connection, answer = self._under_way
            if not answer.done():
                answer.set_exception(RequestTimedOutError())
            give_up(connection)

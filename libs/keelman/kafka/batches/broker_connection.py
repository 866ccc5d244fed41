"""Sends a producer's record batches to one broker, on a connection of their own, and tracks the requests under way."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError

from keelman.kafka.batches.produce_failure import NETWORK, delay, first_delay
from keelman.kafka.batches.producer_requests import Produce, Produced
from keelman.kafka.clients import Client
from keelman.kafka.connections import BATCHES, connection_to, give_up, unsent_bytes
from keelman.runtime.background import Background

OnAnswer: TypeAlias = Callable[[list[Produced], str], None]
OVERDUE_SECONDS, OVERDUE_AGAIN_SECONDS = 3.0, 1.0
"""A broker without an answer for so long may be gone, or wait for a lost replica; and the interval of later checks."""


class BrokerConnection:
    """Used in the loop it was made in."""

    def __init__(self, client: Client, node: int, background: Background, changed: Callable[[], None]) -> None:
        """`changed` is called when a connection was opened, or could not be."""
        self.in_flight = 0
        self.retry_at = 0.0
        """The time of the next connection attempt."""
        self.throttled_until = 0.0
        """Until then the broker reads nothing from the connection: a quota is exceeded."""
        self._client = client
        self._node = node
        self._background = background
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._connection: Any | None = None
        self._connecting = False
        self._tries = 0
        self._unsent = 0
        self._moved_at = 0.0

    @property
    def open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None and bool(self._connection.connected())

    def connect(self) -> None:
        """Opens a new connection once no request waits for an answer on the old one."""
        if not self._connecting and not self.in_flight:
            self._connecting = True
            self._background.start(self._connect())

    def ask(
        self,
        request: Produce,
        seconds: float,
        on_answer: OnAnswer,
        until: float = math.inf,
        *,
        overdue: Callable[[], None],
    ) -> None:
        """Sends a request. `on_answer` is called later with the answer for each partition, or with
        nothing and the reason; `overdue` is called each time that some seconds have passed without an answer.

        A connection is given up if, for `seconds`, it has given no answer and taken no byte without a quota muting
        it, and at `until` in any case: over a slow link each of several requests may take long. Raises
        IncompatibleBrokerVersion.
        """
        connection = self._connection
        assert connection is not None  # the caller has checked that it is open
        self.in_flight += 1
        try:
            answer = connection.ask(request)
        except IncompatibleBrokerVersion:
            self.in_flight -= 1
            raise
        except (KafkaError, OSError) as error:  # the connection is lost meanwhile
            answer = self._loop.create_future()
            answer.set_exception(error)
        self._unsent = unsent_bytes(connection)
        patience = _Patience(seconds, until, overdue)
        patience.timer = self._loop.call_later(seconds, self._look, connection, answer, patience)
        patience.overdue_timer = self._loop.call_later(OVERDUE_SECONDS, self._late, patience)
        answer.add_done_callback(partial(self._answered, patience, on_answer))

    def _late(self, patience: _Patience) -> None:
        patience.overdue_timer = self._loop.call_later(OVERDUE_AGAIN_SECONDS, self._late, patience)
        patience.overdue()

    def give_up(self) -> None:
        """Stops waiting for all requests under way: other brokers lead all of their partitions now."""
        if self._connection is not None:
            give_up(self._connection)

    def _look(self, connection: Any, answer: asyncio.Future[Any], patience: _Patience) -> None:
        """Checks whether there is a reason to wait longer for an answer."""
        if answer.done():
            return
        now, unsent = self._loop.time(), unsent_bytes(connection)
        if unsent < self._unsent:
            self._moved_at = now
        self._unsent = unsent
        due = min(patience.until, max(self._moved_at, self.throttled_until) + patience.seconds)
        if due > now:
            patience.timer = self._loop.call_at(due, self._look, connection, answer, patience)
        else:
            answer.set_exception(TimeoutError(f"no answer within {patience.seconds * 1000:.0f} ms"))
            give_up(connection)

    def _answered(self, patience: _Patience, on_answer: OnAnswer, answer: asyncio.Future[Any]) -> None:
        self.in_flight -= 1
        error = answer.exception()
        if error is None:
            result, self._moved_at = answer.result(), self._loop.time()
            if result.throttle_ms > 0:
                self.throttled_until = self._moved_at + result.throttle_ms / 1000
            on_answer(result.parts, "")
        else:
            on_answer([], str(error) if isinstance(error, TimeoutError) else repr(error))
        for timer in (patience.timer, patience.overdue_timer):
            if timer is not None:
                timer.cancel()

    async def _connect(self) -> None:
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


@dataclass(slots=True)
class _Patience:
    """The time limits of one answer: `seconds` without any progress, and never beyond `until`."""

    seconds: float
    until: float
    overdue: Callable[[], None]
    timer: asyncio.TimerHandle | None = None
    overdue_timer: asyncio.TimerHandle | None = None

"""Sends the audit's events to the state service in batches, beside the calls that they are of."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import islice
from typing import TypeAlias

from keelman.api.event.v1.audit_event_pb2 import AuditEvent
from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import Siblings

log = get_logger()
MAX_EVENTS = 10_000
"""The number of events that wait while no state service can be reached; later ones are counted."""
AT_ONCE = 500
PAUSE_SECONDS = 0.5
"""The time between two batches."""
LAST_SECONDS = 2.0
"""The time for the events that are left when the gateway ends."""
Record: TypeAlias = Callable[[Sequence[AuditEvent]], Awaitable[None]]
"""Stores events; a repeated one once. Raises a KeelmanError if they may not be stored."""


class AuditQueue:
    """Events on their way to the state service. Used in one loop."""

    def __init__(self, max_events: int = MAX_EVENTS) -> None:
        self._max = max_events
        self._events: deque[AuditEvent] = deque()
        self._left_out = 0
        self._some = asyncio.Event()

    def add(self, event: AuditEvent) -> None:
        """Takes an event and returns at once. If too many wait, the event is only counted; the next event in
        the queue has the number."""
        if len(self._events) >= self._max:
            self._left_out += 1 + event.left_out
            return
        event.left_out += self._left_out
        self._left_out = 0
        self._events.append(event)
        self._some.set()

    @contextlib.asynccontextmanager
    async def sending(self, record: Record) -> AsyncIterator[None]:
        """Sends events within the block, and for a moment after it those that are left."""
        async with Siblings() as siblings:
            task = siblings.start(self.send(record), name="audit")
            yield
            task.cancel()
        with contextlib.suppress(KeelmanError, TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                while self._events:
                    await self._send_some(record)

    async def send(self, record: Record) -> None:
        """Sends events until cancelled; after an error the same ones again."""
        backoff = Backoff(first=0.5, most=10.0)
        while True:
            await self._some.wait()
            try:
                await self._send_some(record)
            except KeelmanError as error:
                if backoff.is_new(error.message):
                    log.warning("audit_waits", error=error.message)
                await asyncio.sleep(backoff.next())
            else:
                backoff.reset()
                await asyncio.sleep(PAUSE_SECONDS)

    async def _send_some(self, record: Record) -> None:
        batch = list(islice(self._events, AT_ONCE))
        try:
            await record(batch)
        except InvalidArgument as error:  # it would be refused again
            log.error("audit_refused", error=error.message, events=len(batch))
            self._left_out += sum(1 + event.left_out for event in batch)
        for _ in batch:
            self._events.popleft()
        if not self._events:
            self._some.clear()

"""Holds the present copy run of a task: orders to it, updates from it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.api.copy.v1 import ticket_pb2 as tickets
from keelman.worker.tasks.link import SparkLink

ENDED = (copy.COPY_RUN_STATE_ENDED, copy.COPY_RUN_STATE_FAILED)
CUT_SECONDS = 3.0
LOST = orders.RunUpdate(
    state=copy.COPY_RUN_STATE_FAILED, reason="LINK_LOST", message="the Spark service ended the copy run", retriable=True
)


class RunHandle:
    """One copy run, from its start order to its last update.

    `changed` is set with every update, `topics` grows by those that it reads or writes. `cut_late` tells that it had to
    be cut, since it did not drain in its time.
    """

    def __init__(self, ticket: tickets.StartTicket, link: SparkLink, changed: asyncio.Event, topics: set[str]) -> None:
        self.uid = ticket.run_uid
        self._topics = topics
        self._link = link
        self._changed = changed
        self._updates: deque[orders.RunUpdate] = deque()
        self._last_order: orders.RunOrder | None = None
        self._limits: tickets.Limits | None = None
        self.cut_late = False
        link.send(orders.RunOrder(run_uid=self.uid, start=ticket))

    @property
    def has_updates(self) -> bool:
        """Whether there is an update to take."""
        return bool(self._updates)

    def update(self, update: orders.RunUpdate) -> None:
        """Takes an update from the link."""
        self._updates.append(update)
        self._changed.set()

    def next(self) -> orders.RunUpdate:
        """Returns the oldest update that was not taken yet; there must be one."""
        update = self._updates.popleft()
        self._topics.update(update.topics)
        return update

    def confirm(self, offsets: Sequence[tuple[bytes, bytes]]) -> None:
        """Confirms that the ticket still holds, with the committed offsets."""
        offsets_sent = [tickets.SourceOffset(key=key, value=value) for key, value in offsets]
        self._link.send(orders.RunOrder(run_uid=self.uid, confirm=tickets.Confirmation(offsets=offsets_sent)))

    def limit(self, limits: tickets.Limits) -> None:
        """Sets its limits from now on."""
        self._limits = limits
        self._link.send(orders.RunOrder(run_uid=self.uid, limits=limits))

    def cut(self, reason: str) -> None:
        """Ends it at once."""
        self._order(orders.RunOrder(run_uid=self.uid, cut=orders.Cut(reason=reason)))

    def linked(self) -> None:
        """Sends the last order again when the link, and the copy run with it, is back: it may not have arrived."""
        if self._last_order is not None:
            self._link.send(self._last_order)
        elif self._limits is not None:
            self._link.send(orders.RunOrder(run_uid=self.uid, limits=self._limits))

    async def finish(
        self, reason: str, *, seconds: float, hurried: Callable[[], bool], parked: bool = False
    ) -> orders.RunUpdate | None:
        """Drains it for `seconds`, or until `hurried`, then cuts it; returns its last update, None when that is
        unknown.

        `parked` tells that it ends because its task has nothing to copy.
        """
        if not hurried():
            self._order(orders.RunOrder(run_uid=self.uid, drain=orders.Drain(parked=parked)))
            last = await self._last(seconds, hurried)
            if last is not None:
                return last
            self.cut_late = not hurried()
        self.cut(reason)
        return await self._last(CUT_SECONDS, lambda: False)

    def _order(self, order: orders.RunOrder) -> None:
        self._last_order = order
        self._link.send(order)

    async def _last(self, seconds: float, until: Callable[[], bool]) -> orders.RunUpdate | None:
        try:
            async with asyncio.timeout(seconds):
                while not until():
                    while self.has_updates:
                        update = self.next()
                        if update.state in ENDED:
                            return update
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        return None

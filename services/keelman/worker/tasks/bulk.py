"""Runs the copy runs beside a split task's own, each with a part of its backlog."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.api.copy.v1 import ticket_pb2 as tickets
from keelman.connect.errors import ConnectError
from keelman.engine.reporter import ALL_READ, DRAINED
from keelman.engine.source.split import part_id
from keelman.model.errors import KeelmanError
from keelman.runtime.supervise import supervise
from keelman.worker.tasks.link import SparkLink
from keelman.worker.tasks.run_handle import RunHandle
from keelman.worker.tasks.task_host import PartHost

# A part without a slot for this time is better copied by the task itself.
PLACE_SECONDS = 15.0
CLEAN = (DRAINED, ALL_READ)


@dataclass(slots=True)
class TaskPart:
    """One part's copy run. If it is `over`, it has copied its part and ended by itself."""

    run: RunHandle
    placed: bool = False
    caught_up: bool = False
    over: bool = False


class TaskParts:
    """All parts of one task but its own. Steered by the task's coroutine; nothing here waits but `follow` and `finish`.

    A part that fails is not begun again by itself: the task ends with all its parts, and the next copy run fences them
    and splits the rest again.
    """

    def __init__(
        self, link: SparkLink, changed: asyncio.Event, topics: set[str], host: PartHost, *, grace_seconds: float
    ) -> None:
        """`changed` is set with every update, `topics` grows by those that the parts read or write."""
        self._link = link
        self._changed = changed
        self._topics = topics
        self._host = host
        self._grace = grace_seconds
        self._parts: list[TaskPart] = []
        self._queue: deque[orders.BulkPart] = deque()
        self._share = 1
        self._timer: asyncio.TimerHandle | None = None
        self._late = False

    def __len__(self) -> int:
        return len(self._parts)

    def begin(self, parts: Sequence[orders.BulkPart], bulk: tickets.Bulk) -> orders.RunUpdate | None:
        """Starts a copy run for each part; returns the error when there is no ticket for one.

        There may be more parts of a data set than slots: the others follow when one is over.
        """
        self._late = False
        self._queue = deque(parts)
        parallel = min(len(parts), bulk.slots - 1) if bulk.data else len(parts)
        self._share = parallel if bulk.data else parallel + 1
        if not bulk.data:
            self._timer = asyncio.get_running_loop().call_later(PLACE_SECONDS, self._too_late)
        for number in range(1, parallel + 1):
            part = self._next(number)
            if isinstance(part, orders.RunUpdate):
                return part
            self._parts.append(part)
        return None

    def _next(self, number: int) -> TaskPart | orders.RunUpdate:
        """Starts the copy run of the next part, with the producer of this number."""
        ticket, reason = None, "no ticket for a part"
        try:
            ticket = self._host.ticket(uuid.uuid4().hex)
        except (KeelmanError, ConnectError) as error:
            reason = str(error)
        if ticket is None:
            return orders.RunUpdate(reason="WITHDRAWN", message=reason, retriable=True)
        part = self._queue.popleft()
        next_ticket = part_ticket(ticket, number, self._share, part.task_config)
        return TaskPart(RunHandle(next_ticket, self._link, self._changed, self._topics))

    @property
    def runs(self) -> list[RunHandle]:
        """The parts' copy runs."""
        return [part.run for part in self._parts]

    def find(self, uid: str) -> RunHandle | None:
        """Returns the copy run of this uid."""
        return next((run for run in self.runs if run.uid == uid), None)

    @property
    def has_updates(self) -> bool:
        """Whether there is an update to take."""
        return any(run.has_updates for run in self.runs)

    @property
    def caught_up(self) -> bool:
        """Whether each has reached its end."""
        return not self._queue and all(part.caught_up for part in self._parts)

    @property
    def unplaced(self) -> bool:
        """Whether one has not got a slot in time."""
        return self._late and not all(part.placed for part in self._parts)

    async def follow(self) -> orders.RunUpdate | None:
        """Acts on all updates; returns the last update of a copy run that ended without an order."""
        for at, part in enumerate(self._parts):
            while part.run.has_updates:
                update = part.run.next()
                if update.state == copy.COPY_RUN_STATE_FAILED:
                    return update
                if update.state == copy.COPY_RUN_STATE_ENDED and update.reason == ALL_READ:
                    part.over = part.caught_up = True
                    self._host.on_end(part.run.uid)
                    if self._queue:
                        next_part = self._next(at + 1)
                        if isinstance(next_part, orders.RunUpdate):
                            return next_part
                        self._parts[at] = next_part
                    break
                if update.state == copy.COPY_RUN_STATE_ENDED:
                    return orders.RunUpdate(reason=update.reason, message=update.message, retriable=True)
                part.placed = part.placed or update.state > copy.COPY_RUN_STATE_PENDING
                part.caught_up = part.caught_up or update.caught_up
                if update.state == copy.COPY_RUN_STATE_FENCED:
                    await self._host.answer(part.run)
        return None

    async def finish(self, reason: str) -> bool:
        """Drains all side by side, cuts those that do not end; returns whether none of them can commit any more."""
        if not self._parts:
            return True
        if self._timer is not None:
            self._timer.cancel()
        lasts: list[orders.RunUpdate | None] = []

        async def one(run: RunHandle) -> None:
            lasts.append(await run.finish(reason, seconds=self._grace, hurried=self._host.hurried))
            self._host.on_end(run.uid)

        await supervise(*(partial(one, part.run) for part in self._parts if not part.over))
        count = len(self._parts)
        self._parts.clear()
        self._queue.clear()
        clean = all(last is not None and last.reason in CLEAN for last in lasts)
        return clean or await self._host.fence(count)

    def limit(self, limits: tickets.Limits) -> None:
        """Sets the parts' limits from now on."""
        for run in self.runs:
            run.limit(limits)

    def _too_late(self) -> None:
        self._late = True
        self._changed.set()


def part_ticket(
    ticket: tickets.StartTicket, number: int, parts: int, otherwise: Mapping[str, str]
) -> tickets.StartTicket:
    """Returns the ticket of a part, made from a ticket of its task: another producer, and its share of the limits."""
    new_ticket = tickets.StartTicket()
    new_ticket.CopyFrom(ticket)
    new_ticket.transactional_id = part_id(ticket.transactional_id, number)
    new_ticket.task_config.update(otherwise)
    new_ticket.limits.CopyFrom(shared_limits(ticket.limits, parts))
    new_ticket.bulk.CopyFrom(tickets.Bulk(part=number))
    return new_ticket


def shared_limits(limits: tickets.Limits, parts: int) -> tickets.Limits:
    """Returns the limits of each of a task's copy runs."""
    return tickets.Limits(
        records_per_second=limits.records_per_second / parts, bytes_per_second=limits.bytes_per_second / parts
    )

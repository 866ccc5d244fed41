"""Runs one copy run of a task, with its parts, from the ticket to the end."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.api.copy.v1 import ticket_pb2 as tickets
from keelman.api.copy.v1 import watch_pb2 as wire
from keelman.connect.errors import ConnectError
from keelman.connect.watches import TopicWatch, Watch
from keelman.engine.watches import from_wire, topics_to_wire
from keelman.model.errors import KeelmanError
from keelman.model.work import Work
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import guarded
from keelman.worker.parking.parking import merged
from keelman.worker.tasks.bulk import TaskParts, shared_limits
from keelman.worker.tasks.link import SparkLink
from keelman.worker.tasks.run_handle import RunHandle
from keelman.worker.tasks.start_queue import StartQueue
from keelman.worker.tasks.task_host import PartHost, TaskHost
from keelman.worker.tasks.task_orders import TaskOrders

log = get_logger()
LEASE_SECONDS = 0.1
# A task whose ticket is refused tries again: the longer it has waited, the more seldom.
TICKET_SECONDS = (0.1, 5.0)
# Ends of copy runs that may have left a transaction open, which they no longer commit or abort.
LEFT_OPEN = ("SLOT_LOST", "LINK_LOST")
BEHIND = "waits behind other tasks of its worker"
BROKEN = "TASK_FAILED"  # a fault of ours: the copy run is not to blame
MOVED = "MOVED"  # the Spark service has drained it to give the task another slot


class Copying:
    """The copy runs of one task, one after the other; the task's coroutine calls `once` again and again.

    Calls `copies` with each update that reports that the copy run copies. `slow` tells why the last copy run had to be
    cut; empty when it ended in time.
    """

    def __init__(
        self,
        work: Work,
        orders_: TaskOrders,
        link: SparkLink,
        host: TaskHost,
        *,
        grace_seconds: float,
        copies: Callable[[], None],
        start_queue: StartQueue,
    ) -> None:
        self._names = {"connector": work.connector, "task": work.task}
        self._orders = orders_
        self._link = link
        self._host = host
        self._grace = grace_seconds
        self._copies = copies
        self._start_queue = start_queue
        self.topics: set[str] = set()
        self.watch: Watch | None = None
        self.alone = False
        self.slow = ""
        self.waits_for = ""
        self.may_write = False
        """Whether the present or last copy run was confirmed: it may have begun a transaction."""
        self._run: RunHandle | None = None
        answer = partial(self._answer_fence, part=True)
        part_host = PartHost(host.ticket, answer, host.fence_parts, host.on_end, lambda: orders_.cut)
        self._parts = TaskParts(link, orders_.changed, self.topics, part_host, grace_seconds=grace_seconds)
        self._wanted_parts: Sequence[orders.BulkPart] = ()
        self._caught_up = False
        self._keep_whole = False  # has caught up, or found no slots for its parts: is not split again
        self._parked: wire.TopicWatch | None = None  # the position at its last parking
        self._new = True  # has not had its turn, nor rested in its stead
        self._woken = False  # it is known that there is more to copy

    def find(self, uid: str) -> RunHandle | None:
        """Returns the present copy run of this uid."""
        if self._run is not None and self._run.uid == uid:
            return self._run
        return self._parts.find(uid)

    @property
    def live(self) -> bool:
        """Whether there is a copy run."""
        return self._run is not None

    @property
    def behind(self) -> bool:
        """Whether it waits for its turn."""
        return self.waits_for == BEHIND

    def park(self, watches: Sequence[Watch]) -> None:
        """Drops its watch: these take its place elsewhere, and from them a sink's next copy run knows its position,
        though brokers may have forgotten it by then."""
        self.watch = None
        topics = merged(replace(watch, properties={}) for watch in watches if isinstance(watch, TopicWatch))
        self._parked = next((topics_to_wire(topic) for topic in topics if isinstance(topic, TopicWatch)), None)

    def split_again(self) -> None:
        """Allows a backlog to be split although that was given up before."""
        self._keep_whole = False

    def limit(self, limits: tickets.Limits) -> None:
        """Sets the limits that the present copy runs share from now on."""
        if self._run is not None:
            share = shared_limits(limits, len(self._parts) + 1)
            self._run.limit(share)
            self._parts.limit(share)

    async def once(self) -> orders.RunUpdate | None:
        """Does one copy run; returns its last update when it failed, None when it ended as ordered or another
        follows."""
        try:
            ticket = await self._ask_for_ticket()
            return None if ticket is None else await self._copy(ticket)
        finally:
            self._start_queue.give(self)

    async def _copy(self, ticket: tickets.StartTicket) -> orders.RunUpdate | None:
        orders_ = self._orders
        if self._keep_whole and not ticket.bulk.data:
            ticket.ClearField("bulk")
        self.alone, self.slow, self.waits_for = ticket.HasField("plugin"), "", ""
        self._wanted_parts, self._caught_up, self.may_write = (), False, False
        run = self._run = RunHandle(ticket, self._link, orders_.changed, self.topics)
        try:
            return await guarded(self._steer(run, ticket))
        except Exception:  # they would be without a steerer, and the next copy run needs the slot
            await run.finish(BROKEN, seconds=0.0, hurried=lambda: True)
            await self._parts.finish(BROKEN)
            raise
        finally:
            if orders_.parked:
                orders_.parked = False
                self._host.on_unpark()
            self._forget_run(run)

    async def _steer(self, run: RunHandle, ticket: tickets.StartTicket) -> orders.RunUpdate | None:
        """Returns the result of `once`, after the copy run and all its parts have ended."""
        orders_ = self._orders
        while not (orders_.parked or self._may_join):
            await orders_.until(lambda: run.has_updates or self._parts.has_updates or self._due)
            if orders_.unwanted:
                last = await self._finish(run, "WORKER_STOPS")
                if last is not None and last.reason in LEFT_OPEN and self.may_write:
                    await self._host.fence()
                return None
            if run.has_updates:
                last = await self._follow(run, run.next())
                if last is not None:
                    await self._parts.finish(last.reason)
                    return last
            last = await self._follow_parts(run, ticket)
            if last is not None:
                return last
        self._keep_whole = self._keep_whole or self._may_join
        last = await self._finish(run, "PARKED" if orders_.parked else "WHOLE")
        if last is not None and last.state == copy.COPY_RUN_STATE_FAILED:
            return last
        self._forget_run(run)
        if orders_.parked:
            await self._sleep()
        return None

    async def _sleep(self) -> None:
        """Waits until there is more to copy, or no copy run is wanted."""
        orders_ = self._orders
        await orders_.until(lambda: orders_.woken or orders_.unwanted)
        self._woken = orders_.woken

    async def _rest(self) -> bool:
        """Waits for more to copy where it would wait for its turn; returns whether it did.

        Of ten thousand tasks that a worker gets together most have nothing to copy: they need no copy run, as if they
        had stayed parked, and the others need not wait behind them. Once, with its first offsets; nothing is written on
        the strength of these, so that they need no fence.
        """
        orders_, new, self._new = self._orders, self._new, False
        watch = self._host.resting() if new else None
        if watch is None:
            return False
        self.watch = watch
        self._host.on_idle()
        if not orders_.parked:
            self.watch = None
            return False
        self._start_queue.give(self)
        self.waits_for = ""
        self._copies()
        try:
            await self._sleep()
        finally:
            orders_.parked = False
            self._host.on_unpark()
        return True

    @property
    def _due(self) -> bool:
        return self._orders.unwanted or self._orders.parked or self._may_join

    async def _finish(self, run: RunHandle, reason: str) -> orders.RunUpdate | None:
        if self._wanted_parts and await self._parts.finish(reason):
            run.confirm(())  # the second one: the copy run has reported its parts, so it has had the first
        parked = reason == "PARKED"
        last = await run.finish(reason, seconds=self._grace, hurried=lambda: self._orders.cut, parked=parked)
        if run.cut_late:
            self.slow = f"stop: the task did not end within {self._grace:g} s and was cut"
            log.warning("task_cut", **self._names, seconds=self._grace, ended=last is not None)
        return last

    async def _follow_parts(self, run: RunHandle, ticket: tickets.StartTicket) -> orders.RunUpdate | None:
        """Begins the parts that the copy run has split its backlog into, then acts on their updates.

        Returns the last update of a part that failed, once all else has ended too.
        """
        if self._parts or not self._wanted_parts:
            last = await self._parts.follow()
        else:
            log.info("task_split", **self._names, parts=len(self._wanted_parts) + 1)
            if not ticket.bulk.data:
                run.limit(shared_limits(ticket.limits, len(self._wanted_parts) + 1))
            last = self._parts.begin(self._wanted_parts, ticket.bulk)
        if last is not None:
            await self._finish(run, "PART_FAILED")
        return last

    @property
    def _may_join(self) -> bool:
        """Whether the parts have done their work, or cannot."""
        return bool(self._parts) and (self._parts.unplaced or (self._parts.caught_up and self._caught_up))

    def _forget_run(self, run: RunHandle) -> None:
        """Forgets a copy run that has ended."""
        self._host.on_end(run.uid)
        self._run, self.watch = None, None

    async def _follow(self, run: RunHandle, update: orders.RunUpdate) -> orders.RunUpdate | None:
        """Acts on one update; returns it when it was the copy run's last."""
        self.waits_for = f"{update.reason}: {update.message}" if update.reason else update.message
        if update.state != copy.COPY_RUN_STATE_PENDING:
            self._start_queue.give(self)
        if update.state == copy.COPY_RUN_STATE_FENCED:
            await self._answer_fence(run)
        elif update.state == copy.COPY_RUN_STATE_RUNNING:
            self._copies()
            self.watch = from_wire(update.watch) if update.HasField("watch") else None
            self._wanted_parts, self._caught_up = update.parts, update.caught_up
            if self.watch is not None and not update.parts:
                self._host.on_idle()
        elif update.state == copy.COPY_RUN_STATE_FAILED:
            return update
        elif update.state == copy.COPY_RUN_STATE_ENDED:
            # This worker did not order the end: the Spark service did, and a new ticket continues from there.
            if update.reason == MOVED:
                return update
            return orders.RunUpdate(reason=update.reason, message=update.message, retriable=True)
        return None

    async def _ask_for_ticket(self) -> tickets.StartTicket | None:
        """Returns a ticket, once it is this task's turn, there is a lease and the worker may grant one; None when no
        copy run is wanted any more."""
        orders_, start_queue, refused = self._orders, self._start_queue, 0.0
        while not orders_.unwanted:
            if not start_queue.take(self._host.kind(), self, orders_.changed.set, ahead=self._woken):
                if await self._rest():
                    return None
                self.waits_for = BEHIND
                await orders_.until(lambda: orders_.unwanted or start_queue.has(self))
                continue
            if closed := self._link.closed:  # the same for all: the tasks behind it would try in vain
                self.waits_for = closed
                await orders_.until(lambda: orders_.unwanted, seconds=LEASE_SECONDS)
                continue
            self._new = False
            ticket = self._host.ticket(uuid.uuid4().hex)
            if ticket is not None:
                self._woken = False
                if self._parked is not None and ticket.direction == tickets.COPY_DIRECTION_SINK:
                    ticket.parked.CopyFrom(self._parked)
                return ticket
            start_queue.give(self)
            self.waits_for = "no start ticket: the connector's former tasks are not settled"
            refused = refused or time.monotonic()
            least, most = TICKET_SECONDS
            seconds = min(most, max(least, (time.monotonic() - refused) / 10))
            await orders_.until(lambda: orders_.unwanted, seconds=seconds)
        return None

    async def _answer_fence(self, run: RunHandle, *, part: bool = False) -> None:
        try:
            offsets = await self._host.confirm(part)
        except (KeelmanError, ConnectError) as error:
            log.warning("ticket_unconfirmed", **self._names, error=str(error))
            offsets = None
        if offsets is None:
            run.cut("WITHDRAWN")
        else:
            self.may_write = True
            run.confirm(offsets)

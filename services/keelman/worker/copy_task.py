"""One task of this worker: one copy run after the other, parked in between, tried again when that can help."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.api.copy.v1 import ticket_pb2 as tickets
from keelman.connect.plugin import Watch
from keelman.engine.watches import from_wire
from keelman.kafka.layout import Work
from keelman.model.errors import KeelmanError
from keelman.runtime.backoff import Backoff
from keelman.runtime.logging import get_logger
from keelman.worker import status_state as states
from keelman.worker.bulk import Parts, shared_limits
from keelman.worker.duties import PartDuties, TaskDuties
from keelman.worker.link import SparkLink
from keelman.worker.run_handle import LOST, RunHandle

log = get_logger()
HEALTHY_SECONDS = 60.0
TICKET_SECONDS = 0.1
# Ends of copy runs that may have left a transaction open: nobody commits or aborts it any more.
LEFT_OPEN = ("SLOT_LOST", "LINK_LOST")
MOVED = "MOVED"  # the Spark service has drained it to give the task another slot


class CopyTask:
    """Runs as one asyncio task from assignment to revocation; `pause`, `resume`, `restart` and `end` steer it.

    A parked task is this object, its coroutine and what it waits for: no copy run, no client.
    """

    def __init__(self, work: Work, link: SparkLink, duties: TaskDuties, *, grace_seconds: float) -> None:
        self.work = work
        self._link = link
        self._duties = duties
        self._grace = grace_seconds
        self._changed = asyncio.Event()
        self.topics: set[str] = set()
        self._wanted = states.RUNNING
        self._again = False
        self._ending = False
        self._cut = False
        self._told = ""
        self._park = False
        self._woken = False
        self._run: RunHandle | None = None
        answer = partial(self._answer_fence, part=True)
        part_duties = PartDuties(duties.ticket, answer, duties.fence_parts, duties.ended, lambda: self._cut)
        self._parts = Parts(link, self._changed, self.topics, part_duties, grace_seconds=grace_seconds)
        self._wanted_parts: Sequence[orders.BulkPart] = ()
        self._caught_up = False
        self._keep_whole = False  # has caught up, or found no slots for its parts: is not split again
        self.watch: Watch | None = None
        self.failed = False

    def pause(self) -> None:
        """Drain and stay paused."""
        self._want(states.PAUSED)

    def resume(self) -> None:
        """Copy; the usual state."""
        self._want(states.RUNNING)

    def restart(self) -> None:
        """End the copy run, or forget the failure, and begin a new one."""
        self._again, self._told, self._keep_whole = True, "", False
        self._changed.set()

    def end(self, *, cut: bool = False) -> None:
        """Drain (or cut) and be done: `run` returns when the copy run has ended."""
        self._ending = True
        self._cut = self._cut or cut
        self._changed.set()

    def update(self, update: orders.RunUpdate) -> None:
        """Takes an update of one of its present copy runs."""
        if (run := self._found(update.run_uid)) is not None:
            run.update(update)

    def lost(self, uid: str) -> None:
        """A copy run is gone, and nobody will say so."""
        if (run := self._found(uid)) is not None:
            run.update(LOST)

    def _found(self, uid: str) -> RunHandle | None:
        if self._run is not None and self._run.uid == uid:
            return self._run
        return self._parts.find(uid)

    def look(self) -> None:
        """Something changed that a ticket may have waited for."""
        self._changed.set()

    def park(self) -> None:
        """Drains the copy run, which has nothing to copy, and goes on with a new one at `wake`."""
        self._park, self._woken, self.watch = True, False, None
        self._changed.set()

    def wake(self) -> None:
        """There is something to copy: parked no more."""
        self._woken = True
        self._changed.set()

    def limit(self, limits: tickets.Limits) -> None:
        """The present copy runs may together go no faster from now on."""
        if self._run is not None:
            share = shared_limits(limits, len(self._parts) + 1)
            self._run.limit(share)
            self._parts.limit(share)

    def linked(self, uid: str) -> None:
        """The link stands again, and this copy run with it."""
        if (run := self._found(uid)) is not None:
            run.linked()

    def _want(self, wanted: str) -> None:
        if self._wanted != wanted:
            self._wanted = wanted
            self._changed.set()

    async def run(self) -> None:
        """The task's whole life on this worker."""
        backoff = Backoff(first=0.1, most=10.0)
        self._tell(states.UNASSIGNED, None)
        while not self._ending:
            self._again = False
            if self._wanted == states.PAUSED:
                self._tell(states.PAUSED, None)
                await self._until(lambda: self._wanted != states.PAUSED)
                continue
            begun = time.monotonic()
            last = await self._copy()
            if last is None or last.reason == MOVED:
                continue
            if last.reason in LEFT_OPEN:
                await self._duties.fence()
            if not last.retriable:
                log.warning("task_failed", **self._names, reason=last.reason, error=last.message)
                await self.stay_failed(last.trace or last.message or last.reason)
                continue
            if time.monotonic() - begun > HEALTHY_SECONDS:
                backoff.reset()
            log.info("copy_run_failed", **self._names, reason=last.reason, error=last.message)
            self._tell(states.RESTARTING, last.trace or last.message or None)
            await self._until(lambda: self._unwanted, seconds=backoff.next())

    @property
    def _names(self) -> dict[str, Any]:
        return {"connector": self.work.connector, "task": self.work.task}

    @property
    def ending(self) -> bool:
        """True once `end` was called."""
        return self._ending

    async def stay_failed(self, trace: str) -> None:
        """Stays failed until somebody restarts it, or it ends."""
        self.failed = True
        self._again = False
        self._tell(states.FAILED, trace)
        await self._until(lambda: self._again)
        self.failed = False

    async def _until(self, condition: Callable[[], bool], *, seconds: float | None = None) -> bool:
        """Waits for the condition or the end (True), or for the time (False)."""
        try:
            async with asyncio.timeout(seconds):
                while not (self._ending or condition()):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _tell(self, state: str, trace: str | None) -> None:
        self._told = state
        self._duties.tell(state, trace)

    @property
    def _unwanted(self) -> bool:
        return self._ending or self._again or self._wanted != states.RUNNING

    @property
    def _due(self) -> bool:
        return self._unwanted or self._park or self._may_join

    async def _copy(self) -> orders.RunUpdate | None:
        """One copy run; its last update when it failed, None when it ended as told or is to be followed by another."""
        ticket = await self._granted()
        if ticket is None:
            return None
        if self._keep_whole and not ticket.bulk.data:
            ticket.ClearField("bulk")
        self._wanted_parts, self._caught_up = (), False
        run = self._run = RunHandle(ticket, self._link, self._changed, self.topics)
        try:
            while not (self._park or self._may_join):
                await self._until(lambda: run.told or self._parts.told or self._due)
                if self._unwanted:
                    last = await self._finish(run, "WORKER_STOPS")
                    if last is not None and last.reason in LEFT_OPEN:
                        await self._duties.fence()
                    return None
                if run.told:
                    last = await self._follow(run, run.next())
                    if last is not None:
                        await self._parts.finish(last.reason)
                        return last
                last = await self._follow_parts(run, ticket)
                if last is not None:
                    return last
            self._keep_whole = self._keep_whole or self._may_join
            last = await self._finish(run, "PARKED" if self._park else "WHOLE")
            if last is not None and last.state == copy.COPY_RUN_STATE_FAILED:
                return last
            self._gone(run)
            if self._park:
                await self._until(lambda: self._woken or self._unwanted)
            return None
        finally:
            if self._park:
                self._park = False
                self._duties.left()
            self._gone(run)

    async def _finish(self, run: RunHandle, why: str) -> orders.RunUpdate | None:
        if self._wanted_parts and await self._parts.finish(why):
            run.confirm(())  # the second one: the copy run has told its parts, so it has had the first
        return await run.finish(why, seconds=self._grace, hurried=lambda: self._cut)

    async def _follow_parts(self, run: RunHandle, ticket: tickets.StartTicket) -> orders.RunUpdate | None:
        """Begins the parts that the copy run has split its backlog into, then acts on what they say.

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
        """Whether the parts have done what they are for, or cannot."""
        return bool(self._parts) and (self._parts.unplaced or (self._parts.caught_up and self._caught_up))

    def _gone(self, run: RunHandle) -> None:
        """There is no copy run any more."""
        self._duties.ended(run.uid)
        self._run, self.watch = None, None

    async def _follow(self, run: RunHandle, update: orders.RunUpdate) -> orders.RunUpdate | None:
        """Acts on one update; returns it when it was the copy run's last."""
        if update.state == copy.COPY_RUN_STATE_FENCED:
            await self._answer_fence(run)
        elif update.state == copy.COPY_RUN_STATE_RUNNING:
            if self._told != states.RUNNING:  # a task that was parked has never been anything else
                self._tell(states.RUNNING, None)
            self.watch = from_wire(update.watch) if update.HasField("watch") else None
            self._wanted_parts, self._caught_up = update.parts, update.caught_up
            if self.watch is not None and not update.parts:
                self._duties.idle()
        elif update.state == copy.COPY_RUN_STATE_FAILED:
            return update
        elif update.state == copy.COPY_RUN_STATE_ENDED:
            # Nobody here told it to end: the other side did, and a new ticket goes on where it was.
            if update.reason == MOVED:
                return update
            return orders.RunUpdate(reason=update.reason, message=update.message, retriable=True)
        return None

    async def _granted(self) -> tickets.StartTicket | None:
        """A ticket, once there is a lease and the worker may grant one; None when no copy run is wanted any more."""
        while not self._unwanted:
            if self._link.leased:
                ticket = self._duties.ticket(uuid.uuid4().hex)
                if ticket is not None:
                    return ticket
            await self._until(lambda: self._unwanted, seconds=TICKET_SECONDS)
        return None

    async def _answer_fence(self, run: RunHandle, *, part: bool = False) -> None:
        try:
            offsets = await self._duties.confirm(part)
        except KeelmanError as error:
            log.warning("ticket_unconfirmed", **self._names, error=error.message)
            offsets = None
        if offsets is None:
            run.cut("WITHDRAWN")
        else:
            run.confirm(offsets)

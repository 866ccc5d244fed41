"""Brings copy runs, slots and leases together: the one place where an event of one of them changes the others.

Plain synchronous code on the service's event loop; what it does to the world goes through `Jobs`, mailboxes and links.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_ENDED, COPY_RUN_STATE_FAILED, CopyRun, CopyRunState
from keelman.api.copy.v1.run_order_pb2 import Drain, RunOrder, RunUpdate
from keelman.api.copy.v1.slot_service_pb2 import AttachResponse, SlotBeat, SlotEnd, SlotGreeting
from keelman.model.errors import FailedPrecondition, Unauthenticated
from keelman.runtime.backoff import Backoff
from keelman.runtime.logging import get_logger
from keelman.spark.leases import Leases, Link
from keelman.spark.runs import Owner, Run, RunBook, fold, opened
from keelman.spark.slots import Limits, Place, Slot, SlotState, Wait, choose

log = get_logger()

ENDING_SECONDS = 3.0
STALL_SECONDS = 1.5


class Jobs(Protocol):
    """Starts and cancels the Spark job behind a slot."""

    def start(self, slot: Slot) -> None:
        """Submits the job; `Dispatcher.job_ended` is called when it has ended, for whatever reason."""

    def cancel(self, slot_id: str) -> None:
        """Cancels the job, if it still runs."""


@dataclass(frozen=True, slots=True)
class Times:
    """Time-outs in seconds."""

    lease: float
    beat: float
    slot_idle: float
    slot_start: float


@dataclass(slots=True)
class Trouble:
    """Slots of a worker that did not start."""

    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.5, most=30.0))
    until: float = 0.0
    message: str = ""


class Mailbox:
    """Orders on their way to one slot, and whether its stream is to be closed."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[AttachResponse] = asyncio.Queue()
        self.closed = asyncio.Event()

    def send(self, order: RunOrder) -> None:
        """Sends one order."""
        self.queue.put_nowait(AttachResponse(order=order))

    def end(self, reason: str) -> None:
        """Tells the slot to end."""
        self.queue.put_nowait(AttachResponse(end=SlotEnd(reason=reason)))


class Dispatcher:
    """Owns every copy run, slot and lease of this service."""

    def __init__(
        self,
        jobs: Jobs,
        limits: Limits,
        times: Times,
        *,
        changed: Sequence[Callable[[CopyRun], None]] = (),
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.book = RunBook()
        self.slots: dict[str, Slot] = {}
        self.leases = Leases(times.lease, clock)
        self.draining = False
        self._jobs, self._limits, self._times = jobs, limits, times
        self._listeners, self._clock, self._now = changed, clock, now
        self._mail: dict[str, Mailbox] = {}
        self._ending: dict[str, float] = {}
        self._trouble: dict[Owner, Trouble] = {}
        self._ticked = clock()

    # --- workers

    def greet(self, owner: Owner, link: Link) -> list[Owner]:
        """A worker opened a link. Cuts and returns older incarnations of it; raises Conflict for one of those."""
        old = self.leases.grant(owner, link, [s.owner for s in self.slots.values()])
        for other in old:
            self._end_owner(other, "SUPERSEDED", f"worker {owner.worker} was started anew")
        return old

    def present(self, owner: Owner) -> list[RunUpdate]:
        """The owner's copy runs that have not ended, for the welcome."""
        return [self._last(run) for run in self.book.live(owner)]

    def order(self, owner: Owner, order: RunOrder) -> None:
        """Carries out a worker's order; what cannot be done is answered with a FAILED update."""
        kind, run = order.WhichOneof("order"), self.book.get(order.run_uid)
        if kind == "start":
            self._open(owner, order, run)
        elif run is None or run.owner != owner:
            self._refuse(owner, order.run_uid, "UNKNOWN_RUN", "this Spark service has no such copy run")
        elif not run.live:
            self.leases.tell(owner, run.last)
        else:
            self._pass_on(run, order)

    def _open(self, owner: Owner, order: RunOrder, known: Run | None) -> None:
        order.start.run_uid = order.run_uid
        if known is not None:
            if known.owner == owner:
                self.leases.tell(owner, self._last(known))
            else:
                self._refuse(owner, order.run_uid, "ALREADY_EXISTS", "another worker has a copy run of this uid", False)
        elif self.draining:
            self._refuse(owner, order.run_uid, "STOPPING", "this Spark service is stopping")
        elif not self.leases.stands(owner):
            self._refuse(owner, order.run_uid, "LEASE_LAPSED", "the worker did not renew its lease")
        else:
            run = Run(owner, opened(order.start, self._now()), [order])
            self.book.add(run)
            self._changed(run.copy_run)
            self.place()

    def _pass_on(self, run: Run, order: RunOrder) -> None:
        slot = self.slots.get(run.copy_run.slot)
        if slot is not None and slot.state is SlotState.ATTACHED:
            self._mail[slot.id].send(order)
        elif order.HasField("cut"):
            self._finish(run, COPY_RUN_STATE_ENDED, order.cut.reason or "CUT", "ended before it had a slot")
        elif order.HasField("drain"):
            self._finish(run, COPY_RUN_STATE_ENDED, "DRAINED", "ended before it had a slot")

    def _end_owner(self, owner: Owner, reason: str, message: str) -> None:
        for slot in [s for s in self.slots.values() if s.owner == owner]:
            self.end_slot(slot, reason)
        for run in self.book.live(owner):
            self._finish(run, COPY_RUN_STATE_FAILED, reason, message, retriable=True)
        self._trouble.pop(owner, None)

    # --- slots

    def attach(self, greeting: SlotGreeting) -> tuple[Slot, Mailbox]:
        """A slot calls home. Raises Unauthenticated for a wrong or used token, FailedPrecondition when too late."""
        slot = self.slots.get(greeting.slot)
        if slot is None or not slot.token or not secrets.compare_digest(slot.token.encode(), greeting.token.encode()):
            raise Unauthenticated("wrong or used slot token", reason="SLOT_TOKEN")
        slot.token = ""
        if slot.state is not SlotState.STARTING:
            raise FailedPrecondition(f"slot {slot.id} is to end", reason="SLOT_ENDING")
        now = self._clock()
        slot.state, slot.pid, slot.heard, slot.empty_since = SlotState.ATTACHED, greeting.pid, now, now
        self._trouble.pop(slot.owner, None)
        log.info(
            "slot_attached", slot=slot.id, pid=slot.pid, worker=slot.owner.worker, seconds=round(now - slot.started, 3)
        )
        for uid in sorted(slot.runs):
            run = self.book.get(uid)
            if run is not None:
                self._send_waiting(run, slot)
        return slot, self._mail[slot.id]

    def beat(self, slot: Slot, beat: SlotBeat) -> None:
        """A slot is alive."""
        slot.heard, slot.memory_bytes, slot.cpu_seconds = self._clock(), beat.memory_bytes, beat.cpu_seconds
        silent = [uid for uid in beat.silent_runs if uid in slot.runs]
        if silent:
            self.lost(slot, f"the loop of copy run {silent[0]} gave no sign of life")

    def update(self, slot: Slot, update: RunUpdate) -> None:
        """A slot told something about one of its copy runs; of others it has nothing to say."""
        slot.heard = self._clock()
        run = self.book.get(update.run_uid)
        if run is not None and run.copy_run.slot == slot.id:
            self._apply(run, update)

    def detached(self, slot: Slot) -> None:
        """A slot's stream ended."""
        if slot.usable:
            self.lost(slot, "its link broke")
        self._close(slot)

    def lost(self, slot: Slot, why: str) -> None:
        """Gives a slot up: its copy runs fail, its job is cancelled; its place is free once the job has ended."""
        if not slot.usable:
            return
        log.warning(
            "slot_lost", slot=slot.id, pid=slot.pid, worker=slot.owner.worker, why=why, copy_runs=len(slot.runs)
        )
        self._retire(slot)
        for uid in sorted(slot.runs):
            run = self.book.get(uid)
            if run is not None and run.live:
                message = f"slot {slot.id} was lost: {why}"
                self._finish(run, COPY_RUN_STATE_FAILED, "SLOT_LOST", message, retriable=True)
        self._jobs.cancel(slot.id)
        self._close(slot)
        self.place()

    def end_slot(self, slot: Slot, reason: str) -> None:
        """Tells a slot to end; its job is cancelled when it does not."""
        if not slot.usable:
            return
        attached = slot.state is SlotState.ATTACHED
        self._retire(slot)
        if attached:
            self._mail[slot.id].end(reason)
        else:
            self._jobs.cancel(slot.id)

    def job_ended(self, slot_id: str, error: str) -> None:
        """The job behind a slot ended; `error` is empty when it ended well."""
        slot = self.slots.get(slot_id)
        if slot is None:
            return
        if slot.state is SlotState.STARTING:
            self._start_failed(slot, error or "its process ended before it called home")
        elif slot.state is SlotState.ATTACHED:
            self.lost(slot, error or "its process ended")
        self._close(slot)
        del self.slots[slot_id], self._mail[slot_id]
        self._ending.pop(slot_id, None)
        log.info("slot_ended", slot=slot_id, worker=slot.owner.worker)
        self.place()

    def _start_failed(self, slot: Slot, why: str) -> None:
        trouble = self._trouble.setdefault(slot.owner, Trouble())
        wait = trouble.backoff.next()
        trouble.until = self._clock() + wait
        trouble.message = f"its slot did not start: {why}; tried again in {wait:.1f} s"
        log.warning("slot_start_failed", slot=slot.id, worker=slot.owner.worker, why=why, again_seconds=round(wait, 1))
        self._retire(slot)
        for uid in sorted(slot.runs):
            run = self.book.get(uid)
            if run is not None and run.live:
                run.copy_run.slot = ""
                self._explain(run, "SLOT_START_FAILED", trouble.message)
        slot.runs.clear()
        self._jobs.cancel(slot.id)

    def _retire(self, slot: Slot) -> None:
        slot.state, slot.token = SlotState.ENDING, ""
        self._ending[slot.id] = self._clock()

    def _close(self, slot: Slot) -> None:
        mail = self._mail.get(slot.id)
        if mail is not None:
            mail.closed.set()

    # --- copy runs

    def place(self) -> None:
        """Gives every copy run without a slot its place, or says why there is none."""
        full: set[Owner] = set()
        for run in self.book.pending():
            trouble = self._trouble.get(run.owner)
            if run.owner in full or (trouble is not None and trouble.until > self._clock()):
                if trouble is not None and trouble.message:
                    self._explain(run, "SLOT_START_FAILED", trouble.message)
                elif run.copy_run.message == "":
                    self._explain(run, "NO_FREE_SLOT", "waits behind other copy runs of its worker")
                continue
            choice = choose(run.owner, self.slots.values(), self._limits)
            if isinstance(choice, Wait):
                full.add(run.owner)
                self._explain(run, "NO_FREE_SLOT", choice.message)
                if choice.evict is not None:
                    self.end_slot(choice.evict, "EVICTED")
                continue
            slot = choice.slot if isinstance(choice, Place) else self._start_slot(run.owner)
            slot.runs.add(run.uid)
            run.copy_run.slot = slot.id
            self._explain(run, "", "" if slot.state is SlotState.ATTACHED else "its slot starts")
            self._send_waiting(run, slot)

    def _start_slot(self, owner: Owner) -> Slot:
        now = self._clock()
        slot = Slot(f"slot-{secrets.token_hex(4)}", owner, secrets.token_urlsafe(24), now, heard=now, empty_since=now)
        self.slots[slot.id], self._mail[slot.id] = slot, Mailbox()
        self._jobs.start(slot)
        return slot

    def _send_waiting(self, run: Run, slot: Slot) -> None:
        if slot.state is SlotState.ATTACHED:
            for order in run.waiting:
                self._mail[slot.id].send(order)
            run.waiting.clear()

    def _explain(self, run: Run, reason: str, message: str) -> None:
        update = self._last(run)
        update.reason, update.message, update.slot = reason, message, run.copy_run.slot
        update.time.FromDatetime(self._now())
        self._apply(run, update)

    def _finish(
        self, run: Run, state: CopyRunState.ValueType, reason: str, message: str, *, retriable: bool = False
    ) -> None:
        update = RunUpdate(run_uid=run.uid, state=state, reason=reason, message=message, retriable=retriable)
        update.time.FromDatetime(self._now())
        self._apply(run, update)

    def _apply(self, run: Run, update: RunUpdate) -> None:
        if not fold(run.copy_run, update, self._now()):
            return
        update.slot = run.copy_run.slot
        update.state = run.copy_run.state
        update.progress.CopyFrom(run.copy_run.progress)
        topics = dict.fromkeys([*run.last.topics, *update.topics])
        del update.topics[:]
        update.topics.extend(topics)
        run.last = update
        self.leases.tell(run.owner, update)
        self._changed(run.copy_run)
        if run.live:
            return
        log.info(
            "copy_run_ended",
            copy_run=run.uid,
            connector=run.copy_run.connector,
            task=run.copy_run.task,
            failed=run.copy_run.state == COPY_RUN_STATE_FAILED,
            reason=run.copy_run.reason,
            message=run.copy_run.message,
            records=run.copy_run.progress.records,
        )
        self.book.ended(run)
        slot = self.slots.get(run.copy_run.slot)
        if slot is not None:
            slot.runs.discard(run.uid)
            slot.empty_since = self._clock()
            if slot.usable:
                self.place()

    def _changed(self, copy_run: CopyRun) -> None:
        for listener in self._listeners:
            listener(copy_run)

    def _last(self, run: Run) -> RunUpdate:
        update = RunUpdate()
        update.CopyFrom(run.last)
        update.run_uid, update.state, update.slot = run.uid, run.copy_run.state, run.copy_run.slot
        return update

    def _refuse(self, owner: Owner, uid: str, reason: str, message: str, retriable: bool = True) -> None:
        update = RunUpdate(
            run_uid=uid, state=COPY_RUN_STATE_FAILED, reason=reason, message=message, retriable=retriable
        )
        update.time.FromDatetime(self._now())
        self.leases.tell(owner, update)

    # --- time

    def tick(self) -> None:
        """Judges leases and slots by the clock; called several times a second."""
        now = self._clock()
        gap, self._ticked = now - self._ticked, now
        if gap > STALL_SECONDS:  # this process was not awake: what the slots said meanwhile is not read yet
            for slot in self.slots.values():
                slot.heard += gap
        for owner in self.leases.lapse():
            if self.book.live(owner):
                log.warning("lease_lapsed", worker=owner.worker, worker_cluster=owner.worker_cluster)
            message = f"worker {owner.worker} did not renew its lease for {self._times.lease:g} s"
            self._end_owner(owner, "LEASE_LAPSED", message)
        for slot in list(self.slots.values()):
            self._judge(slot, now)
        if self._trouble:
            self.place()

    def _judge(self, slot: Slot, now: float) -> None:
        if slot.state is SlotState.ENDING:
            if now - self._ending[slot.id] > ENDING_SECONDS:
                self._ending[slot.id] = now
                self._jobs.cancel(slot.id)
        elif slot.state is SlotState.STARTING:
            if now - slot.started > self._times.slot_start:
                self._start_failed(slot, f"it did not call home within {self._times.slot_start:g} s")
        elif now - slot.heard > self._times.beat:
            self.lost(slot, f"no beat for {now - slot.heard:.1f} s")
        elif not slot.runs and now - slot.empty_since > self._times.slot_idle:
            self.end_slot(slot, "IDLE")

    def drain(self) -> None:
        """Tells every copy run to commit and end, and takes no new ones."""
        self.draining = True
        for run in self.book.live():
            self._pass_on(run, RunOrder(run_uid=run.uid, drain=Drain()))

    def end_all_slots(self, reason: str) -> None:
        """Ends every slot."""
        for slot in list(self.slots.values()):
            self.end_slot(slot, reason)

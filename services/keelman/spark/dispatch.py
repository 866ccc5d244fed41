"""Brings copy runs, slots and leases together: the one place where an event of one of them changes the others.

Plain synchronous code on the service's event loop; its effects go through `Jobs`, mailboxes and links.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_RUNNING, CopyRun
from keelman.api.copy.v1.run_order_pb2 import Drain, RunOrder, RunUpdate
from keelman.api.copy.v1.slot_service_pb2 import SlotGreeting
from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.api.copy.v1.worker_link_service_pb2 import Bounds, SlotUsage
from keelman.api.copy.v1.write_job_pb2 import WriteDone, WriteJob
from keelman.connect.errors import ConnectError
from keelman.connect.tasks.data_set import PARTS, PASSING, PROBLEM, SPLIT, DataSet
from keelman.runtime.logs.logging import get_logger
from keelman.spark.copy_runs.leases import Leases, Link
from keelman.spark.copy_runs.life import RunLife
from keelman.spark.copy_runs.runs import Owner, Run, RunBook
from keelman.spark.data_sets.reads import LookAt, PartRequest, Split, Unread, wanted
from keelman.spark.slots.bounds import Bounder
from keelman.spark.slots.busy import Busy
from keelman.spark.slots.choice import Slot, SlotLimits, SlotState
from keelman.spark.slots.mailbox import Mailbox
from keelman.spark.slots.placing import Placing
from keelman.spark.slots.pool import Jobs, SlotPool, Times
from keelman.spark.slots.scarcity import Scarcity
from keelman.spark.slots.shortage import Shortage
from keelman.spark.slots.usage import SlotUsageTotals

log = get_logger()

STALL_SECONDS = 1.5
LOOK_SECONDS = 1.0


class Dispatcher:
    """Owns every copy run, slot and lease of this service."""

    def __init__(
        self,
        jobs: Jobs,
        limits: SlotLimits,
        times: Times,
        *,
        busy_bytes_per_second: float = 0.0,
        changed: Sequence[Callable[[CopyRun], None]] = (),
        unfit: Callable[[StartTicket], str],
        look_at: LookAt,
        end_of: Callable[[int], str],
        shortage: Callable[[], Shortage | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.book = RunBook()
        self.leases = Leases(times.lease, clock)
        self.draining = False
        self._jobs = jobs
        self._times, self._clock, self._unfit, self._look_at = times, clock, unfit, look_at
        self._life = RunLife(self.book, self.leases, listeners=changed, ended=self._run_ended)
        self.pool = SlotPool(jobs, times, clock, self, end_of)
        self._busy = Busy(busy_bytes_per_second)
        self._usage = SlotUsageTotals()
        self._placing = Placing(
            self.book, self._life, self.pool, self.leases, busy=self._busy, limits=limits, clock=clock
        )
        self._bounder = Bounder(self.pool, self.leases)
        self._scarcity = Scarcity(self.book, self._life, self.pool, self._placing, shortage)
        self._ticked = self._looked = clock()

    def greet(
        self, owner: Owner, link: Link, bounds: Bounds | None = None, routes: Mapping[str, str] | None = None
    ) -> list[Owner]:
        """Opens a worker's link. Cuts and returns older incarnations of it; raises Conflict if the worker is such an
        incarnation."""
        old = self.leases.grant(owner, link, [s.owner for s in self.pool.slots.values()], bounds, routes)
        for other in old:
            self._end_owner(other, "SUPERSEDED", f"worker {owner.worker} was started again")
        self.place()
        return old

    @property
    def users(self) -> int:
        """The number of workers with a lease and of copy runs: 0 while nothing needs Spark."""
        return len(self.leases) + len(self.book.live())

    def present(self, owner: Owner) -> list[RunUpdate]:
        """Returns the owner's copy runs that have not ended, for the welcome."""
        return [self._life.last(run) for run in self.book.live(owner)]

    def usage(self, owner: Owner) -> SlotUsage:
        """Returns the present use of the worker's slots, for the answer to a renewal."""
        return self._usage.of(owner, self.pool.of(owner))

    def order(self, owner: Owner, order: RunOrder) -> None:
        """Carries out a worker's order; answers an impossible one with a FAILED update."""
        kind, run = order.WhichOneof("order"), self.book.get(order.run_uid)
        if kind == "start":
            self._open(owner, order, run)
        elif run is None or run.owner != owner:
            self._life.refuse(owner, order.run_uid, "UNKNOWN_RUN", "this Spark service has no such copy run")
        elif not run.live:
            self.leases.send(owner, run.last)
        else:
            self._pass_on(run, order)

    def _open(self, owner: Owner, order: RunOrder, present: Run | None) -> None:
        order.start.run_uid = uid = order.run_uid
        if present is not None:
            if present.owner == owner:
                self.leases.send(owner, self._life.last(present))
            else:
                self._life.refuse(owner, uid, "ALREADY_EXISTS", "another worker has a copy run of this uid", False)
        elif order.start.worker_cluster != owner.worker_cluster:
            foreign = f"the ticket is of worker cluster {order.start.worker_cluster!r}, which is not this worker's"
            self._life.refuse(owner, uid, "PERMISSION_DENIED", foreign, False)
        elif self.draining:
            self._life.refuse(owner, uid, "STOPPING", "this Spark service is stopping")
        elif not self.leases.stands(owner):
            self._life.refuse(owner, uid, "LEASE_LAPSED", "the worker did not renew its lease")
        elif unfit := self._unfit(order.start):
            self._life.refuse(owner, uid, "RUNS_ON_NODE", unfit, False)
        else:
            try:
                data = wanted(order.start)
            except ConnectError as error:
                self._life.refuse(owner, uid, "TASK_FAILED", str(error), False)
                return
            run = self._life.open(owner, order, data if isinstance(data, PartRequest) else None)
            if isinstance(data, DataSet):
                run.held = True
                self._life.explain(run, "", "Spark reads the plan of its data set")
                self._look_at(run.task, data, partial(self._looked_at, run, order.start))
            self.place()

    def _looked_at(self, run: Run, ticket: StartTicket, split: Split | Unread) -> None:
        """Takes Spark's answer: how it splits a data set, or why it cannot read it."""
        if not run.live:
            return
        if isinstance(split, Split):
            ticket.task_config[PARTS], ticket.task_config[SPLIT] = str(split.parts), split.digest
        else:
            ticket.task_config[PROBLEM] = split.why
            if not split.lasting:
                ticket.task_config[PASSING] = "true"
        run.held = False
        self.place()

    def data_of(self, slot: Slot) -> PartRequest | None:
        """Returns the rows that a slot's Spark job has to give it."""
        run = self.book.get(slot.data) if slot.data else None
        return None if run is None else run.data

    def routes_of(self, owner: Owner) -> Mapping[str, str]:
        """Returns the host names that only the owner's slots have."""
        return self.leases.routes(owner)

    def _pass_on(self, run: Run, order: RunOrder) -> None:
        slot = self.pool.slots.get(run.copy_run.slot)
        run.parks = run.parks or order.drain.parked
        if slot is not None and slot.state is SlotState.ATTACHED:
            self.pool.mail(slot).send(order)
        elif order.HasField("cut") or order.HasField("drain"):
            reason = (order.cut.reason or "CUT") if order.HasField("cut") else "DRAINED"
            self._life.finish(run, reason, "ended before it had a slot")
        else:
            run.waiting.append(order)

    def _end_owner(self, owner: Owner, reason: str, message: str) -> None:
        for slot in self.pool.of(owner):
            self.pool.end(slot, reason)
        for run in self.book.live(owner):
            self._life.fail(run, reason, message)
        self._placing.forgive(owner)

    def attach(self, greeting: SlotGreeting) -> tuple[Slot, Mailbox]:
        """Accepts a slot's call. Raises Unauthenticated for a wrong or used token, FailedPrecondition when too late."""
        slot = self.pool.attach(greeting)
        self._placing.attached(slot)
        return slot, self.pool.mail(slot)

    def update(self, slot: Slot, update: RunUpdate) -> None:
        """Takes a slot's report on its copy runs; ignores reports on others."""
        slot.heard = self._clock()
        run = self.book.get(update.run_uid)
        if run is not None and run.copy_run.slot == slot.id:
            run.copy_run.host = slot.host
            if update.HasField("write"):
                self._have_written(run, update.write)
                update.ClearField("write")
            self._life.apply(run, update)

    def _have_written(self, run: Run, job: WriteJob) -> None:
        """Has Spark do a copy run's write job, once, though the copy run repeats the request until it is done."""
        if job.number <= run.writes or not run.live:
            return
        run.writes = number = job.number

        def done(error: str, lasting: bool) -> None:
            if run.live:
                written = WriteDone(number=number, error=error, lasting=lasting)
                self._pass_on(run, RunOrder(run_uid=run.uid, written=written))

        self._jobs.write(run.uid, WriteJob.FromString(job.SerializeToString()), done)

    def slot_lost(self, slot: Slot, reason: str) -> None:
        """Fails the copy runs of a slot that the pool gave up."""
        self._placing.lost(slot, self.book.among(slot.runs))
        for run in self.book.among(slot.runs):
            self._life.fail(run, "SLOT_LOST", f"slot {slot.id} was lost: {reason}")
        self.place()

    def slot_unstarted(self, slot: Slot, reason: str) -> None:
        """Has the copy runs of a slot that did not start wait for another. A run that should read its rows fails
        instead: the reason is Spark's."""
        if slot.data:
            for run in self.book.among(slot.runs):
                self._life.fail(run, "DATA_UNREAD", reason)
            return
        if not self._scarcity.excuses(slot):
            self._placing.unstarted(slot, self.book.among(slot.runs), reason)
        slot.runs.clear()

    def slot_ended(self, slot: Slot) -> None:
        """Takes note that a slot is gone and its place free."""
        self._usage.ended(slot)
        self.place()

    def place(self) -> None:
        """Gives every copy run without a slot its place, or records why there is none."""
        self._placing.place(warm=not self.draining)

    def _run_ended(self, run: Run) -> None:
        if run.writes:
            self._jobs.cancel_write(run.uid)
        slot = self.pool.slots.get(run.copy_run.slot)
        if slot is not None:
            slot.runs.discard(run.uid)
            slot.empty_since = self._clock()
            if slot.data:
                self.pool.end(slot, "READ")
            if slot.usable:
                self.place()

    def tick(self) -> None:
        """Judges leases and slots by the clock; called several times a second."""
        now = self._clock()
        gap, self._ticked = now - self._ticked, now
        if gap > STALL_SECONDS:
            self.pool.slept(gap)
            self.leases.slept(gap)
        for owner in self.leases.lapse():
            if self.book.live(owner):
                log.warning("lease_lapsed", worker=owner.worker, worker_cluster=owner.worker_cluster)
            message = f"worker {owner.worker} did not renew its lease for {self._times.lease:g} s"
            self._end_owner(owner, "LEASE_LAPSED", message)
        for slot in list(self.pool.slots.values()):
            self.pool.judge(slot, now, is_reserved=self._placing.keeps(slot))
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._look(now)
        elif self._placing.has_problems:
            self.place()

    def _look(self, now: float) -> None:
        """Measures usage, finds busy tasks, and ends slots over their bounds, once a second."""
        living = {slot.owner for slot in self.pool.slots.values()} | set(self.leases)
        self._usage.forget([owner for owner in self._usage.known() if owner not in living])
        for slot, message in self._bounder.look(now):
            self.pool.end(slot, "MEMORY_BOUND")
            for run in self.book.among(slot.runs):
                self._life.fail(run, "MEMORY_BOUND", message)
        if self.draining:
            return
        self._scarcity.look(now)
        self.place()
        for run in self.book.live():
            if run.copy_run.state == COPY_RUN_STATE_RUNNING and not run.copy_run.part:
                self._busy.note(run.task, run.copy_run.progress.bytes_per_second, now)
        self._busy.forget(now)
        for run, reason in self._placing.misplaced():
            run.moving = reason
            cluster, connector, _ = run.task
            log.info("copy_run_moves", copy_run=run.uid, worker_cluster=cluster, connector=connector, why=reason)
            self._pass_on(run, RunOrder(run_uid=run.uid, drain=Drain()))

    def drain(self) -> None:
        """Has every copy run commit and end, and takes no new ones."""
        self.draining = True
        for run in self.book.live():
            self._pass_on(run, RunOrder(run_uid=run.uid, drain=Drain()))

    def end_all_slots(self, reason: str) -> None:
        """Ends every slot."""
        for slot in list(self.pool.slots.values()):
            self.pool.end(slot, reason)

"""The slots of this service: each from its job's start to its end."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from keelman.api.copy.v1.slot_service_pb2 import SlotBeat, SlotGreeting
from keelman.api.copy.v1.write_job_pb2 import WriteJob
from keelman.model.errors import FailedPrecondition, Unauthenticated
from keelman.rpc.times import from_duration
from keelman.runtime.logs.logging import get_logger
from keelman.spark.copy_runs.runs import Owner
from keelman.spark.data_sets.reads import PartRequest
from keelman.spark.slots.choice import NewSlot, Slot, SlotState
from keelman.spark.slots.mailbox import Mailbox

log = get_logger()

ENDING_SECONDS = 3.0


class Jobs(Protocol):
    """Starts and cancels the Spark job behind a slot."""

    def start(self, slot: Slot, data: PartRequest | None, on_end: Callable[[str, str], None]) -> None:
        """Submits the job, which gives the slot the rows of `data`, if any.

        Calls `on_end` with the slot's id and the error ("" for none) when the job has ended, for whatever reason.
        """

    def cancel(self, slot_id: str) -> None:
        """Cancels the job, if it still runs."""

    def write(self, run: str, job: WriteJob, done: Callable[[str, bool], None]) -> None:
        """Has Spark write for a copy run; calls `done` with the error, empty for none, and whether it would fail
        again."""

    def cancel_write(self, run: str) -> None:
        """Cancels Spark's write for a copy run."""


class Tenants(Protocol):
    """The users of the slots: knows the rows of each slot, and is notified of the slots' ends."""

    def data_of(self, slot: Slot) -> PartRequest | None:
        """Returns the rows that a slot's job has to give it; None for a slot without rows."""

    def routes_of(self, owner: Owner) -> Mapping[str, str]:
        """Returns addresses of the host names that only the owner's slots have."""

    def slot_lost(self, slot: Slot, reason: str) -> None:
        """Called when the slot was given up with all its copy runs."""

    def slot_unstarted(self, slot: Slot, reason: str) -> None:
        """Called when the slot did not start; its copy runs have no slot any more."""

    def slot_ended(self, slot: Slot) -> None:
        """Called when the slot is gone for good, and its place is free."""


@dataclass(frozen=True, slots=True)
class Times:
    """Time-outs in seconds."""

    lease: float
    beat: float
    slot_idle: float
    slot_start: float


@dataclass(slots=True)
class SlotPool:
    """All slots, by id. Used by the dispatcher, which speaks for their tenants."""

    jobs: Jobs
    times: Times
    clock: Callable[[], float]
    tenants: Tenants
    end_of: Callable[[int], str]
    """Returns how a slot's process ended, by its pid; empty where that is not known."""
    slots: dict[str, Slot] = field(default_factory=dict)
    _mail: dict[str, Mailbox] = field(default_factory=dict)
    _ending: dict[str, float] = field(default_factory=dict)
    _log_levels: dict[Owner, Mapping[str, str]] = field(default_factory=dict)

    def of(self, owner: Owner) -> list[Slot]:
        """Returns the owner's slots."""
        return [s for s in self.slots.values() if s.owner == owner]

    def shared(self, owner: Owner) -> list[Slot]:
        """Returns the owner's slots that have called home and are for several copy runs."""
        return [s for s in self.of(owner) if s.state is SlotState.ATTACHED and not s.alone]

    def attached(self) -> int:
        """Returns the number of slots that have called home and not ended."""
        return sum(slot.state is SlotState.ATTACHED for slot in self.slots.values())

    def mail(self, slot: Slot) -> Mailbox:
        """Returns the mailbox for the slot's orders."""
        return self._mail[slot.id]

    def log_levels(self, owner: Owner, levels: Mapping[str, str]) -> None:
        """Sets the owner's log levels for all its slots, future ones too. Called each second."""
        if levels == self._log_levels.get(owner, {}):
            return
        self._log_levels[owner] = levels
        for slot in self.of(owner):
            if slot.state is SlotState.ATTACHED:
                self._mail[slot.id].log_levels(levels)

    def start(self, owner: Owner, kind: NewSlot) -> Slot:
        """Starts a slot's job; the slot calls home later, or it has failed."""
        now = self.clock()
        slot = Slot(f"slot-{secrets.token_hex(4)}", owner, secrets.token_urlsafe(24), now, heard=now, empty_since=now)
        slot.plugin, slot.alone, slot.data = kind.plugin, kind.alone, kind.data
        slot.plugin_runs, slot.routes = kind.plugin_runs, self.tenants.routes_of(owner)
        self.slots[slot.id], self._mail[slot.id] = slot, Mailbox()
        self.jobs.start(slot, self.tenants.data_of(slot), self.job_ended)
        return slot

    def attach(self, greeting: SlotGreeting) -> Slot:
        """Accepts a slot's call. Raises Unauthenticated for a wrong or used token, FailedPrecondition when too late."""
        slot = self.slots.get(greeting.slot)
        if slot is None or not slot.token or not secrets.compare_digest(slot.token.encode(), greeting.token.encode()):
            raise Unauthenticated("wrong or used slot token", reason="SLOT_TOKEN")
        slot.token = ""
        if slot.state is not SlotState.STARTING:
            raise FailedPrecondition(f"slot {slot.id} is to end", reason="SLOT_ENDING")
        now = self.clock()
        slot.state, slot.pid, slot.host = SlotState.ATTACHED, greeting.pid, greeting.host
        slot.heard = slot.empty_since = now
        if slot.owner in self._log_levels:
            self._mail[slot.id].log_levels(self._log_levels[slot.owner])
        log.info(
            "slot_attached", slot=slot.id, pid=slot.pid, host=slot.host, worker=slot.owner.worker,
            seconds=round(now - slot.started, 3),
        )  # fmt: skip
        return slot

    def beat(self, slot: Slot, beat: SlotBeat) -> None:
        """Takes a slot's sign of life; gives the slot up if the loop of a copy run that it still has is silent."""
        slot.heard = self.clock()
        slot.standstill = min(from_duration(beat.standstill), self.times.slot_start)
        slot.measured(from_duration(beat.cpu_time), beat.memory_bytes, slot.heard)
        at = dict(zip(beat.silent_runs, beat.silent_at, strict=False))
        silent = [uid for uid in beat.silent_runs if uid in slot.runs]
        if silent:
            self.lost(slot, at.get(silent[0]) or f"the loop of copy run {silent[0]} gave no sign of life")

    def detached(self, slot: Slot) -> None:
        """Closes a slot whose stream ended."""
        if slot.usable:
            self.lost(slot, self._ended(slot) or "its link broke")
        self._close(slot)

    def lost(self, slot: Slot, reason: str) -> None:
        """Gives a slot up: its copy runs fail, its job is cancelled; its place is free once the job has ended."""
        if not slot.usable:
            return
        log.warning(
            "slot_lost", slot=slot.id, pid=slot.pid, worker=slot.owner.worker, why=reason, copy_runs=len(slot.runs)
        )
        self._retire(slot)
        # First, so that copy runs that are placed again meanwhile cannot wait for it.
        self.jobs.cancel(slot.id)
        self.tenants.slot_lost(slot, reason)
        self._close(slot)

    def end(self, slot: Slot, reason: str) -> None:
        """Orders a slot to end; its job is cancelled when it does not."""
        if not slot.usable:
            return
        attached = slot.state is SlotState.ATTACHED
        self._retire(slot)
        if attached:
            self._mail[slot.id].end(reason)
        else:
            self.jobs.cancel(slot.id)

    def job_ended(self, slot_id: str, error: str) -> None:
        """Takes the end of the job behind a slot; `error` is empty when it ended well."""
        slot = self.slots.get(slot_id)
        if slot is None:
            return
        if slot.state is SlotState.STARTING:
            self._on_start_failure(slot, error or "its process ended before it called home")
        elif slot.state is SlotState.ATTACHED:
            self.lost(slot, self._ended(slot) or error or "its process ended")
        self._close(slot)
        del self.slots[slot_id], self._mail[slot_id]
        self._ending.pop(slot_id, None)
        if not self.of(slot.owner):
            self._log_levels.pop(slot.owner, None)  # a worker that lives sends it again
        log.info("slot_ended", slot=slot_id, worker=slot.owner.worker)
        self.tenants.slot_ended(slot)

    def slept(self, seconds: float) -> None:
        """Forgives silence while this process was not awake: the slots' messages of that time are not read yet."""
        for slot in self.slots.values():
            slot.heard += seconds

    def judge(self, slot: Slot, now: float, *, is_reserved: bool) -> None:
        """Ends, cancels or gives up a slot whose time is over; a slot that is `is_reserved` may be empty for any
        time."""
        if slot.state is SlotState.ENDING:
            if now - self._ending[slot.id] > ENDING_SECONDS:
                self._ending[slot.id] = now
                self.jobs.cancel(slot.id)
        elif slot.state is SlotState.STARTING:
            if now - slot.started - slot.waited > self.times.slot_start:
                self._on_start_failure(slot, f"it did not call home within {self.times.slot_start:g} s")
        elif now - slot.heard > self.times.beat + slot.standstill:
            held = ": its plugin may hold the interpreter" if slot.plugin else ""
            held = ": it was starting a Java virtual machine" if slot.standstill else held
            self.lost(slot, f"no beat for {now - slot.heard:.1f} s{held}")
        elif not slot.runs and not is_reserved and now - slot.empty_since > self.times.slot_idle:
            self.end(slot, "IDLE")

    def _ended(self, slot: Slot) -> str:
        end = self.end_of(slot.pid)
        return f"its process {end}" if end else ""

    def _on_start_failure(self, slot: Slot, reason: str) -> None:
        self._retire(slot)
        self.tenants.slot_unstarted(slot, reason)
        self.jobs.cancel(slot.id)

    def _retire(self, slot: Slot) -> None:
        slot.state, slot.token = SlotState.ENDING, ""
        self._ending[slot.id] = self.clock()

    def _close(self, slot: Slot) -> None:
        mail = self._mail.get(slot.id)
        if mail is not None:
            mail.closed.set()

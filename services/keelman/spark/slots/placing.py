"""Puts copy runs into slots, has slots started ahead, and finds copy runs that are better off in another slot."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import TypeAlias

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_RUNNING
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.spark.copy_runs.leases import Leases
from keelman.spark.copy_runs.life import RunLife
from keelman.spark.copy_runs.runs import Owner, Run, RunBook
from keelman.spark.slots.busy import Busy
from keelman.spark.slots.choice import Need, NewSlot, Slot, SlotLimits, SlotPlace, SlotState, Wait, choose, keeps, warm
from keelman.spark.slots.pool import SlotPool
from keelman.spark.slots.usage import SLOT_BYTES, claimed, too_much

log = get_logger()

Start: TypeAlias = tuple[Owner, str]  # the slot's owner, and its plugin


@dataclass(slots=True)
class StartProblem:
    """Slots that did not start."""

    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.5, most=30.0))
    until: float = 0.0
    message: str = ""


@dataclass(slots=True)
class Placing:
    """Carries out the choices of `slots.choose`. Used by the dispatcher only."""

    book: RunBook
    life: RunLife
    pool: SlotPool
    leases: Leases
    _: KW_ONLY
    busy: Busy
    limits: SlotLimits
    clock: Callable[[], float]
    scarce_until: float = 0.0  # cores are scarce until then: no slot is started that its worker can do without
    _problems: dict[Start, StartProblem] = field(default_factory=dict)
    _apart: set[tuple[Owner, tuple[str, str, int]]] = field(default_factory=set)

    @property
    def has_problems(self) -> bool:
        """Whether a slot did not start lately, so that time alone may help."""
        return bool(self._problems)

    def place(self, *, warm: bool) -> None:
        """Gives every copy run without a slot its place, or records why there is none; then has slots started ahead."""
        full: set[tuple[Owner, Need]] = set()
        for run in self.book.pending():
            key = run.owner, self._need(run)
            reason, message = self._held_up(run)
            if not reason and key in full:
                said = run.copy_run.message if run.copy_run.reason == "NO_FREE_SLOT" else ""
                reason, message = "NO_FREE_SLOT", said or "waits behind other copy runs of its worker"
            choice = Wait(message) if reason else self._choice(*key)
            if isinstance(choice, Wait):
                if not reason:
                    full.add(key)
                    if choice.evict is not None:
                        self.pool.end(choice.evict, "EVICTED")
                self.life.explain(run, reason or "NO_FREE_SLOT", choice.message)
                continue
            slot = choice.slot if isinstance(choice, SlotPlace) else self.pool.start(run.owner, choice)
            slot.runs.add(run.uid)
            run.copy_run.slot = slot.id
            self.life.explain(run, "", "" if slot.state is SlotState.ATTACHED else "its slot starts")
            self._pass_waiting(run, slot)
        if warm:
            for owner in list(self.leases):
                self._keep_warm(owner)

    def attached(self, slot: Slot) -> None:
        """Sends waiting orders to a slot that called home."""
        self._problems.pop((slot.owner, slot.plugin), None)
        for uid in sorted(slot.runs):
            run = self.book.get(uid)
            if run is not None:
                self._pass_waiting(run, slot)

    def unstarted(self, slot: Slot, runs: Iterable[Run], reason: str) -> None:
        """Has the copy runs of a slot that did not start placed again, after a while."""
        problem = self._problems.setdefault((slot.owner, slot.plugin), StartProblem())
        wait = problem.backoff.next()
        problem.until = self.clock() + wait
        problem.message = f"its slot did not start: {reason}; tried again in {wait:.1f} s"
        log.warning(
            "slot_start_failed", slot=slot.id, worker=slot.owner.worker, why=reason, again_seconds=round(wait, 1)
        )
        for run in runs:
            run.copy_run.slot = ""
            self.life.explain(run, "SLOT_START_FAILED", problem.message)

    def lost(self, slot: Slot, runs: Iterable[Run]) -> None:
        """Separates tasks of a plugin that shared a slot which died: they share none from now on. A task among them may
        have killed it."""
        if slot.plugin and len(slot.runs) > 1:
            self._apart.update((slot.owner, run.task) for run in runs)

    def forgive(self, owner: Owner) -> None:
        """Forgets a worker that is gone, and its problems."""
        self._apart = {pair for pair in self._apart if pair[0] != owner}
        for key in [k for k in self._problems if k[0] == owner]:
            del self._problems[key]

    def keeps(self, slot: Slot) -> bool:
        """Returns whether an empty slot stays, however long it is empty."""
        ready = self.limits.warm and self.leases.stands(slot.owner) and not self._is_scarce
        return ready and keeps(slot, self.pool.slots.values(), self.limits)

    def misplaced(self) -> list[tuple[Run, str]]:
        """Returns copy runs to move now, one of each worker at a time, and why. Their new slots are attached
        already."""
        runs: list[tuple[Run, str]] = []
        movers: set[Owner] = {run.owner for run in self.book.live() if run.moving}
        for run in self.book.live():
            slot = self.pool.slots.get(run.copy_run.slot)
            if (
                run.plugin
                or run.split
                or run.owner in movers
                or slot is None
                or run.copy_run.state != COPY_RUN_STATE_RUNNING
            ):
                continue
            need = self._need(run)
            crowded = not slot.alone and need.busy and len(slot.runs) > 1
            calm = slot.alone and not need.busy
            if (crowded or calm) and self._is_ready(run, need):
                movers.add(run.owner)
                reason = "busy: continues in its own slot" if crowded else "calm again: continues in a shared slot"
                runs.append((run, reason))
        return runs

    def _is_ready(self, run: Run, need: Need) -> bool:
        """Returns whether the slot for a move is attached; starts a missing one ahead, so that the move is short."""
        choice = self._choice(run.owner, need)
        if isinstance(choice, Wait):
            return False
        if isinstance(choice, NewSlot):
            if not need.busy or choice.alone:
                self.pool.start(run.owner, choice)
            return False
        return choice.slot.alone is need.busy and choice.slot.state is SlotState.ATTACHED

    def _need(self, run: Run) -> Need:
        if run.data is not None:
            return Need(data=run.uid)
        busy = run.copy_run.part > 0 or self.busy.has(run.task, self.clock())
        return Need(
            run.plugin,
            busy=not run.plugin and busy,
            plugin_runs=1 if (run.owner, run.task) in self._apart else run.plugin_runs,
        )

    def _choice(self, owner: Owner, need: Need) -> SlotPlace | NewSlot | Wait:
        if self._is_scarce and not need.plugin and not need.data:
            loaded = min(self.pool.shared(owner), key=lambda s: (len(s.runs), s.started, s.id), default=None)
            if loaded is not None and len(loaded.runs) < self.limits.runs_per_slot:
                return SlotPlace(loaded)
        return choose(owner, self.pool.slots.values(), self.limits, need, may_start=self._may_start(owner))

    @property
    def _is_scarce(self) -> bool:
        return self.clock() < self.scarce_until

    def _may_start(self, owner: Owner) -> bool:
        """Returns whether another slot fits the worker's memory; the first one always does."""
        bound = self.leases.bounds(owner).memory_bytes
        mine = self.pool.of(owner)
        return not bound or not mine or claimed(mine) + SLOT_BYTES <= bound

    def _held_up(self, run: Run) -> tuple[str, str]:
        problem = self._problems.get((run.owner, run.plugin))
        if problem is not None and problem.until > self.clock():
            return "SLOT_START_FAILED", problem.message
        bound = self.leases.bounds(run.owner).memory_bytes
        message = too_much(run.owner.worker, self.pool.of(run.owner), bound)
        return ("MEMORY_BOUND", message) if message else ("", "")

    def _keep_warm(self, owner: Owner) -> None:
        problem = self._problems.get((owner, ""))
        held = (
            self._is_scarce or not self.leases.stands(owner) or (problem is not None and problem.until > self.clock())
        )
        if not held and self._may_start(owner) and warm(owner, self.pool.slots.values(), self.limits):
            self.pool.start(owner, NewSlot())

    def _pass_waiting(self, run: Run, slot: Slot) -> None:
        if slot.state is SlotState.ATTACHED:
            for order in run.waiting:
                self.pool.mail(slot).send(order)
            run.waiting.clear()

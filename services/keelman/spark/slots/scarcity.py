"""Gives the cores of a cluster that has too few to the copy runs that need them, and tells the others why they wait."""

from __future__ import annotations

from collections.abc import Callable

from keelman.spark.copy_runs.life import RunLife
from keelman.spark.copy_runs.runs import RunBook
from keelman.spark.slots.choice import Slot, SlotState
from keelman.spark.slots.placing import Placing
from keelman.spark.slots.pool import SlotPool
from keelman.spark.slots.shortage import Shortage

SCARCE_SECONDS = 60.0
"""The time after a shortage in which no slot is started that its worker can do without."""
STARTS_SECONDS = 5.0
"""A slot that started less long ago may have its core and be on its way."""


class Scarcity:
    """Looks once a second. Used by the dispatcher only."""

    def __init__(
        self,
        book: RunBook,
        life: RunLife,
        pool: SlotPool,
        placing: Placing,
        shortage: Callable[[], Shortage | None],
    ) -> None:
        self._book, self._life, self._pool, self._placing, self._shortage = book, life, pool, placing, shortage
        self._looked: float | None = None

    def look(self, now: float) -> None:
        """While there is a shortage: ends slots that are empty, moves copy runs out of slots that do not start into
        those that their worker has, and has the others wait as long as it takes, with its reason."""
        shortage = self._shortage()
        if shortage is None:
            self._looked = None
            return
        seconds = 0.0 if self._looked is None else now - self._looked
        self._looked = now
        if not shortage.nothing_runs:
            self._placing.scarce_until = now + SCARCE_SECONDS
        waiting = [s for s in self._pool.slots.values() if s.state is SlotState.STARTING]
        for slot in waiting:
            if now - slot.started >= STARTS_SECONDS:
                slot.waited += seconds
                self._relieve(slot, shortage)
        if any(s.runs and s.usable for s in waiting):
            for slot in list(self._pool.slots.values()):
                if slot.state is SlotState.ATTACHED and not slot.runs:
                    self._pool.end(slot, "EVICTED")

    def excuses(self, slot: Slot) -> bool:
        """Returns whether a slot did not start since Spark could run none: its copy runs get another one at once, which
        waits for the next session."""
        shortage = self._shortage()
        if shortage is None or not shortage.nothing_runs:
            return False
        for run in self._book.among(slot.runs):
            run.copy_run.slot = ""
            self._life.explain(run, shortage.reason, shortage.message)
        return True

    def _relieve(self, slot: Slot, shortage: Shortage) -> None:
        runs = self._book.among(slot.runs)
        can_share = bool(self._pool.shared(slot.owner)) and not slot.plugin and not slot.data
        if not shortage.nothing_runs and (not runs or can_share):
            for run in runs:
                run.copy_run.slot = ""
            slot.runs.clear()
            self._pool.end(slot, shortage.reason)
            return
        for run in runs:
            self._life.explain(run, shortage.reason, shortage.message)

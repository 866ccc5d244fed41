"""Holds each worker's slots to its bounds: processors are shared out, a slot of too much memory is started again."""

from __future__ import annotations

from keelman.runtime.logs.logging import get_logger
from keelman.spark.copy_runs.leases import Leases
from keelman.spark.copy_runs.runs import Owner
from keelman.spark.slots.choice import Slot, SlotState
from keelman.spark.slots.pool import SlotPool
from keelman.spark.slots.usage import MEBIBYTE, share_out

log = get_logger()
# A slot that was ended for its memory takes its time to grow again: no further one is ended meanwhile.
REST_SECONDS = 30.0
# Shares within this of the last ones are not sent again.
TELL_FROM = 0.05


class Bounder:
    """Looks once a second. Used by the dispatcher only."""

    def __init__(self, pool: SlotPool, leases: Leases) -> None:
        self._pool, self._leases = pool, leases
        self._recycled: dict[Owner, float] = {}

    def look(self, now: float) -> list[tuple[Slot, str]]:
        """Sends slots their shares; returns the slots to be ended for their memory, and why."""
        self._recycled = {owner: at for owner, at in self._recycled.items() if now - at < REST_SECONDS}
        ends = []
        for owner in list(self._leases):
            bounds = self._leases.bounds(owner)
            mine = [s for s in self._pool.of(owner) if s.state is SlotState.ATTACHED]
            if mine:
                self._share(bounds.cpus, mine)
            used = sum(s.memory_bytes for s in mine)
            if bounds.memory_bytes and used > bounds.memory_bytes and owner not in self._recycled:
                self._recycled[owner] = now
                largest = max(mine, key=lambda s: (s.memory_bytes, s.id))
                message = (
                    f"the slots of worker {owner.worker} held {used // MEBIBYTE} MiB, and may hold "
                    f"{bounds.memory_bytes // MEBIBYTE} MiB together: the largest, {largest.id} with "
                    f"{largest.memory_bytes // MEBIBYTE} MiB, is started again"
                )
                log.warning("slot_over_memory", slot=largest.id, worker=owner.worker, message=message)
                ends.append((largest, message))
        return ends

    def _share(self, cpus: float, mine: list[Slot]) -> None:
        shares = share_out(cpus, mine) if cpus > 0 else {s.id: 0.0 for s in mine}
        for slot in mine:
            if abs(shares[slot.id] - slot.cpus) > TELL_FROM * slot.cpus:
                slot.cpus = shares[slot.id]
                self._pool.mail(slot).bound(slot.cpus)

"""Computes the slots' use of each worker, and the share of each slot. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from keelman.api.copy.v1.worker_link_service_pb2 import SlotUsage
from keelman.rpc.times import to_duration
from keelman.spark.copy_runs.runs import Owner
from keelman.spark.slots.choice import Slot

# A slot that has not reported yet, or has not grown yet, counts as one with a few loops: else too many start at once.
SLOT_BYTES = 64 << 20
MEBIBYTE = 1 << 20
# A slot that uses this much of its share could use more.
WANTS_MORE = 0.85
SLACK_CPUS = 0.05


class SlotUsageTotals:
    """Processor seconds of slots that have ended, by the start of the worker that they belonged to."""

    def __init__(self) -> None:
        self._ended: dict[Owner, float] = {}

    def ended(self, slot: Slot) -> None:
        """Adds the use of a slot that is gone for good."""
        self._ended[slot.owner] = self._ended.get(slot.owner, 0.0) + slot.cpu_seconds

    def forget(self, owners: Iterable[Owner]) -> None:
        """Forgets workers that are gone, and so are their slots."""
        for owner in owners:
            self._ended.pop(owner, None)

    def known(self) -> list[Owner]:
        """Returns workers that had slots."""
        return list(self._ended)

    def of(self, owner: Owner, slots: Iterable[Slot]) -> SlotUsage:
        """Returns the present use of a worker's slots; `slots` are its slots."""
        mine = list(slots)
        return SlotUsage(
            slots=len(mine),
            cpu_time=to_duration(self._ended.get(owner, 0.0) + sum(s.cpu_seconds for s in mine)),
            memory_bytes=sum(s.memory_bytes for s in mine),
        )


def claimed(slots: Iterable[Slot]) -> int:
    """Returns the bytes that a worker's slots hold or are about to."""
    return sum(max(s.memory_bytes, SLOT_BYTES) for s in slots)


def too_much(worker: str, slots: Iterable[Slot], bound: int) -> str:
    """Returns why no further copy run fits a worker's memory; empty while one does, and always without a bound (0)."""
    used = sum(s.memory_bytes for s in slots)
    if not bound or used < bound:
        return ""
    return (
        f"the slots of worker {worker} hold {used // MEBIBYTE} MiB, and may hold {bound // MEBIBYTE} MiB together: "
        "waits until they hold less"
    )


def share_out(cpus: float, slots: Iterable[Slot]) -> Mapping[str, float]:
    """Returns processors for each slot, by id, all of them together `cpus`.

    A slot that keeps within its share gets its use and a little more; the rest goes to those that want more, in equal
    parts. Nothing is left idle: when no slot wants more, all get equal parts of the rest on top.
    """
    mine = sorted(slots, key=lambda s: s.cpu_rate)
    shares: dict[str, float] = {}
    left, hungry = cpus, []
    for index, slot in enumerate(mine):
        fair = left / (len(mine) - index)
        cpu_rate = slot.cpu_rate + SLACK_CPUS
        wants_more = slot.cpus <= 0 or slot.cpu_rate >= WANTS_MORE * slot.cpus
        if wants_more or cpu_rate >= fair:
            hungry.append(slot)
            continue
        shares[slot.id] = cpu_rate
        left -= cpu_rate
    for slot in hungry:
        shares[slot.id] = left / len(hungry)
    if not hungry and mine:
        for slot in mine:
            shares[slot.id] += left / len(mine)
    return shares

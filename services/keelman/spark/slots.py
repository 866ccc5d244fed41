"""Which slot a copy run goes to: pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from keelman.spark.runs import Owner


class SlotState(Enum):
    """Where a slot stands. Only the first two take copy runs."""

    STARTING = "starting"
    ATTACHED = "attached"
    ENDING = "ending"


@dataclass(slots=True)
class Slot:
    """One slot of one worker. Times are seconds of the monotonic clock."""

    id: str
    owner: Owner
    token: str
    started: float
    state: SlotState = SlotState.STARTING
    runs: set[str] = field(default_factory=set)
    heard: float = 0.0
    empty_since: float = 0.0
    pid: int = 0
    memory_bytes: int = 0
    cpu_seconds: float = 0.0

    @property
    def usable(self) -> bool:
        """Takes copy runs."""
        return self.state is not SlotState.ENDING


@dataclass(frozen=True, slots=True)
class Limits:
    """How many slots and copy runs there may be."""

    slots_per_worker: int
    runs_per_slot: int
    max_slots: int


@dataclass(frozen=True, slots=True)
class Place:
    """Into this slot."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class NewSlot:
    """Into a slot that is yet to be started."""


@dataclass(frozen=True, slots=True)
class Wait:
    """There is no place now: why, and an empty slot of another worker that could be ended for it."""

    message: str
    evict: Slot | None = None


def choose(owner: Owner, slots: Iterable[Slot], limits: Limits) -> Place | NewSlot | Wait:
    """Where the next copy run of this owner goes: an empty slot, else a new one, else the least loaded."""
    every = list(slots)
    mine = sorted((s for s in every if s.usable and s.owner == owner), key=lambda s: (len(s.runs), s.started, s.id))
    if mine and not mine[0].runs:
        return Place(mine[0])
    more = len(mine) < limits.slots_per_worker
    if more and len(every) < limits.max_slots:
        return NewSlot()
    if mine and len(mine[0].runs) < limits.runs_per_slot:
        return Place(mine[0])
    if not more:
        return Wait(
            f"each of the {len(mine)} slots of worker {owner.worker} holds {limits.runs_per_slot} copy runs "
            "(settings slots_per_worker, runs_per_slot): waits until one ends"
        )
    coming = any(not s.usable for s in every)
    idle = [] if coming else [s for s in every if s.usable and s.owner != owner and not s.runs]
    return Wait(
        f"all {limits.max_slots} slots of this Spark service are taken (setting max_slots): waits until one is free",
        min(idle, key=lambda s: (s.empty_since, s.id), default=None),
    )

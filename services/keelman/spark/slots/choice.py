"""Chooses the slot for a copy run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from keelman.spark.copy_runs.runs import Owner


class SlotState(Enum):
    """The state of a slot. Only the first two take copy runs."""

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
    standstill: float = 0.0  # seconds that it may be silent from `heard` on, beside the usual ones, as it announced
    empty_since: float = 0.0
    waited: float = 0.0  # seconds for which it waited for a core of its cluster, and so could not start
    pid: int = 0
    host: str = ""  # its host's name for itself
    memory_bytes: int = 0
    cpu_seconds: float = 0.0
    cpu_rate: float = 0.0  # processors, over the last second or so
    measured_at: float = 0.0
    cpus: float = 0.0  # the bound that it last received; 0: without bound
    plugin: str = ""  # folder of the one plugin that it runs; empty for our own connectors
    alone: bool = False  # takes one copy run only, or the few of its plugin that may share one
    plugin_runs: int = 1  # how many of that plugin's it takes
    data: str = ""  # the copy run whose rows its Spark job has; empty for most
    routes: Mapping[str, str] = field(default_factory=dict)  # addresses of host names that only it has

    def measured(self, cpu_seconds: float, memory_bytes: int, now: float) -> None:
        """Takes its process's report about itself."""
        if now > self.measured_at:
            since = self.measured_at or self.started
            self.cpu_rate = max(0.0, cpu_seconds - self.cpu_seconds) / max(now - since, 0.1)
        self.cpu_seconds, self.memory_bytes, self.measured_at = cpu_seconds, memory_bytes, now

    @property
    def usable(self) -> bool:
        """Whether it takes copy runs."""
        return self.state is not SlotState.ENDING


@dataclass(frozen=True, slots=True)
class SlotLimits:
    """The most slots and copy runs.

    `slots_per_worker` and `runs_per_slot` are of shared slots; `busy_slots` is the most slots of their own for a
    worker's busy tasks; `max_slots` counts every slot. With `warm` each worker has an empty slot ready, `max_warm` of
    all workers at most.
    """

    slots_per_worker: int
    runs_per_slot: int
    max_slots: int
    busy_slots: int = 0
    warm: bool = False
    max_warm: int = 250


@dataclass(frozen=True, slots=True)
class Need:
    """A copy run's demand: a slot of its own, for a plugin's folder always, for a busy task if there is room.

    `plugin_runs` copy runs of one plugin may share theirs. With `data`, its own uid, it needs a slot that is started
    with the rows that it has to read.
    """

    plugin: str = ""
    busy: bool = False
    data: str = ""
    plugin_runs: int = 1


SHARED = Need()


@dataclass(frozen=True, slots=True)
class SlotPlace:
    """A place in this slot."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class NewSlot:
    """A place in a slot that has yet to be started."""

    plugin: str = ""
    alone: bool = False
    data: str = ""
    plugin_runs: int = 1


@dataclass(frozen=True, slots=True)
class Wait:
    """There is no place now: the reason, and an empty slot of another worker that could be ended for it."""

    message: str
    evict: Slot | None = None


def choose(
    owner: Owner, slots: Iterable[Slot], limits: SlotLimits, need: Need = SHARED, *, may_start: bool = True
) -> SlotPlace | NewSlot | Wait:
    """Returns the place of the owner's next copy run. `may_start` is False while its memory has no room for another
    slot."""
    every = list(slots)
    mine = sorted((s for s in every if s.usable and s.owner == owner), key=lambda s: (len(s.runs), s.started, s.id))
    if need.data:
        room = len(every) < limits.max_slots and may_start
        return NewSlot(alone=True, data=need.data) if room else _full(every, owner, limits, may_start)
    own = _own(mine, len(every) < limits.max_slots and may_start, limits, need)
    if own is not None:
        return own
    if need.plugin:
        return _full(every, owner, limits, may_start)
    return _shared(every, [s for s in mine if not s.alone], owner, limits, may_start)


def _own(mine: list[Slot], room: bool, limits: SlotLimits, need: Need) -> SlotPlace | NewSlot | None:
    """Returns a slot for this copy run alone; None when there is none, or none is needed."""
    if not need.plugin and not need.busy:
        return None
    alike = [s for s in mine if s.alone and not s.data and s.plugin == need.plugin]
    free = [s for s in alike if len(s.runs) < min(need.plugin_runs, s.plugin_runs)]
    if free:
        return SlotPlace(max(free, key=lambda s: len(s.runs)))  # full before another virtual machine is started
    if not room or (not need.plugin and len(alike) >= limits.busy_slots):
        return None
    return NewSlot(need.plugin, alone=True, plugin_runs=need.plugin_runs)


def _shared(
    every: list[Slot], mine: list[Slot], owner: Owner, limits: SlotLimits, may_start: bool
) -> SlotPlace | NewSlot | Wait:
    """Returns an empty slot, else a new one, else the least loaded."""
    if mine and not mine[0].runs:
        return SlotPlace(mine[0])
    more = len(mine) < limits.slots_per_worker
    if more and len(every) < limits.max_slots and may_start:
        return NewSlot()
    if mine and len(mine[0].runs) < limits.runs_per_slot:
        return SlotPlace(mine[0])
    if not more:
        return Wait(
            f"each of the {len(mine)} slots of worker {owner.worker} holds {limits.runs_per_slot} copy runs "
            "(settings slots_per_worker, runs_per_slot): waits until one ends"
        )
    return _full(every, owner, limits, may_start)


def _full(every: list[Slot], owner: Owner, limits: SlotLimits, may_start: bool) -> Wait:
    if not may_start:
        return Wait(f"the memory that worker {owner.worker} may use has no room for another slot: waits until there is")
    coming = any(not s.usable for s in every)
    idle = [] if coming else [s for s in every if s.usable and not s.runs]
    return Wait(
        f"all {limits.max_slots} slots of this Spark service are taken (setting max_slots): waits until one is free",
        min(idle, key=lambda s: (s.empty_since, s.id), default=None),
    )


def warm(owner: Owner, slots: Iterable[Slot], limits: SlotLimits) -> bool:
    """Returns whether a slot has to be started ahead, so that the owner's next copy run finds an empty one attached."""
    every = list(slots)
    mine = [s for s in every if s.usable and s.owner == owner and not s.alone]
    return (
        limits.warm
        and len(every) < limits.max_slots
        and len(mine) < limits.slots_per_worker
        and all(s.runs for s in mine)
        and sum(map(_is_empty, every)) < limits.max_warm
    )


def keeps(slot: Slot, slots: Iterable[Slot], limits: SlotLimits) -> bool:
    """Returns whether an empty slot stays, however long it is empty: each worker keeps one for its next copy run, as
    long as it is among the workers that had a copy run last."""
    empty = [s for s in slots if _is_empty(s) and s is not slot]
    newer = [s for s in empty if (s.empty_since, s.id) > (slot.empty_since, slot.id)]
    return _is_empty(slot) and len(newer) < limits.max_warm and all(s.owner != slot.owner for s in empty)


def _is_empty(slot: Slot) -> bool:
    return slot.usable and not slot.alone and not slot.runs

"""The planner's decisions, with their reasons."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class PlanAction(StrEnum):
    """The action of a plan on a workload."""

    PLACE = "PLACE"
    MOVE = "MOVE"
    CHANGE = "CHANGE"
    """It runs with another spec, or runs again."""
    STOP = "STOP"
    REMOVE = "REMOVE"
    FORGET = "FORGET"


@dataclass(frozen=True, slots=True)
class PlanChange:
    """One change of a plan. `from_node`: the node before a move, else empty; `reason`: why, for people."""

    workload: str
    action: PlanAction
    node: str
    generation: int
    reason: str
    from_node: str = ""


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan that was carried out. `revision` is that of its first change; the time is aware UTC."""

    revision: int
    create_time: datetime
    changes: tuple[PlanChange, ...]

"""Finds a plan's changes of each workload, and their reasons. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.model.plan import PlanAction, PlanChange
from keelman.model.workload import Goal, Workload

_ENDS = {Goal.STOPPED: PlanAction.STOP, Goal.REMOVED: PlanAction.REMOVE}
_WHY = {
    PlanAction.PLACE: "its cluster was started",
    PlanAction.MOVE: "its node no longer carries it",
    PlanAction.CHANGE: "its settings changed",
    PlanAction.STOP: "its cluster was stopped",
    PlanAction.REMOVE: "its cluster has it no longer",
    PlanAction.FORGET: "it has ended",
}


def change_of(old: Workload | None, new: Workload | None, reasons: Mapping[str, str]) -> PlanChange | None:
    """Returns the change of one workload; None when its agent has nothing to do."""
    if new is None:
        return None if old is None else _made(PlanAction.FORGET, old, reasons)
    if old is not None and old.generation == new.generation:
        return None
    if new.goal is not Goal.RUNNING:
        return _made(_ENDS[new.goal], new, reasons)
    if old is None:
        return _made(PlanAction.PLACE, new, reasons)
    if old.node != new.node:
        return _made(PlanAction.MOVE, new, reasons, old.node)
    return _made(PlanAction.CHANGE, new, reasons)


def _made(action: PlanAction, workload: Workload, reasons: Mapping[str, str], from_node: str = "") -> PlanChange:
    reason = reasons.get(workload.name) or _WHY[action]
    return PlanChange(workload.name, action, workload.node, workload.generation, reason, from_node)

"""Decides which failures last: nothing will come up until somebody changes something. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from keelman.model.workload import LASTING, ProcessState, Workload, WorkloadKind
from keelman.state.planning.draft import ports_taken


def is_stuck(workloads: Iterable[Workload], fixed: Collection[int] = ()) -> bool:
    """Whether one of these failed, and no further start will help. `fixed` are the ports that their cluster names."""
    return any(w.is_in(ProcessState.FAILED) and _lasts(w, fixed) for w in workloads)


def _lasts(workload: Workload, fixed: Collection[int]) -> bool:
    if workload.current is not None and workload.current.reason in LASTING:
        return True
    # A broker's data and port belong together; others get another port where none is named.
    pinned = workload.ports if workload.kind is WorkloadKind.BROKER and workload.has_run else fixed
    return any(port in pinned for port in ports_taken(workload))

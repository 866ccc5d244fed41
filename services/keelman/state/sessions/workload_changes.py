"""Compares workloads with what agents report, and with what they were sent. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from keelman.model.workload import ProcessState, Workload, WorkloadStatus


def changes_of(
    present: Mapping[str, Workload], statuses: Mapping[str, WorkloadStatus], *, complete: bool
) -> list[Workload]:
    """Returns the workloads whose reported status differs from the stored one, by name."""
    changed = []
    for name, workload in sorted(present.items()):
        status = statuses.get(name)
        if status is None:
            if complete and workload.status is not None:
                changed.append(dataclasses.replace(workload, status=None))
        elif _essence(status) != _essence(workload.status):
            ran, generation = workload.has_run or status.state is ProcessState.RUNNING, _obeyed(workload, status)
            changed.append(dataclasses.replace(workload, status=status, has_run=ran, generation=generation))
    return changed


def _obeyed(workload: Workload, status: WorkloadStatus) -> int:
    """Returns the generation at which an agent obeys the plan. It knows a newer one than the database only if that was
    restored from a backup, and ignores older ones."""
    return workload.generation if status.generation <= workload.generation else status.generation + 1


def _essence(status: WorkloadStatus | None) -> WorkloadStatus | None:
    return None if status is None else dataclasses.replace(status, memory_bytes=0, observe_time=None)


def differs(old: Workload | None, new: Workload) -> bool:
    """Returns whether an agent has to be sent the workload again."""
    return old is None or (old.uid, old.generation, old.goal, old.spec) != (
        new.uid, new.generation, new.goal, new.spec,
    )  # fmt: skip

"""Distinguishes a process that fails at each start from one that is merely restarted: the states of the former in
between are no news. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from keelman.model.workload import ProcessState, Workload, WorkloadStatus

BEGINNING = (ProcessState.PENDING, ProcessState.PREPARING, ProcessState.STARTING)
MANY = 3


@dataclass(slots=True)
class CrashLoops:
    """Counts how often in a row each workload's process has failed before it ran."""

    _failures: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Generation, restarts and failures, by name."""

    def forget(self, name: str) -> None:
        """Forgets a workload that is gone."""
        self._failures.pop(name, None)

    def shown(self, name: str, status: WorkloadStatus, stored: Workload | None) -> WorkloadStatus:
        """Returns the status to store for a reported one.

        After the third failure in a row that is the stored one, FAILED, until the process runs or has failed again.
        """
        generation, restarts, failures = self._failures.get(name, (0, -1, 0))
        stored_status = None if stored is None else stored.status
        if status.state is ProcessState.FAILED:
            if (generation, restarts) != (status.generation, status.restarts):
                again = failures + 1 if generation == status.generation else 1
                self._failures[name] = status.generation, status.restarts, again
            return status
        if status.state not in BEGINNING or generation != status.generation:
            self._failures.pop(name, None)
            return status
        if failures < MANY or stored_status is None or stored_status.state is not ProcessState.FAILED:
            return status
        return stored_status

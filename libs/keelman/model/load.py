"""Adds up the load of a node. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from keelman.model.workload import Goal, Workload, WorkloadKind


class Load(NamedTuple):
    """The load of a node: workers that should run, and the resource limits of all its workloads that should run."""

    workers: int = 0
    cpus: float = 0.0
    memory_bytes: int = 0
    with_cpus: int = 0
    """How many of the workers have a bound of processors."""
    with_memory: int = 0

    @staticmethod
    def of(workloads: Sequence[Workload]) -> Load:
        """Returns the load of a node with these workloads."""
        running = [w for w in workloads if w.goal is Goal.RUNNING]
        workers = [w for w in running if w.kind is WorkloadKind.WORKER]
        return Load(
            len(workers),
            sum(w.limits.cpus for w in running),
            sum(w.limits.memory_bytes for w in running),
            sum(w.limits.cpus > 0 for w in workers),
            sum(w.limits.memory_bytes > 0 for w in workers),
        )

"""Waits for the workers that an operation has started or changed, for all kinds of operations that do so."""

from __future__ import annotations

from datetime import datetime, timedelta

from keelman.model.cluster import WorkerCluster
from keelman.model.operation import Operation
from keelman.model.workload import WorkloadKind
from keelman.state.dedicated.rules import is_queued, workers_outcome
from keelman.state.operations.moves import Outcome
from keelman.state.planning.planned import Planned
from keelman.state.resources.store import ResourceStore

START_SECONDS = 3600.0
"""The limit of a step that waits so: workers of a node start a few at a time, and one may have to wait for a hundred
others."""


class StartedWorkers:
    """Tells the progress of a cluster's workers. The time in which a worker waits for its turn does not count: time
    counts from when a worker was last seen to wait."""

    def __init__(self, store: ResourceStore, planned: Planned) -> None:
        self._store, self._planned = store, planned
        self._queued: dict[str, tuple[str, datetime]] = {}
        """By cluster: the operation that waits for its workers, and the last time when one of these waited for its
        turn."""

    def outcome(
        self, operation: Operation, cluster: WorkerCluster, since: datetime, *, placed: bool = False
    ) -> Outcome:
        """Returns whether they run as wanted, for an operation that waits for them since then. `placed`: they have to
        move. Raises FailedPrecondition once the cause is known why they do not."""
        snapshot, now = self._store.snapshot, self._store.database.clock()
        if is_queued(snapshot.workloads_in(WorkloadKind.WORKER, cluster.name)):
            self._queued[cluster.name] = operation.name, now
        name, queued = self._queued.get(cluster.name, ("", since))
        waited: timedelta = now - (max(since, queued) if name == operation.name else since)
        return workers_outcome(cluster, snapshot, self._planned.observed(cluster), waited, placed=placed)

"""How long an operation waits for its workers: the time that a worker waits for its turn does not count."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from keelman.model.cluster import ClusterGoal, ClusterState, WorkerCluster, WorkerClusterSpec, WorkerClusterStatus
from keelman.model.errors import FailedPrecondition
from keelman.model.operation import Operation, OperationKind, OperationTarget
from keelman.model.workload import (
    START_QUEUED,
    Goal,
    ProcessState,
    SparkSpec,
    Trial,
    WorkerSpec,
    Workload,
    WorkloadStatus,
)
from keelman.state.dedicated.rules import SLOW_START_WITHIN, START_WITHIN
from keelman.state.dedicated.started_workers import StartedWorkers
from keelman.state.operations.moves import Outcome, Waiting
from support.state.snapshots import snapshot_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SOON = timedelta(seconds=1)
STARTING = WorkerClusterStatus(ClusterState.STARTING)
CLUSTER = WorkerCluster("one", "u", NOW, NOW, 3, "", ClusterGoal.RUNNING, WorkerClusterSpec("b"), status=STARTING)
OPERATION = Operation(
    "op-1", "o1", NOW, NOW, OperationKind.APPLY_CONNECTOR, OperationTarget("connector", "one", 1, ""), ()
)


class Plane:
    """A store with one worker that starts or waits for its turn, and a clock."""

    def __init__(self) -> None:
        self.now = NOW
        store: Any = SimpleNamespace(snapshot=None, database=SimpleNamespace(clock=lambda: self.now))
        planned: Any = SimpleNamespace(observed=lambda _: 3)
        self._store, self._workers = store, StartedWorkers(store, planned)

    def look(
        self, reason: str, operation: Operation = OPERATION, *, restarts: int = 1, before: int = 0,
        spark: ProcessState = ProcessState.STARTING,
    ) -> Outcome:  # fmt: skip
        status = WorkloadStatus(ProcessState.STARTING, 1, reason=reason, restarts=restarts)
        worker = Workload("worker/one/0", "n1", 1, Goal.RUNNING, WorkerSpec("one", "h", 1, {}, ""), status=status)
        worker = replace(worker, trial=Trial(restarts=before))
        copies = Workload("spark/n1", "n1", 1, Goal.RUNNING, SparkSpec("h", 0, ""), status=WorkloadStatus(spark, 1))
        self._store.snapshot = snapshot_of({}, workloads={worker.name: worker, copies.name: copies})
        return self._workers.outcome(operation, CLUSTER, NOW)


def test_a_worker_that_does_not_start_is_given_up() -> None:
    plane = Plane()
    plane.now += START_WITHIN - SOON
    assert isinstance(plane.look(""), Waiting)
    plane.now += SOON
    with pytest.raises(FailedPrecondition, match="the workers do not run after 180 s"):
        plane.look("")


def test_a_worker_whose_process_has_not_ended_has_longer() -> None:
    """On a busy machine it and its Spark service need minutes."""
    plane = Plane()
    plane.now += SLOW_START_WITHIN - SOON
    assert isinstance(plane.look("", restarts=0), Waiting)
    assert isinstance(plane.look("", restarts=2, before=2), Waiting), "restarts of an earlier change"
    for failed in ({"restarts": 1}, {"restarts": 3, "before": 2}, {"restarts": 0, "spark": ProcessState.FAILED}):
        with pytest.raises(FailedPrecondition, match="the workers do not run after 180 s"):
            plane.look("", **failed)  # type: ignore[arg-type]
    plane.now += SOON
    with pytest.raises(FailedPrecondition, match="the workers do not run after 900 s"):
        plane.look("", restarts=0)


def test_the_time_in_the_queue_is_not_its_own() -> None:
    plane = Plane()
    for _ in range(5):
        plane.now += START_WITHIN
        assert isinstance(plane.look(START_QUEUED), Waiting)
    plane.now += START_WITHIN - SOON
    assert isinstance(plane.look(""), Waiting)
    plane.now += SOON
    with pytest.raises(FailedPrecondition):
        plane.look("")


def test_a_later_operation_counts_for_itself() -> None:
    plane = Plane()
    plane.now += START_WITHIN
    assert isinstance(plane.look(START_QUEUED), Waiting)
    with pytest.raises(FailedPrecondition):
        plane.look("", replace(OPERATION, name="op-2"))

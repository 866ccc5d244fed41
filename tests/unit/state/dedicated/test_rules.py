"""The verdicts on a worker cluster that comes up or does not, and on a connector after a change."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from keelman.api.connect.v1.connector_pb2 import (
    CONNECTOR_STATE_FAILED,
    CONNECTOR_STATE_RUNNING,
    CONNECTOR_STATE_UNASSIGNED,
    Connector,
    ConnectorTask,
)
from keelman.model.cluster import (
    ClusterGoal,
    ClusterState,
    Rollout,
    RolloutState,
    WorkerCluster,
    WorkerClusterSpec,
    WorkerClusterStatus,
)
from keelman.model.connectors.connector_definition import DefinitionGoal
from keelman.model.errors import FailedPrecondition, Internal
from keelman.model.node import Node, NodeState
from keelman.model.workload import START_QUEUED, Goal, ProcessState, WorkerSpec, Workload, WorkloadStatus
from keelman.state.dedicated.rules import START_WITHIN, coded, health, is_queued, watched, workers_outcome
from keelman.state.operations.moves import Done, Waiting
from keelman.state.resources.snapshot import Snapshot
from support.state.snapshots import snapshot_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UP = WorkerClusterStatus(ClusterState.RUNNING, ready_workers=1)
CLUSTER = WorkerCluster("one", "u", NOW, NOW, 3, "", ClusterGoal.RUNNING, WorkerClusterSpec("b", count=1), status=UP)
SOON, LATE = timedelta(seconds=1), START_WITHIN + timedelta(seconds=1)
R, F, U = CONNECTOR_STATE_RUNNING, CONNECTOR_STATE_FAILED, CONNECTOR_STATE_UNASSIGNED


def worker(reason: str = "", state: ProcessState = ProcessState.FAILED) -> Workload:
    status = WorkloadStatus(state, 1, reason=reason)
    return Workload("worker/one/0", "n1", 1, Goal.RUNNING, WorkerSpec("one", "h", 1, {}, ""), status=status)


NONE = Snapshot()


def seen(*workers: Workload, offline: str = "") -> Snapshot:
    """These workers, each on its node: n1, n2 and so on."""
    results = [replace(worker, name=f"worker/one/{n}", node=f"n{n + 1}") for n, worker in enumerate(workers)]
    states = {w.node: NodeState.OFFLINE if w.node == offline else NodeState.ONLINE for w in results}
    nodes = {name: Node(name, name, NOW, NOW, state, "h:1") for name, state in states.items()}
    return snapshot_of(nodes, workloads={workload.name: workload for workload in results})


def test_a_worker_that_waits_for_others_of_its_node_is_queued() -> None:
    begun, unheard = worker("", ProcessState.STARTING), replace(worker(), status=None)
    assert is_queued([begun, worker(START_QUEUED, ProcessState.PREPARING)])
    assert not is_queued([begun, unheard])
    assert not is_queued([])


def test_workers_that_run_as_planned_are_there() -> None:
    assert isinstance(workers_outcome(CLUSTER, NONE, 3, SOON), Done)
    assert isinstance(workers_outcome(CLUSTER, NONE, 2, LATE), Waiting), "the reports are from before the change"
    for status in (
        replace(UP, leaving_workers=1),
        replace(UP, state=ClusterState.STARTING),
        replace(UP, rollout=Rollout(RolloutState.ROLLING, 0, 1)),
    ):
        assert isinstance(workers_outcome(replace(CLUSTER, status=status), NONE, 3, SOON), Waiting)


@pytest.mark.parametrize(
    ("status", "note", "workers", "waited", "reason"),
    [
        (replace(UP, rollout=Rollout(RolloutState.HALTED, 0, 1, "one/0", "why")), "", [], SOON, "WORKER_FAILED"),
        (replace(UP, state=ClusterState.DEGRADED, stuck=True), "", [worker("REFUSED")], SOON, "WORKER_FAILED"),
        (
            replace(UP, state=ClusterState.DEGRADED, stuck=True),
            "",
            [worker("WRONG_TOPIC")],
            SOON,
            "TOPIC_NOT_COMPACTED",
        ),
        (replace(UP, state=ClusterState.DEGRADED, stuck=True), "", [worker("UNAUTHENTICATED")], SOON, "BROKERS_REFUSE"),
        (replace(UP, state=ClusterState.STARTING), "no node", [], timedelta(seconds=6), "NO_NODE"),
        (replace(UP, state=ClusterState.STARTING), "", [], LATE, "WORKER_FAILED"),
        (
            replace(UP, state=ClusterState.STARTING), "",
            [worker("BROKERS_REFUSE", ProcessState.STARTING), worker("BROKERS_UNREACHABLE", ProcessState.STARTING)],
            timedelta(seconds=6), "BROKERS_REFUSE",
        ),
    ],
)  # fmt: skip
def test_causes_are_known(
    status: WorkerClusterStatus, note: str, workers: list[Workload], waited: timedelta, reason: str
) -> None:
    with pytest.raises(FailedPrecondition) as raised:
        workers_outcome(replace(CLUSTER, status=status, note=note), seen(*workers), 3, waited)
    assert raised.value.reason == reason


def test_one_worker_out_of_reach_of_its_brokers_is_no_cause_nor_one_that_is_heard_no_more() -> None:
    starting = replace(CLUSTER, status=replace(UP, state=ClusterState.STARTING))
    away, well = worker("BROKERS_UNREACHABLE", ProcessState.RUNNING), worker("", ProcessState.RUNNING)
    for snapshot in (
        seen(away, well),
        seen(away, offline="n1"),
        seen(away, well, offline="n1"),
        seen(replace(away, goal=Goal.REMOVED), well),
    ):
        assert isinstance(workers_outcome(starting, snapshot, 3, timedelta(seconds=6)), Waiting)
        assert isinstance(workers_outcome(CLUSTER, snapshot, 3, timedelta(seconds=6)), Done)
    with pytest.raises(FailedPrecondition) as raised:
        workers_outcome(starting, seen(away, well, offline="n2"), 3, timedelta(seconds=6))
    assert raised.value.reason == "BROKERS_UNREACHABLE"


def test_workers_that_cannot_go_where_they_are_to_be() -> None:
    stays = replace(CLUSTER, note="no node has the labels")
    assert isinstance(workers_outcome(stays, NONE, 3, SOON), Done)
    assert isinstance(workers_outcome(stays, NONE, 3, SOON, placed=True), Waiting)
    with pytest.raises(FailedPrecondition, match="no node has the labels"):
        workers_outcome(stays, NONE, 3, timedelta(seconds=6), placed=True)


def connector(state: int, *tasks: int) -> Connector:
    connector_tasks = [ConnectorTask(task=n, state=task, trace="bad") for n, task in enumerate(tasks)]  # type: ignore[arg-type]
    return Connector(name="c", state=state, tasks=connector_tasks, trace="worse")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("actual_connector", "waited", "had_failed", "expected"),
    [
        (connector(R, R), 4.0, False, Done),
        (connector(R, R), 1.0, False, Done),
        (connector(R, U), 9.0, False, Waiting),
        (connector(U), 9.0, False, Waiting),
        (connector(R), 4.0, False, Waiting),
        (connector(R), 6.0, False, Done),
        (connector(R, F), 1.0, True, Waiting),
        (connector(R, F), 1.0, False, "TASK_FAILED"),
        (connector(F), 1.0, False, "START_FAILED"),
        (connector(F), 4.0, True, "CONNECTOR_FAILED"),
    ],
)
def test_health(actual_connector: Connector, waited: float, *, had_failed: bool, expected: object) -> None:
    seconds = timedelta(seconds=waited)
    try:
        reason: object = type(
            health(DefinitionGoal.RUNNING, actual_connector, seconds, without_tasks=seconds, had_failed=had_failed)
        )
    except FailedPrecondition as error:
        reason = error.reason
    assert reason == expected


@pytest.mark.parametrize(
    ("waited", "healthy", "expected"),
    [(2.9, 2.0, Waiting), (3.0, 1.0, Done), (9.0, 0.0, Waiting), (9.0, 0.9, Waiting), (9.5, 1.0, Done)],
)
def test_a_connector_that_started_slowly_is_watched_for_a_while_too(
    waited: float, healthy: float, expected: object
) -> None:
    seconds = [timedelta(seconds=n) for n in (waited, healthy, 3)]
    assert type(watched(Done("tasks: 1"), *seconds)) is expected


def test_errors_say_which_kind_they_are() -> None:
    no_class = coded(Internal("Failed to find any class that implements Connector and which name matches x.Y"))
    assert no_class.reason == "CLASS_NOT_FOUND"
    assert coded(FailedPrecondition("task 3 failed: no", reason="CONNECTOR_FAILED")).reason == "TASK_FAILED"
    assert coded(FailedPrecondition("the connector failed", reason="CONNECTOR_FAILED")).reason == "START_FAILED"
    assert coded(Internal("other")).reason == "INTERNAL"

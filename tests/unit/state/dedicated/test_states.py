"""The state of a dedicated connector by stored rows and reports, and its state when an operation ends."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from keelman.api.connect.v1.connector_pb2 import (
    CONNECTOR_STATE_FAILED,
    CONNECTOR_STATE_RUNNING,
    Connector,
    ConnectorTask,
)
from keelman.model.annotations import Annotations
from keelman.model.cluster import (
    BrokerCluster,
    BrokerClusterStatus,
    BrokersSeen,
    ClusterGoal,
    ClusterState,
    ExternalBrokers,
    WorkerCluster,
    WorkerClusterSpec,
    WorkerClusterStatus,
)
from keelman.model.connectors.dedicated_connector import (
    DedicatedConnector,
    DedicatedConnectorSpec,
    DedicatedFailure,
    DedicatedGoal,
    DedicatedState,
)
from keelman.model.node import Node, NodeState
from keelman.model.operation import Failure, Operation, OperationKind, OperationState, OperationTarget
from keelman.model.workload import Goal, ProcessState, WorkerSpec, Workload, WorkloadStatus
from keelman.state.dedicated.states import BROKERS_AWAY, NOTHING_REPORTED, UNDER_WAY, WORKERS_AWAY, Reported, standing
from keelman.state.dedicated.steps import noted, specs_of
from keelman.state.resources.snapshot import Snapshot
from support.state.snapshots import snapshot_of

NOW, SECOND = datetime(2026, 1, 1, tzinfo=UTC), timedelta(seconds=1)
OLD, NEW = DedicatedConnectorSpec("c", {"a": "1"}), DedicatedConnectorSpec("c", {"a": "2"})
ONE = DedicatedConnector("one", "u", NOW, NOW, 2, NEW, broker_cluster="b", operation="op-1")
BROKEN = DedicatedFailure("ConnectorError.TaskFailed", "no")
S = DedicatedState


def reported(state: int, *, fresh: bool = True, in_group: bool | None = True) -> Reported:
    task = ConnectorTask(task=0, state=state, trace="bad\nmore")  # type: ignore[arg-type]
    return Reported(Connector(name="c", state=CONNECTOR_STATE_RUNNING, tasks=[task]), fresh, in_group)


def operation(kind: OperationKind, **more: Any) -> Operation:
    return Operation("op-1", "o", NOW, NOW, kind, OperationTarget("dedicated_connector", "one"), (), **more)


@pytest.mark.parametrize(
    ("connector", "seen", "expected"),
    [
        (ONE, NOTHING_REPORTED, S.RUNNING),
        (ONE, reported(CONNECTOR_STATE_RUNNING), S.RUNNING),
        (ONE, reported(CONNECTOR_STATE_FAILED), S.FAILED),
        (ONE, reported(CONNECTOR_STATE_RUNNING, fresh=False), S.RUNNING),
        (ONE, reported(CONNECTOR_STATE_FAILED, fresh=False), S.FAILED),
        (replace(ONE, failure=BROKEN), NOTHING_REPORTED, S.FAILED),
        (replace(ONE, failure=BROKEN), reported(CONNECTOR_STATE_RUNNING, fresh=False), S.FAILED),
        (replace(ONE, failure=BROKEN), reported(CONNECTOR_STATE_RUNNING), S.RUNNING),
        (replace(ONE, goal=DedicatedGoal.PAUSED), reported(CONNECTOR_STATE_FAILED), S.PAUSED),
        (replace(ONE, goal=DedicatedGoal.ABSENT, failure=BROKEN), NOTHING_REPORTED, S.DELETING),
    ],
)
def test_without_an_operation(connector: DedicatedConnector, seen: Reported, expected: DedicatedState) -> None:
    state, failure = standing(connector, None, Snapshot(), seen, NOW)
    assert (state, failure is not None) == (expected, expected is S.FAILED)


def test_the_cause_is_what_was_reported() -> None:
    _, failure = standing(ONE, None, Snapshot(), reported(CONNECTOR_STATE_FAILED), NOW)
    assert failure == DedicatedFailure("ConnectorError.TaskFailed", "task 0 failed: bad")


@pytest.mark.parametrize("kind", UNDER_WAY)
def test_never_running_while_something_is_under_way(kind: OperationKind) -> None:
    for snapshot in (Snapshot(), known(AWAY, DOWN)):
        state, failure = standing(ONE, operation(kind), snapshot, reported(CONNECTOR_STATE_RUNNING), NOW)
        assert (state, failure) == (UNDER_WAY[kind], None)


RUNS, SILENT = reported(CONNECTOR_STATE_RUNNING), reported(CONNECTOR_STATE_RUNNING, fresh=False, in_group=False)
LEFT = reported(CONNECTOR_STATE_RUNNING, in_group=False)
BROKERS = BrokerCluster(
    "b", "b", NOW, NOW, 1, "", ClusterGoal.RUNNING, ExternalBrokers("h:1"), "id", reachable=True,
    status=BrokerClusterStatus(ClusterState.RUNNING),
)  # fmt: skip
NO_ANSWER = BrokerClusterStatus(ClusterState.DEGRADED, "no broker answers at h:1", down_since=NOW - BROKERS_AWAY)
AWAY = replace(BROKERS, reachable=False, status=NO_ANSWER)
JUST_AWAY = replace(AWAY, status=replace(NO_ANSWER, down_since=NOW - BROKERS_AWAY + SECOND))
CLUSTER = WorkerCluster(
    "one", "w", NOW, NOW, 1, "", ClusterGoal.RUNNING, WorkerClusterSpec("b", count=1),
    status=WorkerClusterStatus(ClusterState.RUNNING, ready_workers=1),
)  # fmt: skip
NONE_READY = WorkerClusterStatus(ClusterState.DEGRADED, "worker/one/0: why", down_since=NOW - WORKERS_AWAY)
DOWN = replace(CLUSTER, status=NONE_READY)
JUST_DOWN = replace(DOWN, status=replace(NONE_READY, down_since=NOW - WORKERS_AWAY + SECOND))
WORKER = Workload("worker/one/0", "n1", 1, Goal.RUNNING, WorkerSpec("one", "h", 1, {}, ""))


def known(
    brokers: BrokerCluster, workers: WorkerCluster, *, node: NodeState = NodeState.ONLINE, reason: str = "",
    away: Sequence[str] = (),
) -> Snapshot:  # fmt: skip
    """A snapshot of these clusters with one worker, failed if `reason` is set; or with one worker per item of `away`,
    which is its reason ("" for none).
    """
    status = WorkloadStatus(ProcessState.FAILED if reason else ProcessState.STARTING, 1, reason=reason)
    results = [replace(WORKER, status=status)] if not away else []
    for number, said in enumerate(away):
        status = WorkloadStatus(ProcessState.RUNNING, 1, reason=said, message=f"{number}: no broker answers")
        results.append(replace(WORKER, name=f"worker/one/{number}", status=status))
    nodes = {"n1": Node("n1", "n1", NOW, NOW, node, "h:1")}
    return snapshot_of(nodes, {"b": brokers}, {"one": workers}, {workload.name: workload for workload in results})


@pytest.mark.parametrize("seen", [RUNS, SILENT, LEFT, NOTHING_REPORTED])
@pytest.mark.parametrize("snapshot", [known(BROKERS, CLUSTER), known(JUST_AWAY, JUST_DOWN)])
def test_it_runs_while_brokers_and_workers_are_there_or_away_for_some_seconds(
    snapshot: Snapshot, seen: Reported
) -> None:
    assert standing(ONE, None, snapshot, seen, NOW) == (S.RUNNING, None)


@pytest.mark.parametrize(
    ("snapshot", "seen", "code", "message"),
    [
        (known(AWAY, CLUSTER), LEFT, "ClusterError.BrokerUnreachable", "no broker answers at h:1"),
        (known(AWAY, CLUSTER), SILENT, "ClusterError.BrokerUnreachable", "no broker answers at h:1"),
        (known(AWAY, CLUSTER), NOTHING_REPORTED, "ClusterError.BrokerUnreachable", "no broker answers at h:1"),
        (known(AWAY, DOWN), SILENT, "ClusterError.BrokerUnreachable", "no broker answers at h:1"),
        (known(replace(AWAY, status=replace(NO_ANSWER, message="")), CLUSTER), LEFT,
         "ClusterError.BrokerUnreachable", "no broker of broker cluster 'b' runs"),
        (known(replace(AWAY, seen=BrokersSeen(problem="no", refused=True)), CLUSTER), LEFT,
         "ClusterError.AuthenticationFailed", "no broker answers at h:1"),
        (known(BROKERS, replace(DOWN, note="no node")), SILENT, "CapacityError.NoNodeAvailable", "worker/one/0: why"),
        (known(BROKERS, DOWN, node=NodeState.OFFLINE), SILENT, "CapacityError.NoNodeAvailable", "worker/one/0: why"),
        (known(BROKERS, DOWN, node=NodeState.OFFLINE), LEFT, "CapacityError.NoNodeAvailable", "worker/one/0: why"),
        (known(BROKERS, DOWN, reason="CRASHED"), SILENT, "CapacityError.WorkerStartFailed", "worker/one/0: why"),
        (known(BROKERS, DOWN, reason="UNAUTHENTICATED"), SILENT,
         "ClusterError.AuthenticationFailed", "worker/one/0: why"),
        (known(BROKERS, replace(DOWN, status=replace(NONE_READY, state=ClusterState.STARTING, message=""))), SILENT,
         "CapacityError.WorkerStartFailed", "no worker of it is ready: its worker cluster is STARTING"),
        (known(BROKERS, replace(CLUSTER, status=replace(CLUSTER.status, stuck=True, message="stuck"))), RUNS,
         "CapacityError.WorkerStartFailed", "stuck"),
        (known(BROKERS, DOWN), reported(CONNECTOR_STATE_FAILED, fresh=False, in_group=False),
         "CapacityError.WorkerStartFailed", "worker/one/0: why"),
        (known(BROKERS, DOWN), reported(CONNECTOR_STATE_FAILED), "ConnectorError.TaskFailed", "task 0 failed: bad"),
        (known(BROKERS, CLUSTER, away=["BROKERS_UNREACHABLE"] * 2), SILENT,
         "ClusterError.BrokerUnreachable", "0: no broker answers"),
        (known(BROKERS, CLUSTER, away=["BROKERS_REFUSE"]), LEFT,
         "ClusterError.AuthenticationFailed", "0: no broker answers"),
        (known(BROKERS, CLUSTER, away=["CONSUMER_GROUP_UNREACHABLE"]), RUNS,
         "ClusterError.BrokerUnreachable", "0: no broker answers"),
        (known(BROKERS, CLUSTER, away=["SPARK_UNREACHABLE"] * 2), RUNS,
         "CapacityError.SparkUnreachable", "0: no broker answers"),
        (known(BROKERS, CLUSTER, away=["SPARK_UNREACHABLE"]), SILENT,
         "CapacityError.SparkUnreachable", "0: no broker answers"),
    ],
)  # fmt: skip
def test_a_failure_that_is_known_has_its_cause(snapshot: Snapshot, seen: Reported, code: str, message: str) -> None:
    assert standing(ONE, None, snapshot, seen, NOW) == (S.FAILED, DedicatedFailure(code, message))
    assert standing(ONE, None, known(BROKERS, CLUSTER), RUNS, NOW) == (S.RUNNING, None), "it comes back by itself"


def test_workers_that_report_run_on_where_nobody_hears_of_their_node() -> None:
    assert standing(ONE, None, known(BROKERS, DOWN, node=NodeState.OFFLINE), RUNS, NOW) == (S.RUNNING, None)


def test_brokers_that_its_workers_reach_are_there() -> None:
    assert standing(ONE, None, known(AWAY, CLUSTER), RUNS, NOW) == (S.RUNNING, None)
    never_reached = known(replace(AWAY, kafka_cluster_id=""), CLUSTER)
    assert standing(ONE, None, never_reached, NOTHING_REPORTED, NOW) == (S.RUNNING, None), "its workers may reach them"
    assert standing(ONE, None, never_reached, LEFT, NOW)[0] is S.FAILED


@pytest.mark.parametrize(
    ("snapshot", "seen"),
    [
        (known(BROKERS, CLUSTER, away=["BROKERS_UNREACHABLE", ""]), SILENT),
        (known(BROKERS, CLUSTER, away=["BROKERS_UNREACHABLE"]), RUNS),
        (known(BROKERS, CLUSTER, away=["CONSUMER_GROUP_UNREACHABLE", ""]), RUNS),
        (known(BROKERS, CLUSTER, away=["SPARK_UNREACHABLE", ""]), RUNS),
        (known(BROKERS, CLUSTER, away=["SPARK_UNREACHABLE"], node=NodeState.OFFLINE), SILENT),
        (known(BROKERS, CLUSTER, away=["BROKERS_UNREACHABLE"], node=NodeState.OFFLINE), SILENT),
    ],
)
def test_what_a_worker_does_not_reach_counts_where_no_worker_has_it(snapshot: Snapshot, seen: Reported) -> None:
    """Reports from agents of lost nodes do not count, nor do reports that the group contradicts."""
    assert standing(ONE, None, snapshot, seen, NOW) == (S.RUNNING, None)


def test_one_that_is_paused_does_not_fail_by_itself() -> None:
    paused = replace(ONE, goal=DedicatedGoal.PAUSED)
    assert standing(paused, None, known(AWAY, DOWN), SILENT, NOW) == (S.PAUSED, None)


FACTS = specs_of(OLD, NEW)
ERROR = Failure("FAILED_PRECONDITION", "TASK_FAILED", "no")
OVER = OperationState


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (operation(OperationKind.UPDATE_CONFIG, facts=FACTS), ONE),  # not ended
        (operation(OperationKind.UPDATE_CONFIG, facts=FACTS, state=OVER.SUCCEEDED), replace(ONE, updates=1)),
        (operation(OperationKind.UPDATE_CONFIG, facts=FACTS, state=OVER.FAILED, error=ERROR),
         replace(ONE, spec=OLD, generation=3)),
        (operation(OperationKind.UPDATE_CONFIG, facts=FACTS, state=OVER.CANCELED, cancel_reason="x"),
         replace(ONE, spec=OLD, generation=3)),
        (operation(OperationKind.UPDATE_WORKERS, facts=FACTS, state=OVER.FAILED, error=ERROR, back_failed=True),
         replace(ONE, spec=OLD, generation=3, failure=BROKEN)),
        (operation(OperationKind.CREATE_DEDICATED, state=OVER.FAILED, error=ERROR), replace(ONE, failure=BROKEN)),
        (operation(OperationKind.CREATE_DEDICATED, state=OVER.SUCCEEDED, facts={"uid": "u9"}),
         replace(ONE, connector_uid="u9")),
        (operation(OperationKind.PAUSE, state=OVER.FAILED, error=ERROR, facts={"former_goal": "PAUSED"}),
         replace(ONE, goal=DedicatedGoal.PAUSED)),
        (replace(operation(OperationKind.CREATE_DEDICATED, state=OVER.FAILED, error=ERROR), name="other"), ONE),
    ],
)  # fmt: skip
def test_what_becomes_of_it(ended: Operation, expected: DedicatedConnector) -> None:
    assert noted(ONE, ended) == expected


def test_tags_of_meanwhile_outlive_an_update_that_is_taken_back() -> None:
    def said(document: str, tag: str, label: str) -> Annotations:
        return Annotations(labels={"team": label}, extra={"document": document, "tags": {"team": tag}})

    former, expected = (
        replace(OLD, annotations=said("old", "red", "a")),
        replace(NEW, annotations=said("new", "red", "a")),
    )
    now = replace(ONE, spec=replace(expected, annotations=said("new", "blue", "b")))
    ended = operation(OperationKind.UPDATE_CONFIG, facts=specs_of(former, expected), state=OVER.FAILED, error=ERROR)
    assert noted(now, ended).spec == replace(former, annotations=said("old", "blue", "b"))

"""Which failures last: a cluster is stuck when no further start of its processes helps."""

import dataclasses
from datetime import UTC, datetime

import pytest

from keelman.model.cluster import ClusterGoal, ClusterState, WorkerCluster, WorkerClusterSpec
from keelman.model.node import Node, NodeState
from keelman.model.workload import BrokerSpec, Goal, ProcessState, WorkerSpec, Workload, WorkloadStatus
from keelman.state.clusters.status import is_stuck, worker_cluster_status
from support.state.snapshots import snapshot_of

TIME = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = WorkerSpec("demo", "127.0.0.1", 8083, {}, "127.0.0.1:7430", admin_port=8084)
WORKER = Workload("worker/demo/0", "n1", 3, Goal.RUNNING, SPEC)
BROKER = Workload("broker/b/0", "n1", 1, Goal.RUNNING, BrokerSpec("b", "id", 1, "127.0.0.1", 9092, 9093))


def failed(workload: Workload, reason: str, message: str = "", *, generation: int | None = None) -> Workload:
    seen = generation if generation is not None else workload.generation
    status = WorkloadStatus(ProcessState.FAILED, seen, reason=reason, message=message)
    return dataclasses.replace(workload, status=status)


@pytest.mark.parametrize("reason", ["REFUSED", "NOT_SECURED", "JAVA_MISSING", "BROKER_REFUSED", "WRONG_TOPIC"])
def test_what_was_refused_stays_so(reason: str) -> None:
    assert is_stuck([failed(WORKER, reason)])


@pytest.mark.parametrize("reason", ["EXITED", "VANISHED", "CRASHED", "UNREACHABLE", "MEMORY_LIMIT"])
def test_what_may_come_up_again_is_not_stuck(reason: str) -> None:
    assert not is_stuck([failed(WORKER, reason)], (8083,))


def test_a_failure_of_an_earlier_plan_says_nothing_of_this_one() -> None:
    assert not is_stuck([failed(WORKER, "REFUSED", generation=2)])


def test_a_port_that_is_named_is_waited_for_in_vain_and_another_is_chosen_for_one_that_is_not() -> None:
    taken = failed(WORKER, "PORT_TAKEN", "port 8083 on 127.0.0.1 is taken by another process")
    assert is_stuck([taken], (8083,))
    assert not is_stuck([taken], (0,))


def test_a_broker_with_data_keeps_its_port() -> None:
    taken = failed(BROKER, "PORT_TAKEN", "port 9092 on 127.0.0.1 is taken by another process")
    assert not is_stuck([taken])
    assert is_stuck([dataclasses.replace(taken, has_run=True)])


@pytest.mark.parametrize(("goal", "stuck"), [(ClusterGoal.RUNNING, True), (ClusterGoal.STOPPED, False)])
def test_a_cluster_that_is_to_run_is_stuck_with_one_of_its_workers(goal: ClusterGoal, *, stuck: bool) -> None:
    cluster = WorkerCluster("demo", "u", TIME, TIME, 1, "1", goal, WorkerClusterSpec("default", count=1))
    node = Node("n1", "u", TIME, TIME, NodeState.ONLINE, "127.0.0.1:7420")
    worker = failed(WORKER, "REFUSED", "keelman.jaas.file: '/x' cannot be read")
    status = worker_cluster_status(cluster, snapshot_of({"n1": node}, {}, {"demo": cluster}, {worker.name: worker}))
    assert status.stuck is stuck
    if stuck:
        assert (status.state, status.message) == (ClusterState.DEGRADED, "worker/demo/0: " + worker.status.message)

"""The status of a cluster, derived from its agents' reports on its processes."""

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from keelman.model.cluster import (
    BrokerCluster,
    ClusterGoal,
    ClusterState,
    ExternalBrokers,
    ManagedBrokers,
    WorkerCluster,
    WorkerClusterSpec,
)
from keelman.model.node import Node, NodeState
from keelman.model.workload import BrokerSpec, Goal, ProcessState, SparkSpec, WorkerSpec, Workload, WorkloadStatus
from keelman.state.clusters.status import broker_cluster_status, with_status
from keelman.state.resources.snapshot import Snapshot
from support.state.snapshots import snapshot_of

TIME = datetime(2026, 1, 1, tzinfo=UTC)
NODES = {name: Node(name, name, TIME, TIME, NodeState.ONLINE, f"{name}:1") for name in ("n1", "n2")}
CLUSTER = BrokerCluster("b", "b", TIME, TIME, 1, "", ClusterGoal.STOPPED, ManagedBrokers(("n1",)))
STAYS = Workload(
    "broker/b/0", "n1", 2, Goal.STOPPED, BrokerSpec("b", "id", 0, "h", 1, 2, {}),
    status=WorkloadStatus(ProcessState.STOPPED, 2),
)  # fmt: skip
LEAVES = dataclasses.replace(STAYS, name="broker/b/1", node="n2", goal=Goal.REMOVED)


@pytest.mark.parametrize(
    ("state", "generation", "value"),
    [
        (ProcessState.RUNNING, 1, ClusterState.STOPPING),
        (ProcessState.STOPPING, 2, ClusterState.STOPPING),
        (ProcessState.STOPPED, 2, ClusterState.STOPPED),
        (ProcessState.REMOVED, 2, ClusterState.STOPPED),
    ],
)
def test_a_cluster_that_has_stopped_stays_so_while_a_broker_is_removed(state, generation, value) -> None:
    leaves = dataclasses.replace(LEAVES, status=WorkloadStatus(state, generation))
    snapshot = snapshot_of(NODES, {"b": CLUSTER}, {}, {w.name: w for w in (STAYS, leaves)})
    assert broker_cluster_status(CLUSTER, snapshot).state is value


LATER = TIME + timedelta(seconds=9)
RUNNING = WorkloadStatus(ProcessState.RUNNING, 2)
WORKERS = WorkerCluster("w", "w", TIME, TIME, 1, "", ClusterGoal.RUNNING, WorkerClusterSpec("b", count=1))
WORKER = Workload("worker/w/0", "n1", 2, Goal.RUNNING, WorkerSpec("w", "h", 1, {}, ""), status=RUNNING)
OFFLINE = {"n1": dataclasses.replace(NODES["n1"], state=NodeState.OFFLINE)}


def test_since_when_no_worker_is_ready() -> None:
    there = snapshot_of(NODES, {}, {}, {WORKER.name: WORKER})
    lost = snapshot_of(OFFLINE, {}, {}, {WORKER.name: WORKER})
    assert with_status(WORKERS, there, TIME).status.down_since is None
    down = with_status(WORKERS, lost, TIME)
    assert down.status.down_since == TIME
    assert with_status(down, lost, LATER) == down
    assert with_status(down, there, LATER).status.down_since is None, "it is back"
    stopped = dataclasses.replace(down, goal=ClusterGoal.STOPPED)
    assert with_status(stopped, lost, LATER).status.down_since is None, "no users remain"


def test_since_when_no_broker_can_be_reached() -> None:
    broker = dataclasses.replace(STAYS, goal=Goal.RUNNING, status=RUNNING)
    one_of_two = {w.name: w for w in (broker, dataclasses.replace(LEAVES, goal=Goal.RUNNING))}
    managed = dataclasses.replace(CLUSTER, goal=ClusterGoal.RUNNING)
    assert with_status(managed, snapshot_of(NODES, {}, {}, one_of_two), TIME).status.down_since is None
    down = with_status(managed, snapshot_of(OFFLINE, {}, {}, {broker.name: broker}), TIME)
    assert down.status.down_since == TIME
    assert with_status(down, snapshot_of(OFFLINE, {}, {}, {broker.name: broker}), LATER) == down
    external = dataclasses.replace(managed, spec=ExternalBrokers("h:1"))
    since = {
        reachable: with_status(dataclasses.replace(external, reachable=reachable), Snapshot(), TIME).status.down_since
        for reachable in (None, True, False)
    }
    assert since == {None: None, True: None, False: TIME}


@pytest.mark.parametrize("reason", ["SPARK_UNREACHABLE", "BROKERS_UNREACHABLE"])
def test_a_cluster_with_a_worker_that_can_copy_nothing_is_degraded_and_says_why(reason: str) -> None:
    with_reason = dataclasses.replace(RUNNING, reason=reason, message="nobody answers")
    away = dataclasses.replace(WORKER, status=with_reason)
    status = with_status(WORKERS, snapshot_of(NODES, {}, {}, {WORKER.name: away}), TIME).status
    assert (status.state, status.message) == (ClusterState.DEGRADED, "worker/w/0: nobody answers")
    assert status.ready_workers == 1, "it answers REST"
    well = with_status(WORKERS, snapshot_of(NODES, {}, {}, {WORKER.name: WORKER}), TIME).status
    assert (well.state, well.message) == (ClusterState.RUNNING, "")


def test_who_was_ready_and_answers_no_more_degrades_its_cluster() -> None:
    silent = WorkloadStatus(ProcessState.STARTING, 2, reason="UNHEALTHY", message="does not answer")
    workers = {WORKER.name: dataclasses.replace(WORKER, status=silent)}
    status = with_status(WORKERS, snapshot_of(NODES, {}, {}, workers), TIME).status
    assert (status.state, status.message) == (ClusterState.DEGRADED, "worker/w/0: does not answer")
    starts = {WORKER.name: dataclasses.replace(WORKER, status=dataclasses.replace(silent, reason="", message=""))}
    assert with_status(WORKERS, snapshot_of(NODES, {}, {}, starts), TIME).status.state is ClusterState.STARTING
    spark = Workload("spark/n1", "n1", 2, Goal.RUNNING, SparkSpec("h", 2, "local[2]"), status=silent)
    both = {WORKER.name: WORKER, spark.name: spark}
    status = with_status(WORKERS, snapshot_of(NODES, {}, {}, both), TIME).status
    assert (status.state, status.message) == (ClusterState.DEGRADED, "spark/n1: does not answer")

"""The legal specs of Spark clusters, who may name them, and how their status follows from their drivers."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from keelman.model.cluster import ClusterGoal, ClusterState, WorkerCluster, WorkerClusterSpec, WorkerEngine
from keelman.model.errors import InvalidArgument
from keelman.model.node import Node, NodeState
from keelman.model.spark_cluster import SparkCluster, SparkClusterSpec
from keelman.model.workload import Goal, ProcessState, SparkSpec, WorkerSpec, Workload, WorkloadStatus, driver_name
from keelman.state.clusters.spark_clusters import check, check_named
from keelman.state.clusters.spark_status import spark_cluster_status
from keelman.state.clusters.status import worker_cluster_status
from keelman.state.planning.drivers import still_linked
from keelman.state.resources.snapshot import Snapshot
from support.state.snapshots import snapshot_of

TIME = datetime(2026, 1, 1, tzinfo=UTC)
NODES = {n: Node(n, n, TIME, TIME, NodeState.ONLINE, "10.0.0.1:7420") for n in ("n1", "n2")}
SPEC = SparkClusterSpec("spark://m:7077")
SPARKS = {
    "big": SparkCluster("big", "u1", TIME, TIME, 1, "1", SPEC),
    "blue": SparkCluster("blue", "u2", TIME, TIME, 1, "1", replace(SPEC, tenant="blue")),
}
RUNNING = ProcessState.RUNNING


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"master": "yarn"}, r"spec\.master: 'yarn' is not legal: .*spark://host:port"),
        ({"master": "spark://"}, r"spec\.master: 'spark://'"),
        ({"master": "local[4,1]"}, r"spec\.master: 'local\[4,1\]' is not legal: spark://host:port .* or sc://"),
        ({"drivers": 5}, r"spec\.drivers: 5 is not legal: 0 \(2, a driver and its standby\) or 1 to 4"),
        ({"nodes": ("n1", "n3")}, r"spec\.nodes: 'n3' is not legal: registered nodes are n1, n2"),
        ({"nodes": ("n1", "n1")}, r"spec\.nodes: 'n1' is not legal: each node once"),
        ({"executor_memory_mb": 100}, r"spec\.executor_memory_mb: 100 is not legal: .* or 480 to"),
        ({"executor_cores": -1}, r"spec\.executor_cores: -1"),
        ({"executor_python": "a\nb"}, r"spec\.executor_python"),
        ({"tenant": "A B"}, r"spec\.tenant"),
        ({"properties": {"executor.cores": "4"}}, r"spec\.properties: 'executor\.cores' is not legal"),
        ({"properties": {"spark.master": "local"}}, r"spec\.properties\.spark\.master: .*spec\.master has it"),
    ],
)
def test_what_a_spark_cluster_cannot_be_is_refused_by_field(fields: dict[str, Any], message: str) -> None:
    check("new", replace(SPEC, properties={"spark.executor.instances": "4"}), _snapshot())
    with pytest.raises(InvalidArgument, match=message):
        check("new", replace(SPEC, **fields), _snapshot())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"spark_cluster": "bog"}, r"'bog' is not legal: empty, or the name of a spark cluster \(big, blue\)"),
        ({"spark_cluster": "big", "engine": WorkerEngine.KAFKA_CONNECT}, "empty with engine KAFKA_CONNECT"),
        ({"spark_cluster": "blue"}, "a spark cluster of no tenant: this one serves tenant blue"),
        ({"spark_cluster": "blue", "tenant": "red"}, "a spark cluster of tenant red: this one serves tenant blue"),
    ],
)
def test_a_worker_cluster_names_a_spark_cluster_that_may_serve_it(fields: dict[str, Any], message: str) -> None:
    for legal in ({}, {"spark_cluster": "big"}, {"spark_cluster": "blue", "tenant": "blue"}):
        check_named(replace(WorkerClusterSpec("b", count=1), **legal), _snapshot())
    with pytest.raises(InvalidArgument, match=rf"spec\.spark_cluster: .*{message}"):
        check_named(replace(WorkerClusterSpec("b", count=1), **fields), _snapshot())


@pytest.mark.parametrize(
    ("first", "second", "state", "reason"),
    [
        ((RUNNING, ""), (RUNNING, ""), ClusterState.RUNNING, ""),
        ((RUNNING, ""), (ProcessState.STARTING, ""), ClusterState.STARTING, ""),
        ((RUNNING, ""), (ProcessState.FAILED, "EXITED"), ClusterState.DEGRADED, "EXITED"),
        ((RUNNING, "NO_EXECUTORS"), (RUNNING, ""), ClusterState.DEGRADED, "NO_EXECUTORS"),
        ((ProcessState.FAILED, "EXITED"), (RUNNING, "WAITING_FOR_CORES"), ClusterState.DEGRADED, "WAITING_FOR_CORES"),
        ((ProcessState.STARTING, ""), (ProcessState.STARTING, ""), ClusterState.STARTING, ""),
    ],
)
def test_the_state_follows_from_the_drivers(
    first: tuple[ProcessState, str], second: tuple[ProcessState, str], state: ClusterState, reason: str
) -> None:
    status = spark_cluster_status(SPARKS["big"], _snapshot(_driver(0, *first), _driver(1, *second)))
    assert (status.state, status.reason) == (state, reason)


def test_it_is_stopped_while_no_worker_cluster_runs() -> None:
    assert spark_cluster_status(SPARKS["blue"], _snapshot()).state is ClusterState.STOPPED
    assert spark_cluster_status(SPARKS["big"], _snapshot()).state is ClusterState.STARTING


def test_a_lost_node_and_a_missing_place_are_told() -> None:
    lost = replace(_driver(0, RUNNING, ""), node="gone")
    status = spark_cluster_status(SPARKS["big"], _snapshot(lost))
    assert (status.state, status.reason) == (ClusterState.DEGRADED, "NODE_OFFLINE")
    status = spark_cluster_status(replace(SPARKS["big"], note="no node is online"), _snapshot())
    assert (status.state, status.reason, status.message) == (
        ClusterState.DEGRADED, "NOT_PLACED", "no node is online",
    )  # fmt: skip


def test_a_worker_cluster_is_degraded_only_while_nobody_copies_for_it() -> None:
    user = _users()["demo"]
    broken, runs = _driver(1, ProcessState.FAILED, "EXITED"), _driver(0, RUNNING, "")
    assert _worker_message(user, runs, broken) == ""
    waits = replace(runs, status=replace(runs.status, reason="NO_EXECUTORS", message="0 of 4 cores"))
    assert _worker_message(user, waits, broken).startswith("spark cluster big: spark/@big/0: 0 of 4 cores")
    assert "spark/@big/1: EXITED" in _worker_message(user, broken)


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("a:1,b:1", "a:1,c:1", "a:1,b:1"),
        ("a:1,b:1", "c:1,b:1", "a:1,b:1"),
        ("a:1", "a:1,b:1", "a:1"),
        ("a:1,b:1", "c:1,d:1", "c:1,d:1"),
        ("", "a:1,b:1", "a:1,b:1"),
        ("a:1", "", ""),
    ],
)
def test_a_worker_keeps_its_addresses_while_one_is_good(old: str, new: str, kept: str) -> None:
    assert still_linked(old, new) == kept


def _worker_message(user: WorkerCluster, *drivers: Workload) -> str:
    worker = Workload(
        "worker/demo/0", "n1", 1, Goal.RUNNING, WorkerSpec("demo", "10.0.0.1", 8083, {}, "x", spark_cluster="big"),
        status=WorkloadStatus(RUNNING, 1),
    )  # fmt: skip
    return worker_cluster_status(user, _snapshot(worker, *drivers)).message


def _driver(number: int, state: ProcessState, reason: str) -> Workload:
    spec = SparkSpec("10.0.0.1", 7430 + number, "spark://m:7077", cluster="big")
    status = WorkloadStatus(state, 1, reason=reason)
    return Workload(driver_name("big", number), "n1", 1, Goal.RUNNING, spec, status=status)


def _users() -> dict[str, WorkerCluster]:
    spec = WorkerClusterSpec("b", count=1, spark_cluster="big")
    return {"demo": WorkerCluster("demo", "u", TIME, TIME, 1, "1", ClusterGoal.RUNNING, spec)}


def _snapshot(*workloads: Workload) -> Snapshot:
    return snapshot_of(NODES, SPARKS, _users(), {w.name: w for w in workloads})

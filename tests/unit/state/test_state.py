"""The state service's pure parts: port ranges, a worker's properties, statuses, lost copy runs."""

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keelman.api.copy.v1 import copy_run_pb2
from keelman.api.event.v1 import report_pb2
from keelman.kafka.feed import COPY_RUN_REPORTS, Fact
from keelman.model.cluster import ClusterGoal, ClusterState, WorkerCluster, WorkerClusterSpec
from keelman.model.errors import InvalidArgument
from keelman.model.node import Node, NodeState
from keelman.model.workload import Goal, ProcessState, SparkSpec, WorkerSpec, Workload, WorkloadStatus
from keelman.rpc.times import to_timestamp
from keelman.state.clusters.status import worker_cluster_status
from keelman.state.kafka.properties import worker_properties
from keelman.state.reports.reports import Reports
from keelman.state.resources.hub import Hub
from keelman.state.resources.snapshot import Snapshot
from keelman.state.service import run
from keelman.state.settings import Settings, port_range
from support.state.snapshots import snapshot_of

TIME = datetime(2026, 1, 1, tzinfo=UTC)
CLUSTER = WorkerCluster("demo", "u", TIME, TIME, 1, "1", ClusterGoal.RUNNING, WorkerClusterSpec("default", count=1))
NODE = Node("n1", "u", TIME, TIME, NodeState.ONLINE, "127.0.0.1:7420")
RUNNING = WorkloadStatus(ProcessState.RUNNING, 1, pid=1, start_time=TIME)
WORKER = Workload(
    "worker/demo/0", "n1", 1, Goal.RUNNING, WorkerSpec("demo", "127.0.0.1", 8083, {}, "127.0.0.1:7430"), status=RUNNING
)
SPARK = Workload("spark/n1", "n1", 1, Goal.RUNNING, SparkSpec("127.0.0.1", 7430, "local[2]"), status=RUNNING)


def snapshot(*workloads: Workload, node: Node = NODE) -> Snapshot:
    return snapshot_of({"n1": node}, {}, {"demo": CLUSTER}, {w.name: w for w in workloads})


def with_status(workload: Workload, state: ProcessState, **more) -> Workload:
    return dataclasses.replace(workload, status=dataclasses.replace(RUNNING, state=state, **more))


@pytest.mark.parametrize(("text", "expected_range"), [("8083-8182", range(8083, 8183)), (" 1 - 1 ", range(1, 2))])
def test_a_port_range(text: str, expected_range: range) -> None:
    assert port_range("state.worker_ports", text) == expected_range


@pytest.mark.parametrize("text", ["", "8083", "8083-", "-1", "9-8", "0-5", "1-65536", "a-b", "1-2-3"])
def test_a_port_range_that_cannot_be(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"state.worker_ports: .* first-last"):
        port_range("state.worker_ports", text)


async def test_a_process_that_drains_until_it_is_cut_is_refused(tmp_path: Path) -> None:
    (stop := asyncio.Event()).set()
    legal = r"state\.drain_seconds: 30\.0 is not legal: less than grace_seconds \(30\)"
    with pytest.raises(InvalidArgument, match=legal):
        await run(Settings(drain_seconds=30.0, home=tmp_path), stop)


def test_the_users_properties_win_but_not_over_where_the_worker_is() -> None:
    fields = {"group.id": "mine", "key.converter": "K", "config.storage.replication.factor": "2"}
    cluster = dataclasses.replace(CLUSTER, spec=WorkerClusterSpec("default", count=1, properties=fields))
    properties = worker_properties(cluster, bootstrap_servers="b:1", brokers=5, listener="http://h:1")
    assert properties["group.id"] == "mine"
    assert properties["key.converter"] == "K"
    assert properties["config.storage.replication.factor"] == "2"
    assert properties["status.storage.replication.factor"] == "3"
    assert (properties["bootstrap.servers"], properties["listeners"]) == ("b:1", "http://h:1")
    assert list(properties) == sorted(properties)


@pytest.mark.parametrize(
    ("workloads", "state", "ready"),
    [
        ((WORKER, SPARK), ClusterState.RUNNING, 1),
        ((WORKER, with_status(SPARK, ProcessState.STARTING)), ClusterState.STARTING, 1),
        ((WORKER, with_status(SPARK, ProcessState.FAILED, message="no Java")), ClusterState.DEGRADED, 1),
        ((with_status(WORKER, ProcessState.FAILED), SPARK), ClusterState.DEGRADED, 0),
        ((with_status(WORKER, ProcessState.STARTING), SPARK), ClusterState.STARTING, 0),
        ((dataclasses.replace(WORKER, generation=2), SPARK), ClusterState.STARTING, 0),
        ((dataclasses.replace(WORKER, status=None), SPARK), ClusterState.STARTING, 0),
        ((), ClusterState.STARTING, 0),
    ],
)
def test_a_worker_cluster_is_what_its_processes_are(workloads, state, ready) -> None:
    status = worker_cluster_status(CLUSTER, snapshot(*workloads))
    assert (status.state, status.ready_workers) == (state, ready)
    assert len(status.rest_urls) == ready


def test_a_worker_on_an_offline_node_is_not_ready() -> None:
    offline = dataclasses.replace(NODE, state=NodeState.OFFLINE)
    status = worker_cluster_status(CLUSTER, snapshot(WORKER, SPARK, node=offline))
    assert (status.state, status.ready_workers) == (ClusterState.DEGRADED, 0)
    assert status.message == "worker/demo/0: node n1 is offline"


def fact(
    uid: str,
    *,
    created: float = 60,
    seen: float = 100,
    state: int = copy_run_pb2.COPY_RUN_STATE_RUNNING,
    part: int = 0,
) -> Fact:
    run = copy_run_pb2.CopyRun(
        uid=uid,
        worker_cluster="demo",
        connector="c",
        worker_id="127.0.0.1:8083",
        state=state,
        part=part,
        create_time=to_timestamp(TIME + timedelta(seconds=created)),
    )
    time = to_timestamp(TIME + timedelta(seconds=seen))
    return Fact(COPY_RUN_REPORTS, uid, report_pb2.Report(time=time, name=uid, copy_run=run).SerializeToString())


@pytest.mark.parametrize(
    ("worker", "spark", "message"),
    [
        (WORKER, SPARK, ""),
        (with_status(WORKER, ProcessState.STARTING), SPARK, ""),
        (with_status(WORKER, ProcessState.FAILED), SPARK, "worker/demo/0 is FAILED"),
        (WORKER, with_status(SPARK, ProcessState.STOPPED), "spark/n1 is STOPPED"),
        (WORKER, dataclasses.replace(SPARK, status=None), "no process of spark/n1 is known"),
        (
            with_status(WORKER, ProcessState.RUNNING, start_time=TIME + timedelta(seconds=61)),
            SPARK,
            "worker/demo/0 was started again after this copy run began",
        ),
    ],
)
def test_a_copy_run_that_nobody_can_be_copying_is_lost(worker, spark, message) -> None:
    reports = Reports(Hub())
    reports.fold(fact("r1"))
    (run,) = reports.runs.all(snapshot(worker, spark))
    assert run.message == message
    assert (run.state, run.reason) == (
        (copy_run_pb2.COPY_RUN_STATE_FAILED, "LOST") if message else (copy_run_pb2.COPY_RUN_STATE_RUNNING, "")
    )


def test_parts_fence_their_own_predecessors_and_the_task_fences_all() -> None:
    reports = Reports(Hub())
    for uid, created, part in (("task", 10, 0), ("one", 11, 1), ("two", 12, 2), ("one again", 13, 1)):
        reports.fold(fact(uid, created=created, part=part))
    lost = {r.uid for r in reports.runs.all(snapshot(WORKER, SPARK)) if r.reason == "LOST"}
    assert lost == {"one"}
    reports.fold(fact("task again", created=14))
    lost = {r.uid for r in reports.runs.all(snapshot(WORKER, SPARK)) if r.reason == "LOST"}
    assert lost == {"task", "one", "two", "one again"}


def test_an_older_report_does_not_win() -> None:
    reports = Reports(Hub())
    reports.fold(fact("r1", seen=100, state=copy_run_pb2.COPY_RUN_STATE_ENDED))
    reports.fold(fact("r1", seen=99))
    (run,) = reports.runs.all(snapshot(WORKER, SPARK))
    assert run.state == copy_run_pb2.COPY_RUN_STATE_ENDED


def test_ended_copy_runs_beyond_ten_of_a_task_are_dropped_and_garbage_is_ignored() -> None:
    reports = Reports(Hub())
    ended = copy_run_pb2.COPY_RUN_STATE_ENDED
    dropped = [uid for n in range(13) for uid in reports.fold(fact(f"r{n:02}", created=n, state=ended))]
    assert dropped == ["r00", "r01", "r02"]
    assert reports.fold(Fact(COPY_RUN_REPORTS, "x", b"\xff\xff")) == []
    assert reports.fold(Fact(COPY_RUN_REPORTS, "r12", None)) == []
    assert [r.uid for r in reports.runs.all(snapshot())] == [f"r{n:02}" for n in range(3, 12)]

"""Reported copy runs are found, followed and swept, each at the cost of the requested runs only."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from keelman.api.copy.v1 import copy_run_pb2 as pb
from keelman.api.copy.v1 import copy_run_service_pb2 as service
from keelman.model.errors import NotFound, Unavailable
from keelman.model.node import Node, NodeState
from keelman.model.workload import Goal, ProcessState, SparkSpec, WorkerSpec, Workload, WorkloadStatus, driver_name
from keelman.state.reports.copy_runs import CopyRuns, Followed
from keelman.state.reports.reports import Reports
from keelman.state.resources.hub import Hub
from keelman.state.resources.snapshot import NODE, Snapshot
from keelman.state.streams_api import CopyRunApi

RUNNING, ENDED = pb.COPY_RUN_STATE_RUNNING, pb.COPY_RUN_STATE_ENDED
NOTHING = Snapshot()
FEW = 50
"""Calls that may have other causes."""


def run(
    uid: str,
    connector: str = "c",
    task: int = 0,
    *,
    cluster: str = "demo",
    part: int = 0,
    created: int = 1,
    state: pb.CopyRunState.ValueType = ENDED,
) -> pb.CopyRun:
    copy_run = pb.CopyRun(uid=uid, worker_cluster=cluster, connector=connector, task=task, part=part, state=state)
    copy_run.create_time.seconds = created
    return copy_run


def of_tasks(number: int) -> CopyRuns:
    """A running copy run for each of so many tasks."""
    runs = CopyRuns()
    for task in range(number):
        runs.fold(run(f"r{task}", task=task, state=RUNNING), 1.0)
    return runs


def calls(function: Callable[[], Any]) -> int:
    """The number of function calls in it."""
    number = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return number


@pytest.mark.parametrize(
    "ask",
    [
        lambda runs: runs.fold(run("r1", task=1, state=RUNNING), 2.0),
        lambda runs: runs.one("r1", NOTHING),
        lambda runs: runs.drop("r1"),
    ],
    ids=["report", "get", "drop"],
)
def test_what_is_done_with_one_costs_nothing_for_the_others(ask: Callable[[CopyRuns], Any]) -> None:
    few, many = of_tasks(2), of_tasks(500)
    assert calls(lambda: ask(many)) < calls(lambda: ask(few)) + FEW


def test_who_follows_is_told_of_a_report_at_the_cost_of_its_task() -> None:
    costs = []
    for number in (2, 500):
        runs = of_tasks(number)
        followed = Followed(runs)
        assert len(followed.news(NOTHING, whole=True)) == number
        runs.fold(run("new", task=1, created=2), 2.0)
        costs.append(calls(lambda followed=followed: followed.news(NOTHING, whole=False)))
    assert costs[1] < costs[0] + FEW


def test_one_is_found_as_it_stands() -> None:
    runs = CopyRuns()
    runs.fold(run("old", created=1, state=RUNNING), 1.0)
    runs.fold(run("part", created=2, part=1, state=RUNNING), 1.0)
    runs.fold(run("new", created=3), 1.0)
    for uid in ("old", "part"):
        copy_run = runs.one(uid, NOTHING)
        assert copy_run is not None
        assert (copy_run.state, copy_run.reason) == (pb.COPY_RUN_STATE_FAILED, "LOST")
        assert copy_run.message == "copy run new of the same task fenced it"
    assert runs.one("none", NOTHING) is None
    assert [copy_run.uid for copy_run in runs.all(NOTHING)] == ["old", "part", "new"]


def test_a_report_that_is_older_than_the_known_one_is_none() -> None:
    runs = CopyRuns()
    assert runs.fold(run("r", state=ENDED), 2.0) == []
    assert runs.fold(run("r", state=RUNNING), 1.0) is None
    assert [copy_run.state for copy_run in runs.all(NOTHING)] == [ENDED]


def test_who_follows_is_told_of_what_changed_and_of_nothing_else() -> None:
    runs = of_tasks(3)
    runs.fold(run("other", "d"), 1.0)
    followed = Followed(runs, connector="c")
    assert [new.uid for new in followed.news(NOTHING, whole=True)] == ["r0", "r1", "r2"]
    assert followed.news(NOTHING, whole=True) == followed.news(NOTHING, whole=False) == []
    runs.fold(run("next", task=1, created=2), 2.0)
    runs.fold(run("another", "d", created=2), 2.0)
    news = {new.uid: new.message for new in followed.news(NOTHING, whole=False)}
    assert news == {"r1": "copy run next of the same task fenced it", "next": ""}, "its predecessor is over with it"
    assert followed.news(NOTHING, whole=False) == []


def test_those_of_worker_clusters_that_are_gone_and_of_deleted_connectors_are_swept() -> None:
    runs = CopyRuns()
    for number, (cluster, connector) in enumerate((("demo", "a"), ("demo", "b"), ("demo", "b"), ("past", "a"))):
        runs.fold(run(f"r{number}", connector, number, cluster=cluster), 1.0)

    def is_deleted(cluster: str, connector: str) -> bool:
        return (cluster, connector) == ("demo", "b")

    assert runs.sweep({"past"}, is_deleted) == ["r3"]
    assert runs.sweep((), lambda cluster, connector: False) == [], "it is there again"
    assert runs.sweep((), is_deleted) == [], "for the first time"
    assert runs.sweep((), is_deleted) == ["r1", "r2"]
    assert [copy_run.uid for copy_run in runs.all(NOTHING)] == ["r0"]
    assert runs.tasks() == [("demo", "a", 0)]


async def test_a_watch_tells_of_reports_and_of_commits() -> None:
    reports, commits = Reports(Hub()), Hub()
    store: Any = SimpleNamespace(snapshot=NOTHING)
    context: Any = None
    api = CopyRunApi(store, reports, commits)
    reports.runs.fold(run("r1"), 1.0)
    watch = aiter(api.WatchCopyRuns(service.WatchCopyRunsRequest(worker_cluster="demo"), context))
    first = await anext(watch)
    assert (first.snapshot, [copy_run.uid for copy_run in first.copy_runs]) == (True, ["r1"])
    reports.runs.fold(run("r2", created=2), 1.0)
    reports.hub.wake()
    second = await anext(watch)
    assert (second.snapshot, [copy_run.uid for copy_run in second.copy_runs]) == (False, ["r2"])
    # Changes of processes are not reports: a wake for a commit checks all copy runs.
    reports.runs.drop("r1")
    reports.runs.fold(run("r1", state=RUNNING, created=3), 1.0)
    commits.wake([NODE])
    third = await anext(watch)
    assert [(copy_run.uid, copy_run.reason) for copy_run in third.copy_runs] == [("r1", "LOST")]
    api.stopping.set()
    with pytest.raises(Unavailable, match="watch again"):
        await anext(watch)

    get_copy_run = await api.GetCopyRun(service.GetCopyRunRequest(uid="r2"), context)
    assert get_copy_run.copy_run.uid == "r2"
    with pytest.raises(NotFound, match="no copy run has the uid 'r3'"):
        await api.GetCopyRun(service.GetCopyRunRequest(uid="r3"), context)
    listed = await api.ListCopyRuns(service.ListCopyRunsRequest(worker_cluster="demo", include_ended=True), context)
    assert [copy_run.uid for copy_run in listed.copy_runs] == ["r2", "r1"]
    with pytest.raises(NotFound, match="'none'"):
        await api.ListCopyRuns(service.ListCopyRunsRequest(worker_cluster="none"), context)


def node(name: str) -> Node:
    began = datetime.fromtimestamp(1, UTC)
    return Node(name, name, began, began, NodeState.ONLINE, "h:7420", 2, 1 << 30)


def workload(name: str, state: ProcessState, spec: WorkerSpec | SparkSpec, node: str = "n1") -> Workload:
    status = WorkloadStatus(state, 1, start_time=datetime.fromtimestamp(5, UTC))
    return Workload(name, node, 1, Goal.RUNNING, spec, status=status)


@pytest.mark.parametrize(
    ("worker", "drivers", "message"),
    [
        ("RUNNING", ["RUNNING", "RUNNING"], ""),
        ("RUNNING", ["STOPPED", "RUNNING"], ""),
        ("STOPPED", ["RUNNING", "RUNNING"], "worker/demo/0 is STOPPED"),
        ("RUNNING", ["STOPPED", "REMOVED"], "no driver of Spark cluster big can have it: spark/@big/0 is STOPPED; "),
        ("RUNNING", [], "no driver of Spark cluster big can have it: it has none"),
    ],
)
def test_any_driver_of_a_spark_cluster_may_have_a_copy_run(worker: str, drivers: list[str], message: str) -> None:
    of_worker = WorkerSpec("demo", "h", 8083, {}, "h:1,i:1", spark_cluster="big")
    workloads = [workload("worker/demo/0", ProcessState(worker), of_worker)]
    for number, state in enumerate(drivers):
        spec = SparkSpec("h", 7430, "spark://m:7077", cluster="big")
        workloads.append(workload(driver_name("big", number), ProcessState(state), spec, f"n{number}"))
    snapshot = Snapshot()
    snapshot.fill([*map(node, ("n0", "n1")), *workloads])
    runs = CopyRuns()
    began = run("r", created=10, state=RUNNING)
    began.worker_id = "h:8083"
    runs.fold(began, 1.0)
    shown = runs.one("r", snapshot)
    assert shown is not None
    assert shown.message.startswith(message)
    assert (shown.reason == "LOST") == bool(message)

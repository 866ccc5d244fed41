"""Problems of connectors: found by their worker, reported to the control plane, named in their cluster's verdict."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from keelman.api.connect.v1.connector_problem_pb2 import ConnectorProblem, ConnectorProblemState
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterStatus
from keelman.api.connect.v1.worker_pb2 import WorkerMembership
from keelman.model.work import Work
from keelman.state.reports.reports import judge
from keelman.worker.metrics.problems import LONGEST, MOST, problems_of
from keelman.worker.storage.status_state import Status


def status(state: str, trace: str | None = None, **more: object) -> Status:
    return Status(state, "h:1", 1, trace, more=more)


def word(problem: ConnectorProblem) -> str:
    return ConnectorProblemState.Name(problem.state).removeprefix("CONNECTOR_PROBLEM_STATE_")


def test_what_has_failed_or_is_stalled_is_a_problem() -> None:
    statuses = {
        Work("a"): status("RUNNING"),
        Work("a", 0): status("RUNNING", stalled={"since": "now", "left": 5}),
        Work("a", 1): status("RESTARTING", "again"),
        Work("b"): status("FAILED", "org.Error: " + "x" * 500 + "\n\tat somewhere"),
        Work("c"): status("PAUSED"),
        Work("elsewhere"): status("FAILED"),
    }
    problems = problems_of(
        [work for work in statuses if work.connector != "elsewhere"] + [Work("new")], statuses, "h:1"
    )
    assert problems.connectors == 2
    assert [(t.connector, t.HasField("task"), word(t)) for t in problems.named] == [
        ("a", True, "STALLED"),
        ("b", False, "FAILED"),
    ]
    assert problems.named[1].reason.startswith("org.Error: xx")
    assert len(problems.named[1].reason) == LONGEST
    assert problems.named[1].reason.endswith("x...")
    many = {Work(f"c{n:03}"): status("FAILED") for n in range(50)}
    bounded = problems_of(many, many, "h:1")
    assert (len(bounded.named), bounded.connectors) == (MOST, 50)
    assert bounded.named[0].connector == "c000"


def test_a_stall_is_told_with_the_failure_that_it_comes_from() -> None:
    work = Work("a", 0)
    stalled = status("RESTARTING", "again", stalled={"since": "now", "left": 5, "reason": "BROKER_LOST: too slow"})
    (problem,) = problems_of([work], {work: stalled}, "h:1").named
    assert (word(problem), problem.reason) == (
        "STALLED",
        "it has something to copy and copies nothing: BROKER_LOST: too slow",
    )


def test_what_is_tried_again_is_a_problem_from_the_second_failed_attempt_on() -> None:
    full = "org.acme.Full: [Errno 28] No space left on device"

    def found_of(state: str, trace: str | None, **more: object) -> list[tuple[str, str]]:
        work = Work("a", 0)
        problems = problems_of([work], {work: status(state, trace, **more)}, "h:1")
        return [(word(problem), problem.reason) for problem in problems.named]

    assert found_of("RESTARTING", full) == []
    assert found_of("RESTARTING", full, failures={"count": 2, "reason": "TASK_FAILED"}) == [("RESTARTING", full)]
    again = found_of("RUNNING", None, failures={"count": 3, "reason": "TASK_FAILED: No space left"})
    assert again == [("RESTARTING", "failed 3 times in a row: TASK_FAILED: No space left")]
    assert found_of("RUNNING", None, restart={"reason": "TASK_FAILED", "attempt": 1}) == []
    recovered = found_of("RUNNING", None, restart={"reason": "TASK_FAILED", "attempt": 2})
    assert recovered == [], "it has copied since, and its budget is not whole yet"
    assert found_of("PAUSED", None) == []


def test_a_problem_is_shown_by_what_is_behind_a_head_that_names_no_record() -> None:
    trace = (
        "org.E: Tolerance exceeded in error handler\nCaused by: org.D: no JSON (topic t, partition 0, offset 7)\n\tat x"
    )
    work = Work("a", 0)
    (problem,) = problems_of([work], {work: status("FAILED", trace)}, "h:1").named
    assert problem.reason == "org.D: no JSON (topic t, partition 0, offset 7)"


def membership(seconds: int, *problems: ConnectorProblem, connectors: int | None = None) -> WorkerMembership:
    count = len({t.connector for t in problems}) if connectors is None else connectors
    return WorkerMembership(report_time=Timestamp(seconds=seconds), problems=problems, problem_connectors=count)


def test_a_cluster_is_judged_by_all_of_its_workers() -> None:
    judged = WorkerClusterStatus()
    judge(judged, [membership(1), membership(2)])
    assert (judged.verdict, judged.problem_connectors, len(judged.problems)) == ("", 0, 0)
    failed = ConnectorProblem(
        connector="x", state="CONNECTOR_PROBLEM_STATE_FAILED", reason="no such topic", worker_id="h:1"
    )
    stalled = ConnectorProblem(connector="y", task=2, state="CONNECTOR_PROBLEM_STATE_STALLED", worker_id="h:2")
    judge(judged, [membership(1, failed), membership(2, stalled)])
    assert judged.verdict == "2 connectors have problems: x FAILED (no such topic); y task 2 STALLED"
    moved = ConnectorProblem(connector="x", state="CONNECTOR_PROBLEM_STATE_FAILED", reason="now here", worker_id="h:2")
    judge(judged, [membership(5, moved), membership(1, failed)])
    assert [t.worker_id for t in judged.problems] == ["h:2"]
    other = ConnectorProblem(connector="y", task=3, state="CONNECTOR_PROBLEM_STATE_STALLED", worker_id="h:1")
    judge(judged, [membership(1, stalled), membership(2, other)])
    assert (judged.problem_connectors, len(judged.problems)) == (1, 2)
    judge(judged, [membership(1, *(ConnectorProblem(connector=f"c{n}") for n in range(20)), connectors=70)])
    assert judged.problem_connectors == 70
    assert judged.verdict.startswith("70 connectors have problems: c0 ")
    assert judged.verdict.endswith("; and 17 more")
    judge(judged, [])
    assert judged.verdict == ""

"""A node's assignments: kept for the agent's next start, fenced by generation, followed by version."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.agent.assignments import KEPT_FENCES, Assignments, AssignmentVersions
from keelman.api.node.v1.session_service_pb2 import Assignments as Message
from keelman.api.node.v1.workload_pb2 import WorkerWorkload, Workload, WorkloadGoal, WorkloadSpec
from keelman.model.errors import Conflict
from keelman.runtime.home import Home


def workload(name: str, generation: int = 1, uid: str = "u") -> Workload:
    goal = WorkloadGoal.WORKLOAD_GOAL_RUNNING
    spec = WorkloadSpec(worker=WorkerWorkload(worker_cluster="demo", properties={"password": "hunter2"}))
    return Workload(name=name, uid=uid, generation=generation, goal=goal, spec=spec)


def complete(*workloads: Workload) -> Message:
    return Message(complete=True, to_version=1, workloads=workloads)


def test_assignments_are_kept_for_the_next_agent_and_only_its_owner_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "a" / "assignments.json"
    first = Assignments(file)
    first.load()
    assert not first.known
    first.apply(complete(workload("worker/a/0"), workload("worker/a/1")))
    first.apply(Message(from_version=1, to_version=2, workloads=[workload("worker/a/2")], removed=["worker/a/0"]))
    assert file.stat().st_mode & 0o777 == 0o600

    second = Assignments(file)
    second.load()
    assert second.known
    assert second.workloads == first.workloads
    assert sorted(second.workloads) == ["worker/a/1", "worker/a/2"]
    # The fence is kept too, even for a workload that was removed.
    second.apply(Message(workloads=[workload("worker/a/2", 5)]))
    third = Assignments(file)
    third.load()
    third.apply(complete(workload("worker/a/2", 4), workload("worker/a/1", 1)))
    assert third.workloads["worker/a/2"].generation == 5
    third.apply(Message(removed=["worker/a/2"]))
    third.apply(Message(workloads=[workload("worker/a/2", 4)]))
    assert "worker/a/2" not in third.workloads
    third.apply(Message(workloads=[workload("worker/a/2", 1, uid="made anew")]))
    assert third.workloads["worker/a/2"].uid == "made anew"


def test_the_fences_of_workloads_that_went_long_ago_are_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "assignments.json"
    assignments = Assignments(file)
    names = [f"worker/a/{number}" for number in range(KEPT_FENCES + 1)]
    assignments.apply(complete(workload("worker/stays/0", 5), *(workload(name, 5) for name in names)))
    assignments.apply(Message(removed=names[1:]))
    assignments.apply(Message(removed=names[:1]))
    assert list(assignments.workloads) == ["worker/stays/0"]

    again = Assignments(file)
    again.load()
    longest_gone = names[1]
    again.apply(Message(workloads=[workload(name, 4) for name in (*names, "worker/stays/0")]))
    assert sorted(again.workloads) == sorted([longest_gone, "worker/stays/0"])
    assert again.workloads["worker/stays/0"].generation == 5


@pytest.mark.parametrize("content", ["", "{", "[]", '{"workloads": 3, "fences": {}}', '{"workloads": [{"name": 3}]}'])
def test_an_unreadable_file_counts_as_absent(tmp_path: Path, content: str) -> None:
    file = tmp_path / "assignments.json"
    file.write_text(content)
    assignments = Assignments(file)
    assignments.load()
    assert not assignments.known
    assert assignments.workloads == {}


def test_a_name_that_would_leave_the_folder_is_ignored(tmp_path: Path) -> None:
    assignments = Assignments(tmp_path / "f")
    assignments.apply(complete(workload(".."), workload(""), workload("worker/../0")))
    assert list(assignments.workloads) == ["worker/../0"]
    assert Home(tmp_path).workload("worker/../0").parent == Home(tmp_path).workloads


def test_a_gap_in_the_versions_is_seen() -> None:
    versions = AssignmentVersions()
    with pytest.raises(Conflict):
        versions.follow(Message(from_version=0, to_version=1))
    versions.follow(Message(complete=True, to_version=7))
    versions.follow(Message(from_version=7, to_version=9))
    with pytest.raises(Conflict, match=r"at version 8.*is at 9"):
        versions.follow(Message(from_version=8, to_version=10))

"""The state that `keelman status` shows for the whole system."""

import pytest

from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster, WorkerClusterStatus
from keelman.api.connect.v1.worker_pb2 import Worker, WorkerMembership
from keelman.cli.commands.hosts.status import copying_of, state_of

WELL = {"state": "RUNNING", "reason": ""}


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        ("RUNNING", "", "RUNNING"),
        ("STOPPED", "", "RUNNING"),
        ("UNSPECIFIED", "", "STARTING"),
        ("PENDING", "", "STARTING"),
        ("PREPARING", "", "STARTING"),
        ("STARTING", "", "STARTING"),
        ("STARTING", "EXITED", "DEGRADED"),
        ("STARTING", "UNHEALTHY", "DEGRADED"),
        ("PREPARING", "PORT_TAKEN", "DEGRADED"),
        ("STOPPING", "", "DEGRADED"),
        ("FAILED", "EXITED", "DEGRADED"),
    ],
)
def test_what_starts_for_the_first_time_is_no_fault(state: str, reason: str, expected: str) -> None:
    assert state_of([WELL, {"state": state, "reason": reason}], whole=True) == expected


def test_a_service_that_does_not_answer_and_a_fault_beside_a_start_are_faults() -> None:
    starting, failed = {"state": "STARTING", "reason": ""}, {"state": "FAILED", "reason": "EXITED"}
    assert state_of([WELL], whole=False) == "DEGRADED"
    assert state_of([starting], whole=False) == "DEGRADED"
    assert state_of([starting, failed], whole=True) == "DEGRADED"
    assert state_of([], whole=True) == "RUNNING"


def test_a_cluster_is_shown_with_what_its_workers_copy() -> None:
    members = [("wc", WorkerMembership(connectors=1, tasks=3)), ("wc", WorkerMembership(connectors=1, tasks=1))]
    workers = [
        Worker(worker_cluster=name, membership=membership)
        for name, membership in [*members, ("other", WorkerMembership())]
    ]
    verdict = "1 connector has problems: x FAILED (no such topic)"
    status = WorkerClusterStatus(problem_connectors=1, verdict=verdict, connector_policy="strict")
    assert copying_of(WorkerCluster(name="wc", status=status), workers) == {
        "connectors": 2,
        "tasks": 4,
        "problem_connectors": 1,
        "verdict": verdict,
        "connector_policy": "strict",
    }

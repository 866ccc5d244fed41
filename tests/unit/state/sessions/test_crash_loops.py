"""The stored status of a process that fails at each start."""

import dataclasses

from keelman.model.workload import Goal, ProcessState, SparkSpec, Workload, WorkloadStatus
from keelman.state.sessions.crash_loops import CrashLoops

PLACED = Workload("spark/n1", "n1", 1, Goal.RUNNING, SparkSpec("127.0.0.1", 7430, "local[2]"))


class Stored:
    """A workload as it is stored after each report."""

    def __init__(self) -> None:
        self.loops, self.workload = CrashLoops(), PLACED

    def report(self, state: str, restarts: int, generation: int = 1) -> str:
        status = WorkloadStatus(ProcessState(state), generation, restarts=restarts)
        shown = self.loops.shown(PLACED.name, status, self.workload)
        self.workload = dataclasses.replace(self.workload, status=shown)
        return shown.state

    def fail(self, times: int) -> None:
        for number in range(times):
            self.report("STARTING", number)
            self.report("FAILED", number)


def test_after_three_failures_it_stays_failed_until_it_runs() -> None:
    stored = Stored()
    stored.fail(2)
    assert stored.report("STARTING", 2) == "STARTING"
    stored.report("FAILED", 2)
    assert [stored.report(s, 3) for s in ("PENDING", "PREPARING", "STARTING")] == ["FAILED"] * 3
    assert stored.workload.status is not None
    assert stored.workload.status.restarts == 2
    assert stored.report("RUNNING", 3) == "RUNNING"
    assert stored.report("FAILED", 3) == "FAILED"
    assert stored.report("STARTING", 4) == "STARTING"


def test_the_same_failure_counts_once() -> None:
    stored = Stored()
    for _ in range(5):
        stored.report("FAILED", 0)
    assert stored.report("STARTING", 1) == "STARTING"


def test_another_plan_begins_anew() -> None:
    stored = Stored()
    stored.fail(5)
    assert stored.report("STARTING", 0, generation=2) == "STARTING"
    assert stored.report("STOPPED", 0, generation=2) == "STOPPED"

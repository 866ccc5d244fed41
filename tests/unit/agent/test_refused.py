"""A process that ends because it refused its configuration is restarted seldom; a new plan starts it at once."""

from pathlib import Path

import pytest

from keelman.agent.step import REFUSED_SECONDS, Action, StepGoal, next_step, restart_delay
from keelman.agent.workloads.local import Local
from keelman.api.node.v1.workload_pb2 import Workload, WorkloadState
from keelman.runtime.processes.children import Exit

NOW = 1000.0


def ended(end: Exit, *, was_ready: bool = False) -> Local:
    local = Local("worker/demo/0", Path("/not/here"), Workload(uid="u", generation=1), StepGoal.RUNNING)
    if was_ready:
        local.note_health(True, NOW - 1)
    local.note_end(end, "last line", NOW, seen=True)
    return local


@pytest.mark.parametrize("end", [Exit(1, "INVALID_ARGUMENT", "it is not legal"), Exit(2)])
def test_a_refusal_is_known_by_its_record_or_its_exit_code(end: Exit) -> None:
    local = ended(end)
    assert (local.reason, local.failed) == ("REFUSED", True)
    assert local.start_at == NOW + REFUSED_SECONDS
    assert local.message == (end.message or "ended by itself with exit code 2; last line of its log: last line")


@pytest.mark.parametrize("end", [Exit(1, "UNREACHABLE", "no broker answers"), Exit(1), Exit(-9), Exit(None)])
def test_another_end_is_tried_again_at_once(end: Exit) -> None:
    local = ended(end)
    assert local.reason in ("UNREACHABLE", "EXITED", "VANISHED")
    assert local.start_at == NOW


def test_one_that_had_come_up_is_tried_again_whatever_it_says() -> None:
    local = ended(Exit(1, "INVALID_ARGUMENT", "a topic was changed"), was_ready=True)
    assert (local.reason, local.start_at) == ("INVALID_ARGUMENT", NOW)


def test_after_a_refusal_nothing_is_started_before_its_time() -> None:
    local = ended(Exit(2))
    local.swept = True
    step = next_step(local.wanted(), local.seen(), NOW)
    assert (step.action, step.until) == (Action.WAIT, NOW + restart_delay(1, refused=True))


def test_a_failure_says_nothing_of_a_plan_that_came_since() -> None:
    """The agent reports before it starts the new plan: a waiting client would take the new plan for failed."""
    local = ended(Exit(1, "WRONG_TOPIC", "a topic is not compacted"))
    status = local.status(draining=False)
    assert (status.state, status.generation, status.reason) == (WorkloadState.WORKLOAD_STATE_FAILED, 1, "WRONG_TOPIC")
    local.workload = Workload(uid="u", generation=2)
    status = local.status(draining=False)
    assert (status.state, status.generation) == (WorkloadState.WORKLOAD_STATE_PENDING, 2)
    assert (status.reason, status.message) == ("", "")
    local.note_fault("prepare failed: no space left")
    status = local.status(draining=False)
    assert (status.state, status.reason) == (WorkloadState.WORKLOAD_STATE_PENDING, "FAULT"), "why it is not tried"
    assert status.message == "prepare failed: no space left"
    local.could_not_start("PORT_TAKEN", "port 1", NOW)
    assert local.status(draining=False).state == WorkloadState.WORKLOAD_STATE_FAILED


def test_what_cannot_be_prepared_as_it_is_not_legal_is_refused_too() -> None:
    local = Local("spark/n1", Path("/not/here"))
    local.could_not_start("INVALID_ARGUMENT", "spark.toml: not legal", NOW)
    assert local.reason == "REFUSED"
    local.could_not_start("PORT_TAKEN", "port 1", NOW)
    assert local.reason == "PORT_TAKEN"

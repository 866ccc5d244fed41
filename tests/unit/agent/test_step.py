"""The step function, as a table."""

from __future__ import annotations

import random

import pytest

from keelman.agent.step import (
    Action,
    DesiredState,
    KillCause,
    ObservedState,
    StepGoal,
    WorkloadStep,
    drained_kinds,
    failures_after,
    may_replace,
    next_step,
    restart_delay,
)

OLD, PLAN = ("u", 1), ("u", 2)
NOW = 100.0
RUN, STOP, REMOVE, LEAVE = (
    DesiredState(StepGoal.RUNNING, PLAN),
    DesiredState(StepGoal.STOPPED, PLAN),
    DesiredState(StepGoal.REMOVED, PLAN),
    DesiredState(StepGoal.UNTOUCHED),
)
FORCED_STOP, FORCED_REMOVE, FORCED_RUN = (
    DesiredState(goal, PLAN, force=True) for goal in (StepGoal.STOPPED, StepGoal.REMOVED, StepGoal.RUNNING)
)
ABSENT = ObservedState()
LIVING = ObservedState(alive=True, plan=PLAN)
LIVING_OLD = ObservedState(alive=True, plan=OLD)
GRACE = WorkloadStep(Action.KILL, cause=KillCause.GRACE)
FORCED = WorkloadStep(Action.KILL, cause=KillCause.FORCED)
OVER = WorkloadStep(Action.KILL, cause=KillCause.MEMORY)


@pytest.mark.parametrize(
    ("desired_state", "seen", "step"),
    [
        (RUN, ABSENT, WorkloadStep(Action.PREPARE)),
        (RUN, ObservedState(prepared=PLAN), WorkloadStep(Action.START)),
        (RUN, ObservedState(prepared=OLD), WorkloadStep(Action.PREPARE)),
        (RUN, LIVING, WorkloadStep(Action.NOTHING)),
        (RUN, LIVING_OLD, WorkloadStep(Action.STOP)),
        (RUN, ObservedState(alive=True, plan=("another", 2)), WorkloadStep(Action.STOP)),
        (RUN, ObservedState(alive=True, plan=OLD, kill_at=NOW + 1), WorkloadStep(Action.WAIT, NOW + 1)),
        (RUN, ObservedState(alive=True, plan=OLD, kill_at=NOW), GRACE),
        # A process that is stopping stops, even if it is wanted again meanwhile.
        (RUN, ObservedState(alive=True, plan=PLAN, kill_at=NOW + 1), WorkloadStep(Action.WAIT, NOW + 1)),
        (RUN, ObservedState(swept=False), WorkloadStep(Action.SWEEP)),
        (RUN, ObservedState(swept=False, prepared=PLAN), WorkloadStep(Action.SWEEP)),
        (RUN, ObservedState(start_at=NOW + 4), WorkloadStep(Action.WAIT, NOW + 4)),
        (RUN, ObservedState(start_at=NOW), WorkloadStep(Action.PREPARE)),
        # Plugins come first, and the former process keeps running meanwhile.
        (RUN, ObservedState(lacks_plugins=True), WorkloadStep(Action.FETCH)),
        (RUN, ObservedState(lacks_plugins=True, fetching=True), WorkloadStep(Action.NOTHING)),
        (RUN, ObservedState(lacks_plugins=True, start_at=NOW + 4), WorkloadStep(Action.WAIT, NOW + 4)),
        (RUN, ObservedState(alive=True, plan=OLD, lacks_plugins=True), WorkloadStep(Action.FETCH)),
        (RUN, ObservedState(alive=True, plan=OLD, lacks_plugins=True, fetching=True), WorkloadStep(Action.NOTHING)),
        (
            RUN,
            ObservedState(alive=True, plan=OLD, lacks_plugins=True, start_at=NOW + 4),
            WorkloadStep(Action.WAIT, NOW + 4),
        ),
        (RUN, ObservedState(alive=True, plan=PLAN, lacks_plugins=True), WorkloadStep(Action.NOTHING)),
        (
            RUN,
            ObservedState(alive=True, plan=OLD, lacks_plugins=True, fetching=True, give_up_at=NOW),
            WorkloadStep(Action.KILL, cause=KillCause.UNHEALTHY),
        ),
        (STOP, ObservedState(lacks_plugins=True), WorkloadStep(Action.NOTHING)),
        (STOP, ObservedState(alive=True, plan=OLD, lacks_plugins=True, fetching=True), WorkloadStep(Action.STOP)),
        # A process that fails its health check is killed in time, unless it is stopping or no time limit is set.
        (RUN, ObservedState(alive=True, plan=PLAN, give_up_at=NOW + 1), WorkloadStep(Action.WAIT, NOW + 1)),
        (
            RUN,
            ObservedState(alive=True, plan=PLAN, give_up_at=NOW),
            WorkloadStep(Action.KILL, cause=KillCause.UNHEALTHY),
        ),
        (
            RUN,
            ObservedState(alive=True, plan=PLAN, give_up_at=NOW, kill_at=NOW + 1),
            WorkloadStep(Action.WAIT, NOW + 1),
        ),
        (RUN, ObservedState(alive=True, plan=OLD, give_up_at=NOW), WorkloadStep(Action.STOP)),
        (STOP, ObservedState(alive=True, plan=PLAN, give_up_at=NOW), WorkloadStep(Action.STOP)),
        (LEAVE, ObservedState(alive=True, plan=PLAN, give_up_at=NOW), WorkloadStep(Action.NOTHING)),
        (STOP, ABSENT, WorkloadStep(Action.NOTHING)),
        (STOP, LIVING, WorkloadStep(Action.STOP)),
        (STOP, ObservedState(swept=False), WorkloadStep(Action.SWEEP)),
        (STOP, ObservedState(start_at=NOW + 4), WorkloadStep(Action.NOTHING)),
        (REMOVE, LIVING, WorkloadStep(Action.STOP)),
        (REMOVE, ObservedState(alive=True, plan=PLAN, kill_at=NOW), GRACE),
        (REMOVE, ObservedState(swept=False), WorkloadStep(Action.SWEEP)),
        (REMOVE, ABSENT, WorkloadStep(Action.REMOVE)),
        (REMOVE, ObservedState(folder=False), WorkloadStep(Action.NOTHING)),
        (LEAVE, LIVING_OLD, WorkloadStep(Action.NOTHING)),
        (LEAVE, ABSENT, WorkloadStep(Action.NOTHING)),
        (LEAVE, ObservedState(swept=False), WorkloadStep(Action.SWEEP)),
        # Forced: at once, even if the process is already stopping; but not in a tight loop.
        (FORCED_STOP, LIVING, FORCED),
        (FORCED_REMOVE, LIVING_OLD, FORCED),
        (FORCED_STOP, ObservedState(alive=True, plan=PLAN, kill_at=NOW + 9), FORCED),
        (
            FORCED_STOP,
            ObservedState(alive=True, plan=PLAN, killed=KillCause.FORCED, kill_at=NOW + 1),
            WorkloadStep(Action.WAIT, NOW + 1),
        ),
        (FORCED_STOP, ObservedState(alive=True, plan=PLAN, killed=KillCause.FORCED, kill_at=NOW), FORCED),
        (FORCED_RUN, LIVING, WorkloadStep(Action.NOTHING)),
        (FORCED_RUN, LIVING_OLD, WorkloadStep(Action.STOP)),
        (FORCED_STOP, ABSENT, WorkloadStep(Action.NOTHING)),
        # Over its memory limit: whatever the goal, once.
        (RUN, ObservedState(alive=True, plan=PLAN, over_memory=True), OVER),
        (STOP, ObservedState(alive=True, plan=PLAN, over_memory=True, kill_at=NOW + 9), OVER),
        (LEAVE, ObservedState(alive=True, plan=PLAN, over_memory=True), OVER),
        (
            RUN,
            ObservedState(alive=True, plan=PLAN, over_memory=True, killed=KillCause.MEMORY, kill_at=NOW + 1),
            WorkloadStep(Action.WAIT, NOW + 1),
        ),
        (RUN, ObservedState(alive=True, plan=PLAN, over_memory=True, killed=KillCause.MEMORY, kill_at=NOW), OVER),
    ],
)
def test_steps(desired_state: DesiredState, seen: ObservedState, step: WorkloadStep) -> None:
    assert next_step(desired_state, seen, NOW) == step


@pytest.mark.parametrize("seed", range(50))
def test_from_any_state_the_steps_lead_to_what_is_wanted_and_never_start_what_lives(seed: int) -> None:
    source = random.Random(seed)
    choice = source.choice([RUN, STOP, REMOVE])
    alive = source.random() < 0.5
    world = {
        "alive": alive, "plan": source.choice([OLD, PLAN]), "prepared": source.choice([None, OLD, PLAN]),
        "swept": alive or source.random() < 0.5, "folder": True,
        "kill_at": NOW + 5 if alive and source.random() < 0.3 else None, "start_at": source.choice([0.0, NOW + 3]),
    }  # fmt: skip
    now = NOW
    for _ in range(20):
        step = next_step(choice, ObservedState(**world), now)
        match step.action:
            case Action.NOTHING:
                break
            case Action.WAIT:
                assert step.until is not None
                assert step.until > now
                now = step.until
            case Action.PREPARE:
                assert not world["alive"]
                world["prepared"] = choice.plan
            case Action.START:
                assert not world["alive"]
                assert world["swept"]
                world.update(alive=True, plan=choice.plan, folder=True)
            case Action.STOP:
                world["kill_at"] = now + 10
            case Action.KILL:
                world.update(alive=False, kill_at=None, swept=False, prepared=None)
            case Action.SWEEP:
                world["swept"] = True
            case Action.REMOVE:
                assert not world["alive"]
                world["folder"] = False
    else:
        pytest.fail("no end")
    assert world["alive"] == (choice is RUN)
    assert world["folder"] == (choice is not REMOVE)
    assert choice is not RUN or world["plan"] == PLAN


def test_the_first_restart_is_immediate_and_the_next_wait_longer_and_longer() -> None:
    assert [restart_delay(n) for n in range(1, 9)] == [0, 1, 2, 4, 8, 16, 30, 30]
    assert restart_delay(10_000) == 30


def test_a_healthy_minute_wipes_out_the_past() -> None:
    assert failures_after(5, 59.9) == 6
    assert failures_after(5, 60.0) == 1
    assert failures_after(0, 0.0) == 1


@pytest.mark.parametrize(
    ("alive", "kinds"),
    [
        (["broker", "spark", "worker", "worker"], {"worker"}),
        (["broker", "spark"], {"worker", "spark"}),
        (["broker"], {"worker", "spark", "broker"}),
        ([], {"worker", "spark", "broker"}),
        (["bridge", "worker"], {"bridge"}),
    ],
)
def test_a_drain_stops_what_stands_on_others_first(alive: list[str], kinds: set[str]) -> None:
    assert drained_kinds(alive) == kinds


def test_an_older_plan_does_not_replace_a_newer_one_of_the_same_workload() -> None:
    assert may_replace(None, ("u", 1))
    assert may_replace(("u", 1), ("u", 1))
    assert may_replace(("u", 1), ("u", 2))
    assert not may_replace(("u", 2), ("u", 1))
    assert may_replace(("u", 2), ("v", 1))

"""The step function, as a table."""

from __future__ import annotations

import random

import pytest

from keelman.agent.step import (
    Action,
    Cause,
    Goal,
    Seen,
    Step,
    Wanted,
    drained_kinds,
    failures_after,
    may_replace,
    next_step,
    restart_delay,
)

OLD, PLAN = ("u", 1), ("u", 2)
NOW = 100.0
RUN, STOP, REMOVE, LEAVE = (
    Wanted(Goal.RUNNING, PLAN),
    Wanted(Goal.STOPPED, PLAN),
    Wanted(Goal.REMOVED, PLAN),
    Wanted(Goal.UNTOUCHED),
)
FORCED_STOP, FORCED_REMOVE, FORCED_RUN = (
    Wanted(goal, PLAN, force=True) for goal in (Goal.STOPPED, Goal.REMOVED, Goal.RUNNING)
)
ABSENT = Seen()
LIVING = Seen(alive=True, plan=PLAN)
LIVING_OLD = Seen(alive=True, plan=OLD)
GRACE = Step(Action.KILL, cause=Cause.GRACE)
FORCED = Step(Action.KILL, cause=Cause.FORCED)
OVER = Step(Action.KILL, cause=Cause.MEMORY)


@pytest.mark.parametrize(
    ("wanted", "seen", "step"),
    [
        (RUN, ABSENT, Step(Action.PREPARE)),
        (RUN, Seen(prepared=PLAN), Step(Action.START)),
        (RUN, Seen(prepared=OLD), Step(Action.PREPARE)),
        (RUN, LIVING, Step(Action.NOTHING)),
        (RUN, LIVING_OLD, Step(Action.STOP)),
        (RUN, Seen(alive=True, plan=("another", 2)), Step(Action.STOP)),
        (RUN, Seen(alive=True, plan=OLD, kill_at=NOW + 1), Step(Action.WAIT, NOW + 1)),
        (RUN, Seen(alive=True, plan=OLD, kill_at=NOW), GRACE),
        # Once asked to end it ends, even when it is wanted again meanwhile.
        (RUN, Seen(alive=True, plan=PLAN, kill_at=NOW + 1), Step(Action.WAIT, NOW + 1)),
        (RUN, Seen(swept=False), Step(Action.SWEEP)),
        (RUN, Seen(swept=False, prepared=PLAN), Step(Action.SWEEP)),
        (RUN, Seen(start_at=NOW + 4), Step(Action.WAIT, NOW + 4)),
        (RUN, Seen(start_at=NOW), Step(Action.PREPARE)),
        # Plugins come first, and the former process runs on meanwhile.
        (RUN, Seen(lacks_plugins=True), Step(Action.FETCH)),
        (RUN, Seen(lacks_plugins=True, fetching=True), Step(Action.NOTHING)),
        (RUN, Seen(lacks_plugins=True, start_at=NOW + 4), Step(Action.WAIT, NOW + 4)),
        (RUN, Seen(alive=True, plan=OLD, lacks_plugins=True), Step(Action.FETCH)),
        (RUN, Seen(alive=True, plan=OLD, lacks_plugins=True, fetching=True), Step(Action.NOTHING)),
        (RUN, Seen(alive=True, plan=OLD, lacks_plugins=True, start_at=NOW + 4), Step(Action.WAIT, NOW + 4)),
        (RUN, Seen(alive=True, plan=PLAN, lacks_plugins=True), Step(Action.NOTHING)),
        (
            RUN,
            Seen(alive=True, plan=OLD, lacks_plugins=True, fetching=True, give_up_at=NOW),
            Step(Action.KILL, cause=Cause.UNHEALTHY),
        ),
        (STOP, Seen(lacks_plugins=True), Step(Action.NOTHING)),
        (STOP, Seen(alive=True, plan=OLD, lacks_plugins=True, fetching=True), Step(Action.STOP)),
        # One that does not answer is given up in time, unless it is to end anyway or nobody has said.
        (RUN, Seen(alive=True, plan=PLAN, give_up_at=NOW + 1), Step(Action.WAIT, NOW + 1)),
        (RUN, Seen(alive=True, plan=PLAN, give_up_at=NOW), Step(Action.KILL, cause=Cause.UNHEALTHY)),
        (RUN, Seen(alive=True, plan=PLAN, give_up_at=NOW, kill_at=NOW + 1), Step(Action.WAIT, NOW + 1)),
        (RUN, Seen(alive=True, plan=OLD, give_up_at=NOW), Step(Action.STOP)),
        (STOP, Seen(alive=True, plan=PLAN, give_up_at=NOW), Step(Action.STOP)),
        (LEAVE, Seen(alive=True, plan=PLAN, give_up_at=NOW), Step(Action.NOTHING)),
        (STOP, ABSENT, Step(Action.NOTHING)),
        (STOP, LIVING, Step(Action.STOP)),
        (STOP, Seen(swept=False), Step(Action.SWEEP)),
        (STOP, Seen(start_at=NOW + 4), Step(Action.NOTHING)),
        (REMOVE, LIVING, Step(Action.STOP)),
        (REMOVE, Seen(alive=True, plan=PLAN, kill_at=NOW), GRACE),
        (REMOVE, Seen(swept=False), Step(Action.SWEEP)),
        (REMOVE, ABSENT, Step(Action.REMOVE)),
        (REMOVE, Seen(folder=False), Step(Action.NOTHING)),
        (LEAVE, LIVING_OLD, Step(Action.NOTHING)),
        (LEAVE, ABSENT, Step(Action.NOTHING)),
        (LEAVE, Seen(swept=False), Step(Action.SWEEP)),
        # By force: at once, also when it was asked to end already; but not in a tight loop.
        (FORCED_STOP, LIVING, FORCED),
        (FORCED_REMOVE, LIVING_OLD, FORCED),
        (FORCED_STOP, Seen(alive=True, plan=PLAN, kill_at=NOW + 9), FORCED),
        (FORCED_STOP, Seen(alive=True, plan=PLAN, killed=Cause.FORCED, kill_at=NOW + 1), Step(Action.WAIT, NOW + 1)),
        (FORCED_STOP, Seen(alive=True, plan=PLAN, killed=Cause.FORCED, kill_at=NOW), FORCED),
        (FORCED_RUN, LIVING, Step(Action.NOTHING)),
        (FORCED_RUN, LIVING_OLD, Step(Action.STOP)),
        (FORCED_STOP, ABSENT, Step(Action.NOTHING)),
        # Over its memory: whatever is wanted, once.
        (RUN, Seen(alive=True, plan=PLAN, over_memory=True), OVER),
        (STOP, Seen(alive=True, plan=PLAN, over_memory=True, kill_at=NOW + 9), OVER),
        (LEAVE, Seen(alive=True, plan=PLAN, over_memory=True), OVER),
        (
            RUN,
            Seen(alive=True, plan=PLAN, over_memory=True, killed=Cause.MEMORY, kill_at=NOW + 1),
            Step(Action.WAIT, NOW + 1),
        ),
        (RUN, Seen(alive=True, plan=PLAN, over_memory=True, killed=Cause.MEMORY, kill_at=NOW), OVER),
    ],
)
def test_steps(wanted: Wanted, seen: Seen, step: Step) -> None:
    assert next_step(wanted, seen, NOW) == step


@pytest.mark.parametrize("seed", range(50))
def test_from_any_state_the_steps_lead_to_what_is_wanted_and_never_start_what_lives(seed: int) -> None:
    source = random.Random(seed)
    wanted = source.choice([RUN, STOP, REMOVE])
    alive = source.random() < 0.5
    world = {
        "alive": alive, "plan": source.choice([OLD, PLAN]), "prepared": source.choice([None, OLD, PLAN]),
        "swept": alive or source.random() < 0.5, "folder": True,
        "kill_at": NOW + 5 if alive and source.random() < 0.3 else None, "start_at": source.choice([0.0, NOW + 3]),
    }  # fmt: skip
    now = NOW
    for _ in range(20):
        step = next_step(wanted, Seen(**world), now)
        match step.action:
            case Action.NOTHING:
                break
            case Action.WAIT:
                assert step.until is not None
                assert step.until > now
                now = step.until
            case Action.PREPARE:
                assert not world["alive"]
                world["prepared"] = wanted.plan
            case Action.START:
                assert not world["alive"]
                assert world["swept"]
                world.update(alive=True, plan=wanted.plan, folder=True)
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
    assert world["alive"] == (wanted is RUN)
    assert world["folder"] == (wanted is not REMOVE)
    assert wanted is not RUN or world["plan"] == PLAN


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

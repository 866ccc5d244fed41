"""A cluster with too few cores: they go to copy runs that need them, the others share or wait with the reason."""

from __future__ import annotations

import pytest

from keelman.spark.slots.choice import SlotLimits, SlotState
from keelman.spark.slots.scarcity import SCARCE_SECONDS, STARTS_SECONDS
from keelman.spark.slots.shortage import Shortage, no_executors, waiting_for_cores
from support.worlds.dispatch import ME, OTHER, PENDING, World

FEW, NONE = waiting_for_cores("spark://m:7077", 1, 2), no_executors("spark://m:7077", 2)


@pytest.fixture
def w() -> World:
    world = World(SlotLimits(2, 3, 6))
    world.d.greet(ME, world)
    return world


def test_a_run_that_waits_for_a_core_shares_the_slot_that_its_worker_has(w: World) -> None:
    slot = w.running("a")
    w.ticket("b")
    assert w.run("b").slot == w.started[1].id
    w.shortage = FEW
    w.after(STARTS_SECONDS + 2)
    assert w.run("b").slot == slot.id
    assert ("b", "start") in w.orders(slot)
    assert w.started[1].state is SlotState.ENDING
    w.ticket("c")
    assert (w.run("c").slot, len(w.started)) == (slot.id, 2), "the next one does not even try"
    w.shortage = None
    w.after(SCARCE_SECONDS + 1)
    w.ticket("d")
    assert len(w.started) == 3, "cores may have come"


@pytest.mark.parametrize("shortage", [FEW, NONE], ids=["cores", "executors"])
def test_a_run_without_another_slot_waits_with_the_reason_and_is_not_given_up(w: World, shortage: Shortage) -> None:
    w.ticket("a")
    w.shortage = shortage
    w.after(120)
    run = w.run("a")
    assert (run.state, run.reason, run.slot) == (PENDING, shortage.reason, w.started[0].id)
    assert run.message == shortage.message
    w.shortage = None
    w.after(20)
    assert len(w.started) == 1, "its time to start begins when it has its core"
    w.attach(w.started[0])
    assert w.orders(w.started[0]) == [("a", "start")]


def test_a_slot_that_does_not_start_for_another_reason_fails_as_ever(w: World) -> None:
    w.ticket("a")
    w.after(30.5)
    assert w.run("a").reason == "SLOT_START_FAILED"


def test_empty_slots_leave_their_cores_to_runs_that_wait() -> None:
    w = World(SlotLimits(2, 3, 6, warm=True))
    w.d.greet(ME, w)
    w.running("a")
    empty = w.started[-1]
    w.attach(empty)
    assert not empty.runs
    w.d.greet(OTHER, w)
    w.ticket("z", OTHER)
    w.shortage = FEW
    w.after(STARTS_SECONDS + 2)
    assert empty.state is SlotState.ENDING
    started = len(w.started)
    w.after(SCARCE_SECONDS / 2)
    assert len(w.started) == started, "and none is held ready meanwhile"


def test_runs_stay_together_when_no_executor_is_left(w: World) -> None:
    slot = w.running("a")
    w.ticket("b")
    w.shortage = NONE
    w.after(STARTS_SECONDS + 2)
    assert w.run("b").slot != slot.id, "that slot is about to be lost"
    assert w.run("b").reason == "NO_EXECUTORS"

"""Which slot a copy run goes to."""

from __future__ import annotations

from keelman.spark.runs import Owner
from keelman.spark.slots import Limits, NewSlot, Place, Slot, SlotState, Wait, choose

ME, OTHER = Owner("wc", "me:1", "1"), Owner("wc", "other:1", "1")
LIMITS = Limits(slots_per_worker=2, runs_per_slot=3, max_slots=4)


def slot(name: str, runs: int, owner: Owner = ME, state: SlotState = SlotState.ATTACHED) -> Slot:
    return Slot(name, owner, "", 0.0, state, {f"{name}-{n}" for n in range(runs)})


def test_the_first_run_gets_a_new_slot() -> None:
    assert choose(ME, [], LIMITS) == NewSlot()


def test_an_empty_slot_comes_before_a_new_one() -> None:
    empty = slot("a", 0)
    assert choose(ME, [empty], LIMITS) == Place(empty)


def test_a_new_slot_comes_before_sharing() -> None:
    assert choose(ME, [slot("a", 1)], LIMITS) == NewSlot()


def test_the_least_loaded_is_shared_also_while_it_starts() -> None:
    light = slot("b", 1, state=SlotState.STARTING)
    assert choose(ME, [slot("a", 2), light], LIMITS) == Place(light)


def test_slots_of_others_and_ending_ones_are_never_shared() -> None:
    assert choose(ME, [slot("a", 0, OTHER), slot("b", 0, state=SlotState.ENDING)], LIMITS) == NewSlot()


def test_full_slots_make_it_wait_and_say_so() -> None:
    choice = choose(ME, [slot("a", 3), slot("b", 3)], LIMITS)
    assert isinstance(choice, Wait)
    assert "runs_per_slot" in choice.message
    assert choice.evict is None


def test_with_no_slot_left_sharing_comes_before_waiting() -> None:
    mine = slot("a", 1)
    every = [mine, *(slot(n, 1, OTHER) for n in "bcd")]
    assert choose(ME, every, LIMITS) == Place(mine)


def test_with_no_slot_left_an_idle_one_of_another_is_ended_but_only_one() -> None:
    idle = slot("c", 0, OTHER)
    every = [slot("a", 1, OTHER), slot("b", 1, OTHER), idle, slot("d", 0, OTHER)]
    choice = choose(ME, every, LIMITS)
    assert isinstance(choice, Wait)
    assert choice.evict is idle
    assert "max_slots" in choice.message
    idle.state = SlotState.ENDING
    again = choose(ME, every, LIMITS)
    assert isinstance(again, Wait)
    assert again.evict is None

"""The slot that a copy run gets, and the memory that slots may use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from keelman.spark.copy_runs.runs import Owner
from keelman.spark.slots.busy import Busy
from keelman.spark.slots.choice import Need, NewSlot, Slot, SlotLimits, SlotPlace, SlotState, Wait, choose, warm
from keelman.spark.slots.usage import SLOT_BYTES, claimed, share_out, too_much

ME, OTHER = Owner("wc", "me:1", "1"), Owner("wc", "other:1", "1")
LIMITS = SlotLimits(slots_per_worker=2, runs_per_slot=3, max_slots=4)


def slot(name: str, runs: int, owner: Owner = ME, state: SlotState = SlotState.ATTACHED) -> Slot:
    return Slot(name, owner, "", 0.0, state, {f"{name}-{n}" for n in range(runs)})


def test_the_first_run_gets_a_new_slot() -> None:
    assert choose(ME, [], LIMITS) == NewSlot()


def test_an_empty_slot_comes_before_a_new_one() -> None:
    empty = slot("a", 0)
    assert choose(ME, [empty], LIMITS) == SlotPlace(empty)


def test_a_new_slot_comes_before_sharing() -> None:
    assert choose(ME, [slot("a", 1)], LIMITS) == NewSlot()


def test_the_least_loaded_is_shared_also_while_it_starts() -> None:
    light = slot("b", 1, state=SlotState.STARTING)
    assert choose(ME, [slot("a", 2), light], LIMITS) == SlotPlace(light)


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
    assert choose(ME, every, LIMITS) == SlotPlace(mine)


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


def own(name: str, runs: int = 1, plugin: str = "", state: SlotState = SlotState.ATTACHED) -> Slot:
    with_runs = slot(name, runs, state=state)
    with_runs.plugin, with_runs.alone = plugin, True
    return with_runs


def test_a_plugin_never_shares_a_slot_nor_takes_over_anothers() -> None:
    need = Need("/plugins/a")
    others = [slot("s", 0), own("b", 0, "/plugins/b"), own("a", 1, "/plugins/a")]
    assert choose(ME, others, LIMITS, need) == NewSlot("/plugins/a", alone=True)
    free = own("a2", 0, "/plugins/a")
    assert choose(ME, [*others, free], LIMITS, need) == SlotPlace(free)
    assert choose(ME, [own("a", 0, "/plugins/a"), slot("s", 1), slot("t", 2)], LIMITS) == SlotPlace(slot("s", 1))


def test_tasks_of_a_plugin_share_a_slot_where_they_may_and_fill_one_before_the_next() -> None:
    need = Need("/plugins/a", plugin_runs=3)
    two, single_own, full = own("a2", 2, "/plugins/a"), own("a1", 1, "/plugins/a"), own("a3", 3, "/plugins/a")
    for each in (two, single_own, full):
        each.plugin_runs = 3
    assert choose(ME, [single_own, two, full, own("b", 0, "/plugins/b")], LIMITS, need) == SlotPlace(two)
    assert choose(ME, [full, own("a4", 1, "/plugins/a")], LIMITS, need) == NewSlot(
        "/plugins/a", alone=True, plugin_runs=3
    ), "a slot that is reserved for one task is not shared"


def test_a_plugin_without_room_waits_and_an_idle_slot_makes_room() -> None:
    idle = slot("d", 0)
    choice = choose(ME, [slot("a", 1), slot("b", 1), own("c"), idle], LIMITS, Need("/plugins/a"))
    assert isinstance(choice, Wait)
    assert "max_slots" in choice.message
    assert choice.evict is idle


def test_a_busy_run_gets_its_own_slot_while_there_is_room_and_shares_else() -> None:
    limits = replace(LIMITS, busy_slots=1)
    assert choose(ME, [slot("a", 1)], limits, Need(busy=True)) == NewSlot(alone=True)
    free = own("b", 0)
    assert choose(ME, [slot("a", 1), free], limits, Need(busy=True)) == SlotPlace(free)
    light, full = slot("a", 1), slot("c", 2)
    assert choose(ME, [full, light, own("b")], limits, Need(busy=True)) == SlotPlace(light)


def test_without_memory_for_another_slot_a_run_shares_and_a_plugin_waits() -> None:
    light = slot("a", 1)
    assert choose(ME, [light], LIMITS, may_start=False) == SlotPlace(light)
    choice = choose(ME, [light], LIMITS, Need("/plugins/a"), may_start=False)
    assert isinstance(choice, Wait)
    assert "memory" in choice.message


def test_one_empty_slot_is_kept_ahead() -> None:
    limits = replace(LIMITS, warm=True)
    assert warm(ME, [], limits)
    assert not warm(ME, [slot("a", 0, state=SlotState.STARTING)], limits)
    assert warm(ME, [slot("a", 1), own("b", 0)], limits)
    assert not warm(ME, [slot("a", 1), slot("b", 1)], limits), "as many as a worker may have"
    assert not warm(ME, [slot(n, 1, OTHER) for n in "abcd"], limits), "no place is left"
    assert not warm(ME, [], LIMITS)


def test_a_task_is_busy_after_three_seconds_and_calm_after_a_minute() -> None:
    busy, task = Busy(1000.0), ("wc", "c", 0)
    for now in (0.0, 1.0, 2.0):
        busy.note(task, 1000.0, now)
    assert not busy.has(task, 2.0)
    busy.note(task, 5.0, 2.5)
    busy.note(task, 1000.0, 3.0)
    assert not busy.has(task, 3.0), "three seconds without a break"
    for now in (4.0, 5.0, 6.0):
        busy.note(task, 2000.0, now)
    assert busy.has(task, 6.0)
    busy.note(task, 0.0, 7.0)
    busy.forget(60.0)
    assert busy.has(task, 60.0)
    assert not busy.has(task, 66.0)


def used(name: str, rate: float, cpus: float = 0.0) -> Slot:
    with_usage = slot(name, 1)
    with_usage.cpu_rate, with_usage.cpus, with_usage.memory_bytes = rate, cpus, 100 << 20
    return with_usage


def test_processors_go_to_those_who_use_them_and_none_is_left_over() -> None:
    slots = used("idle", 0.01, 0.5), used("busy", 0.5, 0.5), used("busier", 0.48, 0.5)
    shares = share_out(1.5, slots)
    assert sum(shares.values()) == pytest.approx(1.5)
    assert shares["idle"] == pytest.approx(0.06)
    assert shares["busy"] == shares["busier"] == pytest.approx(0.72)
    calm = share_out(1.0, [used("a", 0.1, 0.5), used("b", 0.2, 0.5)])
    assert sum(calm.values()) == pytest.approx(1.0)
    assert share_out(1.0, [used("a", 0.0), used("b", 0.0)]) == {"a": 0.5, "b": 0.5}


def test_memory_counts_slots_that_have_not_grown_yet() -> None:
    new = slot("new", 0, state=SlotState.STARTING)
    assert claimed([used("a", 0.0), new]) == (100 << 20) + SLOT_BYTES
    assert too_much("me:1", [used("a", 0), used("b", 0)], 201 << 20) == ""
    assert too_much("me:1", [used("a", 0)], 0) == ""
    assert "hold 200 MiB, and may hold 150 MiB" in too_much("me:1", [used("a", 0), used("b", 0)], 150 << 20)

"""Which runs share a slot, which have their own, and which slots are kept for the next run."""

from __future__ import annotations

from keelman.api.copy.v1.run_order_pb2 import BulkPart, RunOrder, RunUpdate
from keelman.api.copy.v1.slot_service_pb2 import SlotBeat
from keelman.api.copy.v1.ticket_pb2 import Bulk, StartTicket
from keelman.api.copy.v1.worker_link_service_pb2 import Bounds
from keelman.rpc.times import from_duration, to_duration
from keelman.spark.copy_runs.runs import Owner
from keelman.spark.slots.choice import SlotLimits, SlotState
from support.worlds.dispatch import ENDED, MB, ME, NEXT, OTHER, PENDING, RUNNING, World


def test_an_idle_slot_is_kept_warm_for_a_while(w: World) -> None:
    slot = w.running("a")
    w.d.update(slot, RunUpdate(run_uid="a", state=ENDED))
    w.after(59)
    assert slot.state is SlotState.ATTACHED
    w.after(2)
    assert slot.state is SlotState.ENDING


def test_an_idle_slot_of_another_worker_makes_room() -> None:
    w = World(SlotLimits(1, 2, 1))
    w.d.greet(ME, w)
    w.d.greet(OTHER, w)
    slot = w.running("a")
    w.d.update(slot, RunUpdate(run_uid="a", state=ENDED))
    w.ticket("b", OTHER)
    assert (w.run("b").reason, slot.state) == ("NO_FREE_SLOT", SlotState.ENDING)
    w.end_job(slot.id, "")
    assert w.started[-1].owner == OTHER


def rate(uid: str, bytes_per_second: float, records: int = 0) -> RunUpdate:
    update = RunUpdate(run_uid=uid, state=RUNNING)
    update.progress.bytes_per_second, update.progress.records = bytes_per_second, records
    return update


def test_a_slot_is_ready_before_the_first_ticket_and_stays_so() -> None:
    w = World(SlotLimits(2, 2, 3, warm=True))
    w.d.greet(ME, w)
    assert len(w.started) == 1
    w.attach(w.started[0])
    w.ticket("a")
    assert w.orders(w.started[0]) == [("a", "start")], "no wait for a slot"
    w.attach(w.started[1])
    w.after(200)
    assert [s.state for s in w.started] == [SlotState.ATTACHED] * 2
    w.d.pool.detached(w.started[1])
    w.end_job(w.started[1].id, "killed")
    assert len(w.started) == 3
    w.d.drain()
    w.end_job(w.started[2].id, "")
    w.after(2)
    assert len(w.started) == 3, "none is made ready while the service stops"


def test_of_many_idle_workers_those_that_copied_last_have_a_slot_ready() -> None:
    w = World(SlotLimits(1, 2, 20, warm=True, max_warm=2))
    owners = [Owner("wc", f"w{n}:1", "1") for n in range(4)]
    for owner in owners:
        w.d.greet(owner, w)
    assert len(w.started) == 2, "no more are started ahead"
    for owner in owners:
        w.now += 1
        slot = w.running(owner.worker[1], owner)
        w.d.update(slot, RunUpdate(run_uid=owner.worker[1], state=ENDED))
    w.after(90)
    stored_owners = {slot.owner for slot in w.d.pool.slots.values() if slot.usable}
    assert stored_owners == set(owners[-2:])
    w.ticket("9", owners[0])
    assert w.started[-1].owner == owners[0], "who copies again has one as before"


def test_a_plugin_has_its_own_slot_and_its_own_problems() -> None:
    w = World(SlotLimits(2, 2, 3))
    w.d.greet(ME, w)
    w.ticket("a", plugin="/p/bad")
    w.end_job(w.started[0].id, "no such module")
    assert w.run("a").reason == "SLOT_START_FAILED"
    shared = w.running("b")
    assert (w.started[0].plugin, shared.plugin) == ("/p/bad", "")
    w.ticket("c", plugin="/p/good")
    w.attach(w.started[-1])
    assert w.orders(w.started[-1]) == [("c", "start")]


def test_a_busy_run_moves_to_a_slot_of_its_own_and_back_when_it_is_calm() -> None:
    w = World(SlotLimits(1, 4, 4, busy_slots=1), busy=1000)
    w.d.greet(ME, w)
    slot = w.running("a")
    w.running("b")
    w.orders(slot)
    w.d.update(slot, rate("a", 5000))
    w.after(5.5)
    assert len(w.started) == 2, "its slot is started first"
    assert w.orders(slot) == []
    w.attach(w.started[1])
    w.after(2)
    assert w.orders(slot) == [("a", "drain")], "once"
    w.d.update(slot, RunUpdate(run_uid="a", state=ENDED, reason="DRAINED"))
    assert (w.told[-1].reason, w.run("b").state) == ("MOVED", RUNNING)
    again = w.running("a2")
    assert again is w.started[1]
    w.orders(again)
    w.d.update(again, rate("a2", 5000))
    w.after(30)
    assert w.orders(again) == []
    w.d.update(again, rate("a2", 10, records=1))
    w.after(59)
    assert w.orders(again) == []
    w.after(3)
    assert w.orders(again) == [("a2", "drain")]
    w.d.update(again, RunUpdate(run_uid="a2", state=ENDED, reason="DRAINED"))
    assert w.running("a3") is slot


def test_a_busy_run_alone_in_its_slot_stays() -> None:
    w = World(SlotLimits(1, 4, 4, busy_slots=1), busy=1000)
    w.d.greet(ME, w)
    slot = w.running("a")
    w.d.update(slot, rate("a", 5000))
    w.after(10)
    assert len(w.started) == 1
    assert ("a", "drain") not in w.orders(slot)


def test_usage_counts_ended_slots_until_the_worker_starts_anew() -> None:
    w = World(SlotLimits(1, 1, 4))
    w.d.greet(ME, w)
    slot = w.running("a")
    w.d.pool.beat(slot, SlotBeat(cpu_time=to_duration(7), memory_bytes=100))
    w.d.pool.detached(slot)
    w.end_job(slot.id, "")
    slot = w.running("b")
    w.d.pool.beat(slot, SlotBeat(cpu_time=to_duration(2), memory_bytes=50))
    usage = w.d.usage(ME)
    assert (usage.slots, from_duration(usage.cpu_time), usage.memory_bytes) == (1, 9, 50)
    w.d.greet(NEXT, w)
    assert from_duration(w.d.usage(NEXT).cpu_time) == 0


def test_slots_over_the_memory_bound_take_nothing_more_and_the_largest_starts_anew() -> None:
    w = World(SlotLimits(2, 2, 4))
    w.d.greet(ME, w, Bounds(memory_bytes=150 * MB, cpus=1))
    small, large = w.running("a"), w.running("b")
    w.d.pool.beat(small, SlotBeat(memory_bytes=90 * MB))
    w.d.pool.beat(large, SlotBeat(memory_bytes=95 * MB))
    w.ticket("c")
    assert (w.run("c").state, w.run("c").reason) == (PENDING, "MEMORY_BOUND")
    assert "hold 185 MiB, and may hold 150 MiB" in w.run("c").message
    w.after(1)
    assert (w.run("b").reason, w.run("a").state) == ("MEMORY_BOUND", RUNNING)
    assert (w.told[-1].retriable, large.state) == (True, SlotState.ENDING)
    assert [m.bounds.cpus for m in w.sent(small) if m.HasField("bounds")] == [0.5]
    w.end_job(large.id, "")
    assert w.run("c").slot == small.id, "there is no room for another slot"


def test_a_worker_without_bounds_is_not_bound(w: World) -> None:
    slot = w.running("a")
    w.d.pool.beat(slot, SlotBeat(memory_bytes=10_000 * MB, cpu_time=to_duration(50)))
    w.after(5)
    assert w.run("a").state == RUNNING
    assert not [m for m in w.sent(slot) if m.HasField("bounds")]


def test_a_part_has_a_slot_of_its_own_stays_there_and_its_end_is_told() -> None:
    w = World(SlotLimits(1, 4, 4, busy_slots=1), busy=1000)
    w.d.greet(ME, w)
    shared = w.running("a")
    ticket = StartTicket(run_uid="ab", worker_cluster="wc", worker_id=ME.worker, connector="c-a", bulk=Bulk(part=1))
    w.d.order(ME, RunOrder(run_uid="ab", start=ticket))
    own = w.d.pool.slots[w.run("ab").slot]
    assert own is not shared
    assert own.alone
    assert w.run("ab").part == 1
    w.attach(own)
    w.d.update(own, RunUpdate(run_uid="ab", state=RUNNING))
    w.after(70)  # calm for so long that a busy task would be put back
    assert (w.orders(own), own.runs) == ([("ab", "start")], {"ab"})
    before = len(w.told)
    for _ in range(2):
        w.d.update(own, RunUpdate(run_uid="ab", state=RUNNING, caught_up=True))
    assert [(u.run_uid, u.caught_up) for u in w.told[before:]] == [("ab", True)]


def test_a_task_that_is_split_stays_where_it_is() -> None:
    w = World(SlotLimits(1, 4, 4, busy_slots=1), busy=1000)
    w.d.greet(ME, w)
    slot = w.running("a")
    w.running("b")
    for _ in range(10):
        w.d.update(slot, RunUpdate(run_uid="a", state=RUNNING, parts=[BulkPart()], progress=rate("a", 5000).progress))
        w.after(1)
    assert len(w.started) == 1, "no slot to move to"
    assert [u for u in w.told if u.run_uid == "a"][-1].parts == [BulkPart()]

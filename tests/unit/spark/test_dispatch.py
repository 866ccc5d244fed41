"""What an event of a worker, a slot or the clock does to the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.api.copy.v1.run_order_pb2 import BulkPart, Cut, Drain, RunOrder, RunUpdate
from keelman.api.copy.v1.slot_service_pb2 import AttachRequest, AttachResponse, SlotBeat, SlotGreeting
from keelman.api.copy.v1.ticket_pb2 import Bulk, Confirmation, StartTicket
from keelman.api.copy.v1.ticket_pb2 import Limits as TicketLimits
from keelman.api.copy.v1.worker_link_service_pb2 import Bounds
from keelman.model.errors import Conflict, DeadlineExceeded, Unauthenticated
from keelman.rpc.times import from_duration, to_duration
from keelman.spark import attach
from keelman.spark.attach import SlotApi
from keelman.spark.copy_runs.runs import Owner
from keelman.spark.data_sets.reads import PartRequest
from keelman.spark.dispatch import Dispatcher
from keelman.spark.slots.choice import Limits, Slot, SlotState
from keelman.spark.slots.mailbox import Mailbox
from keelman.spark.slots.pool import ENDING_SECONDS, Times

PENDING, RUNNING = states.COPY_RUN_STATE_PENDING, states.COPY_RUN_STATE_RUNNING
ENDED, FAILED = states.COPY_RUN_STATE_ENDED, states.COPY_RUN_STATE_FAILED
MB = 1 << 20
ME, NEXT, OTHER = Owner("wc", "me:1", "1"), Owner("wc", "me:1", "2"), Owner("wc", "other:1", "1")


@dataclass
class World:
    """A dispatcher with a clock to turn, and a record of what it did."""

    limits: Limits = field(default_factory=lambda: Limits(1, 2, 2))
    busy: float = 0.0
    now: float = 1000.0
    ends: dict[int, str] = field(default_factory=dict)
    started: list[Slot] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    told: list[RunUpdate] = field(default_factory=list)
    mail: dict[str, Mailbox] = field(default_factory=dict)

    def __post_init__(self) -> None:
        times = Times(lease=3, beat=5, slot_idle=60, slot_start=30)
        self.d = Dispatcher(
            self,
            self.limits,
            times,
            busy_bytes_per_second=self.busy,
            unfit=lambda ticket: "",
            look_at=lambda task, data, done: None,
            end_of=lambda pid: self.ends.get(pid, ""),
            clock=lambda: self.now,
        )

    def start(self, slot: Slot, data: PartRequest | None, on_end: Callable[[str, str], None]) -> None:
        self.end_job = on_end
        self.started.append(slot)
        self.tokens[slot.id] = slot.token

    def cancel(self, slot_id: str) -> None:
        self.cancelled.append(slot_id)

    def put(self, update: RunUpdate) -> None:
        self.told.append(update)

    def ticket(self, uid: str, owner: Owner = ME, plugin: str = "") -> None:
        ticket = StartTicket(run_uid=uid, worker_cluster="wc", worker_id=owner.worker, connector=f"c-{uid[:1]}")
        ticket.plugin.folder = plugin
        self.d.order(owner, RunOrder(run_uid=uid, start=ticket))

    def attach(self, slot: Slot) -> None:
        _, self.mail[slot.id] = self.d.attach(SlotGreeting(slot=slot.id, token=self.tokens[slot.id], pid=1))

    def running(self, uid: str, owner: Owner = ME) -> Slot:
        self.ticket(uid, owner)
        slot = self.d.slots[self.run(uid).slot]
        if slot.state is SlotState.STARTING:
            self.attach(slot)
        self.d.update(slot, RunUpdate(run_uid=uid, state=RUNNING))
        return slot

    def run(self, uid: str) -> states.CopyRun:
        found = self.d.book.get(uid)
        assert found is not None
        return found.copy_run

    def sent(self, slot: Slot) -> list[AttachResponse]:
        queue = self.mail[slot.id].queue
        return [queue.get_nowait() for _ in range(queue.qsize())]

    def orders(self, slot: Slot) -> list[tuple[str, str | None]]:
        return [(m.order.run_uid, m.order.WhichOneof("order")) for m in self.sent(slot) if m.HasField("order")]

    def after(self, seconds: float, *, beats: bool = True, renew: bool = True) -> None:
        """Turns the clock in small steps, with or without signs of life."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 0.5)
            for slot in list(self.d.slots.values()) if beats else ():
                if slot.state is SlotState.ATTACHED:
                    self.d.beat(slot, SlotBeat(cpu_time=to_duration(slot.cpu_seconds), memory_bytes=slot.memory_bytes))
            for owner in list(self.d.leases) if renew else ():
                self.d.leases.renew(owner)
            self.d.tick()


@pytest.fixture
def w() -> World:
    made = World()
    made.d.greet(ME, made)
    return made


def test_a_ticket_starts_a_slot_and_reaches_it_when_it_attaches(w: World) -> None:
    w.ticket("a")
    assert (w.run("a").state, w.run("a").message) == (PENDING, "its slot starts")
    w.attach(w.started[0])
    assert w.orders(w.started[0]) == [("a", "start")]
    record = w.d.book.get("a")
    assert record is not None
    assert not record.waiting, "the ticket's secrets are gone once it is passed on"
    w.d.order(ME, RunOrder(run_uid="a", confirm=Confirmation()))
    assert w.orders(w.started[0]) == [("a", "confirm")]


def test_a_token_serves_once(w: World) -> None:
    w.ticket("a")
    slot = w.started[0]
    with pytest.raises(Unauthenticated):
        w.d.attach(SlotGreeting(slot=slot.id, token="x"))
    w.attach(slot)
    for token in (w.tokens[slot.id], ""):
        with pytest.raises(Unauthenticated):
            w.d.attach(SlotGreeting(slot=slot.id, token=token))


def test_a_run_without_a_place_says_why_and_starts_when_one_frees(w: World) -> None:
    slot = w.running("a")
    w.running("b")
    w.ticket("c")
    assert (w.run("c").state, w.run("c").reason) == (PENDING, "NO_FREE_SLOT")
    assert "runs_per_slot" in w.run("c").message
    w.orders(slot)
    w.d.update(slot, RunUpdate(run_uid="a", state=ENDED))
    assert w.orders(slot) == [("c", "start")]
    assert w.run("c").reason == ""


def test_a_lost_slot_fails_its_runs_and_frees_its_place_only_when_its_job_ended() -> None:
    w = World(Limits(1, 2, 1))
    w.d.greet(ME, w)
    slot = w.running("a")
    w.d.detached(slot)
    lost = w.told[-1]
    assert (lost.run_uid, lost.state, lost.reason, lost.retriable) == ("a", FAILED, "SLOT_LOST", True)
    assert w.cancelled == [slot.id]
    w.ticket("b")
    assert (w.run("b").reason, len(w.started)) == ("NO_FREE_SLOT", 1)
    w.end_job(slot.id, "killed")
    assert len(w.started) == 2


def test_a_slot_whose_process_died_is_lost_with_what_its_reaper_left() -> None:
    for lose in (lambda w, slot: w.d.detached(slot), lambda w, slot: w.end_job(slot.id, "Python worker crashed")):
        w = World(Limits(1, 2, 1), ends={77: "exited with code 9 in SeaReader.read"})
        w.d.greet(ME, w)
        slot = w.running("a")
        slot.pid = 77
        lose(w, slot)
        assert w.run("a").message == f"slot {slot.id} was lost: its process exited with code 9 in SeaReader.read"


def test_a_job_that_ends_under_an_attached_slot_loses_it(w: World) -> None:
    slot = w.running("a")
    w.end_job(slot.id, "Python worker exited unexpectedly")
    assert w.run("a").reason == "SLOT_LOST"
    assert "exited unexpectedly" in w.run("a").message
    assert not w.d.slots


def test_missing_beats_lose_a_slot(w: World) -> None:
    slot = w.running("a")
    w.after(4.5, beats=False)
    assert w.run("a").state == RUNNING
    w.after(1, beats=False)
    assert (w.run("a").reason, w.cancelled) == ("SLOT_LOST", [slot.id])


def test_an_announced_standstill_is_no_missing_beat_until_it_is_over(w: World) -> None:
    slot = w.running("a")
    w.d.beat(slot, SlotBeat(standstill=to_duration(20)))
    w.after(24, beats=False)
    assert w.run("a").state == RUNNING
    w.after(1.5, beats=False)
    assert w.run("a").reason == "SLOT_LOST"
    assert "it was starting a Java virtual machine" in w.run("a").message


def test_a_standstill_ends_with_the_next_beat_and_is_never_longer_than_a_start(w: World) -> None:
    slot = w.running("a")
    w.d.beat(slot, SlotBeat(standstill=to_duration(20)))
    w.d.beat(slot, SlotBeat())
    w.after(5.5, beats=False)
    assert w.run("a").reason == "SLOT_LOST"
    slot = w.running("b")
    w.d.beat(slot, SlotBeat(standstill=to_duration(3600)))
    w.after(30 + 5.5, beats=False)
    assert w.run("b").reason == "SLOT_LOST"


def test_a_service_that_was_not_awake_does_not_blame_its_slots(w: World) -> None:
    w.running("a")
    w.now += 20
    w.d.leases.renew(ME)
    w.d.tick()
    assert w.run("a").state == RUNNING
    w.after(5.5, beats=False)
    assert w.run("a").reason == "SLOT_LOST"


def test_a_silent_run_recycles_its_slot_with_all_its_runs(w: World) -> None:
    slot = w.running("a")
    w.running("b")
    w.d.beat(slot, SlotBeat(silent_runs=["b"]))
    assert [w.run(u).reason for u in "ab"] == ["SLOT_LOST"] * 2
    assert w.cancelled == [slot.id]


def test_a_silent_run_of_the_past_recycles_nothing(w: World) -> None:
    slot = w.running("a")
    w.d.beat(slot, SlotBeat(silent_runs=["gone"]))
    assert w.run("a").state == RUNNING


def test_slots_have_the_routes_of_their_worker_alone(w: World) -> None:
    w.d.greet(OTHER, w, routes={"db.example": "10.0.0.7"})
    first, second = w.running("a"), w.running("b", OTHER)
    assert (dict(first.routes), dict(second.routes)) == ({}, {"db.example": "10.0.0.7"})


def test_slots_speak_of_their_own_runs_only(w: World) -> None:
    w.running("a")
    w.d.greet(OTHER, w)
    other = w.running("b", OTHER)
    w.d.update(other, RunUpdate(run_uid="a", state=FAILED))
    assert w.run("a").state == RUNNING


def test_a_failed_start_keeps_the_run_backs_off_and_tries_again(w: World) -> None:
    w.ticket("a")
    w.end_job(w.started[0].id, "ModuleNotFoundError: no keelman")
    assert (w.run("a").state, w.run("a").reason, w.run("a").slot) == (PENDING, "SLOT_START_FAILED", "")
    assert "no keelman" in w.run("a").message
    assert len(w.started) == 1
    w.after(1)
    assert len(w.started) == 2
    w.attach(w.started[1])
    assert w.orders(w.started[1]) == [("a", "start")]


def test_the_back_off_grows(w: World) -> None:
    w.ticket("a")
    waits = []
    for tries in range(1, 9):
        begun = w.now
        w.end_job(w.started[-1].id, "broken")
        while len(w.started) == tries:
            w.after(0.5)
        waits.append(w.now - begun)
    assert waits[0] <= 1
    assert 10 < waits[-1] <= 31


def test_a_slot_that_never_calls_home_has_failed(w: World) -> None:
    w.ticket("a")
    w.after(31)
    assert w.cancelled[0] == w.started[0].id
    assert w.run("a").state == PENDING


def test_a_lapsed_lease_fails_runs_and_ends_slots(w: World) -> None:
    slot = w.running("a")
    w.after(2.5, renew=False)
    assert w.run("a").state == RUNNING
    w.after(1, renew=False)
    assert (w.run("a").state, w.run("a").reason) == (FAILED, "LEASE_LAPSED")
    assert any(m.HasField("end") for m in w.sent(slot))
    assert not w.cancelled, "it may end by itself first"
    w.after(ENDING_SECONDS + 1, renew=False)
    assert w.cancelled == [slot.id]
    w.ticket("b")
    assert (w.told[-1].run_uid, w.told[-1].reason) == ("b", "LEASE_LAPSED")
    w.d.leases.renew(ME)
    w.ticket("c")
    assert w.run("c").state == PENDING


def test_time_in_which_the_service_was_not_awake_lapses_no_lease_and_then_counts_again(w: World) -> None:
    w.running("a")
    w.after(2, renew=False)
    w.now += 60
    w.d.tick()
    assert w.run("a").state == RUNNING, "what its worker said meanwhile is not read yet"
    w.after(1.5, renew=False)
    assert w.run("a").reason == "LEASE_LAPSED"


def test_a_lease_renewed_as_the_service_wakes_is_no_longer_than_any(w: World) -> None:
    w.running("a")
    w.now += 60
    w.d.leases.renew(ME)
    w.d.tick()
    w.after(3.5, renew=False)
    assert w.run("a").reason == "LEASE_LAPSED"


def test_a_lease_outlives_its_link_but_not_for_longer_than_its_time(w: World) -> None:
    w.running("a")
    w.d.leases.unlink(ME, w)
    w.after(2, renew=False)
    assert w.run("a").state == RUNNING
    w.after(2, renew=False)
    assert w.run("a").reason == "LEASE_LAPSED"
    assert not w.d.leases


def test_a_new_link_of_the_same_incarnation_takes_over(w: World) -> None:
    w.running("a")
    new = World()
    assert w.d.greet(ME, new) == []
    assert [u.run_uid for u in w.d.present(ME)] == ["a"]
    assert not w.d.leases.holds(ME, w)
    w.d.leases.unlink(ME, w)
    assert w.d.leases.holds(ME, new), "the old link's end takes nothing from the new one"


def test_a_new_incarnation_cuts_the_old_one_which_may_not_come_back(w: World) -> None:
    slot = w.running("a")
    assert w.d.greet(NEXT, w) == [ME]
    assert w.run("a").reason == "SUPERSEDED"
    assert any(m.HasField("end") for m in w.sent(slot))
    assert not w.d.leases.renew(ME)
    with pytest.raises(Conflict):
        w.d.greet(ME, w)


@pytest.mark.parametrize(
    ("order", "reason"),
    [(RunOrder(cut=Cut(reason="WITHDRAWN")), "WITHDRAWN"), (RunOrder(drain=Drain()), "DRAINED")],
)
def test_a_run_without_a_slot_ends_on_the_spot(w: World, order: RunOrder, reason: str) -> None:
    w.ticket("a")
    order.run_uid = "a"
    w.d.order(ME, order)
    assert (w.run("a").state, w.run("a").reason) == (ENDED, reason)
    w.attach(w.started[0])
    assert w.orders(w.started[0]) == []


def test_the_same_ticket_twice_is_one_run(w: World) -> None:
    w.running("a")
    w.ticket("a")
    assert w.told[-1].state == RUNNING
    assert len(w.d.book) == 1


def test_orders_for_runs_of_another_worker_are_refused(w: World) -> None:
    slot = w.running("a")
    w.orders(slot)
    w.d.greet(OTHER, w)
    w.d.order(OTHER, RunOrder(run_uid="a", drain=Drain()))
    assert (w.told[-1].reason, w.run("a").state) == ("UNKNOWN_RUN", RUNNING)
    assert w.orders(slot) == []


def test_an_idle_slot_is_kept_warm_for_a_while(w: World) -> None:
    slot = w.running("a")
    w.d.update(slot, RunUpdate(run_uid="a", state=ENDED))
    w.after(59)
    assert slot.state is SlotState.ATTACHED
    w.after(2)
    assert slot.state is SlotState.ENDING


def test_an_idle_slot_of_another_worker_makes_room() -> None:
    w = World(Limits(1, 2, 1))
    w.d.greet(ME, w)
    w.d.greet(OTHER, w)
    slot = w.running("a")
    w.d.update(slot, RunUpdate(run_uid="a", state=ENDED))
    w.ticket("b", OTHER)
    assert (w.run("b").reason, slot.state) == ("NO_FREE_SLOT", SlotState.ENDING)
    w.end_job(slot.id, "")
    assert w.started[-1].owner == OTHER


def test_draining_refuses_tickets_and_drains_what_runs(w: World) -> None:
    slot = w.running("a")
    w.orders(slot)
    w.d.drain()
    assert w.orders(slot) == [("a", "drain")]
    w.ticket("b")
    assert (w.told[-1].reason, w.told[-1].retriable) == ("STOPPING", True)


def test_topics_add_up_over_updates(w: World) -> None:
    slot = w.running("a")
    w.d.update(slot, RunUpdate(run_uid="a", state=RUNNING, reason="x", topics=["t1"]))
    w.d.update(slot, RunUpdate(run_uid="a", state=RUNNING, reason="y", topics=["t2"]))
    assert list(w.told[-1].topics) == ["t1", "t2"]


def rate(uid: str, bytes_per_second: float, records: int = 0) -> RunUpdate:
    update = RunUpdate(run_uid=uid, state=RUNNING)
    update.progress.bytes_per_second, update.progress.records = bytes_per_second, records
    return update


def test_what_a_task_waits_for_is_told_and_told_again_when_it_is_over(w: World) -> None:
    slot = w.running("a")
    before = len(w.told)
    for path in ("", "/f", "/f", ""):
        update = RunUpdate(run_uid="a", state=RUNNING)
        if path:
            update.watch.file.path = path
        w.d.update(slot, update)
    assert [u.watch.file.path for u in w.told[before:]] == ["/f", ""]
    update = RunUpdate(run_uid="a", state=RUNNING)
    update.watch.file.path = "/f"
    w.d.update(slot, update)
    assert w.d.present(ME)[0].watch.file.path == "/f", "a new link hears of it"
    w.d.update(slot, RunUpdate(run_uid="a", state=ENDED))
    record = w.d.book.get("a")
    assert record is not None
    assert not record.last.HasField("watch"), "it carries secrets"


def test_orders_before_there_is_a_slot_come_after_the_ticket_in_their_order(w: World) -> None:
    w.ticket("a")
    w.d.order(ME, RunOrder(run_uid="a", limits=TicketLimits(records_per_second=5)))
    w.d.order(ME, RunOrder(run_uid="a", confirm=Confirmation()))
    w.attach(w.started[0])
    assert w.orders(w.started[0]) == [("a", "start"), ("a", "limits"), ("a", "confirm")]
    w.d.order(ME, RunOrder(run_uid="a", limits=TicketLimits()))
    assert w.orders(w.started[0]) == [("a", "limits")]


def test_a_slot_is_ready_before_the_first_ticket_and_stays_so() -> None:
    w = World(Limits(2, 2, 3, warm=True))
    w.d.greet(ME, w)
    assert len(w.started) == 1
    w.attach(w.started[0])
    w.ticket("a")
    assert w.orders(w.started[0]) == [("a", "start")], "no wait for a slot"
    w.attach(w.started[1])
    w.after(200)
    assert [s.state for s in w.started] == [SlotState.ATTACHED] * 2
    w.d.detached(w.started[1])
    w.end_job(w.started[1].id, "killed")
    assert len(w.started) == 3
    w.d.drain()
    w.end_job(w.started[2].id, "")
    w.after(2)
    assert len(w.started) == 3, "none is made ready while the service stops"


def test_of_many_idle_workers_those_that_copied_last_have_a_slot_ready() -> None:
    w = World(Limits(1, 2, 20, warm=True, max_warm=2))
    owners = [Owner("wc", f"w{n}:1", "1") for n in range(4)]
    for owner in owners:
        w.d.greet(owner, w)
    assert len(w.started) == 2, "no more are started ahead"
    for owner in owners:
        w.now += 1
        slot = w.running(owner.worker[1], owner)
        w.d.update(slot, RunUpdate(run_uid=owner.worker[1], state=ENDED))
    w.after(90)
    kept = {slot.owner for slot in w.d.slots.values() if slot.usable}
    assert kept == set(owners[-2:])
    w.ticket("9", owners[0])
    assert w.started[-1].owner == owners[0], "who copies again has one as before"


def test_a_plugin_has_its_own_slot_and_its_own_problems() -> None:
    w = World(Limits(2, 2, 3))
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
    w = World(Limits(1, 4, 4, busy_slots=1), busy=1000)
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


@pytest.mark.parametrize("waits_for", ["waits for the file /in", ""])
def test_a_run_that_is_parked_says_so_and_what_its_task_waits_for(w: World, waits_for: str) -> None:
    slot = w.running("a")
    w.d.update(slot, RunUpdate(run_uid="a", state=RUNNING, message=waits_for))
    w.d.order(ME, RunOrder(run_uid="a", drain=Drain(parked=True)))
    w.d.update(slot, RunUpdate(run_uid="a", state=states.COPY_RUN_STATE_DRAINING))
    w.d.update(slot, RunUpdate(run_uid="a", state=ENDED, reason="DRAINED"))
    wanted = waits_for or "waits outside a slot for more to copy"
    assert (w.run("a").reason, w.run("a").message, w.told[-1].reason) == ("PARKED", wanted, "PARKED")


def test_a_busy_run_alone_in_its_slot_stays() -> None:
    w = World(Limits(1, 4, 4, busy_slots=1), busy=1000)
    w.d.greet(ME, w)
    slot = w.running("a")
    w.d.update(slot, rate("a", 5000))
    w.after(10)
    assert len(w.started) == 1
    assert ("a", "drain") not in w.orders(slot)


def test_usage_counts_ended_slots_until_the_worker_starts_anew() -> None:
    w = World(Limits(1, 1, 4))
    w.d.greet(ME, w)
    slot = w.running("a")
    w.d.beat(slot, SlotBeat(cpu_time=to_duration(7), memory_bytes=100))
    w.d.detached(slot)
    w.end_job(slot.id, "")
    slot = w.running("b")
    w.d.beat(slot, SlotBeat(cpu_time=to_duration(2), memory_bytes=50))
    usage = w.d.usage(ME)
    assert (usage.slots, from_duration(usage.cpu_time), usage.memory_bytes) == (1, 9, 50)
    w.d.greet(NEXT, w)
    assert from_duration(w.d.usage(NEXT).cpu_time) == 0


def test_slots_over_the_memory_bound_take_nothing_more_and_the_largest_starts_anew() -> None:
    w = World(Limits(2, 2, 4))
    w.d.greet(ME, w, Bounds(memory_bytes=150 * MB, cpus=1))
    small, large = w.running("a"), w.running("b")
    w.d.beat(small, SlotBeat(memory_bytes=90 * MB))
    w.d.beat(large, SlotBeat(memory_bytes=95 * MB))
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
    w.d.beat(slot, SlotBeat(memory_bytes=10_000 * MB, cpu_time=to_duration(50)))
    w.after(5)
    assert w.run("a").state == RUNNING
    assert not [m for m in w.sent(slot) if m.HasField("bounds")]


def test_levels_of_logging_reach_every_slot_of_their_worker_once(w: World) -> None:
    def told(slot: Slot) -> list[dict[str, str]]:
        return [dict(m.log_levels.levels) for m in w.sent(slot) if m.HasField("log_levels")]

    slot, levels = w.running("a"), {"keelman.engine": "DEBUG"}
    w.d.greet(OTHER, w)
    others = w.running("o", OTHER)
    for _ in range(2):
        w.d.log_levels(ME, {})
    assert told(slot) == []
    for _ in range(2):
        w.d.log_levels(ME, levels)
    assert (told(slot), told(others)) == ([levels], [])
    w.end_job(slot.id, "")
    assert w.run("a").state == FAILED
    w.d.log_levels(ME, levels)
    assert told(w.running("b")) == [levels], "one that comes later has them too"


async def test_a_stream_without_a_greeting_is_not_held_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent() -> AsyncIterator[AttachRequest]:
        await asyncio.Event().wait()
        yield AttachRequest()

    monkeypatch.setattr(attach, "GREETING_SECONDS", 0.01)
    async with asyncio.timeout(20):
        with pytest.raises(DeadlineExceeded, match="greet"):
            await SlotApi(World().d).Attach(silent(), cast("Any", None))


def test_a_part_has_a_slot_of_its_own_stays_there_and_its_end_is_told() -> None:
    w = World(Limits(1, 4, 4, busy_slots=1), busy=1000)
    w.d.greet(ME, w)
    shared = w.running("a")
    ticket = StartTicket(run_uid="ab", worker_cluster="wc", worker_id=ME.worker, connector="c-a", bulk=Bulk(part=1))
    w.d.order(ME, RunOrder(run_uid="ab", start=ticket))
    own = w.d.slots[w.run("ab").slot]
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
    w = World(Limits(1, 4, 4, busy_slots=1), busy=1000)
    w.d.greet(ME, w)
    slot = w.running("a")
    w.running("b")
    for _ in range(10):
        w.d.update(slot, RunUpdate(run_uid="a", state=RUNNING, parts=[BulkPart()], progress=rate("a", 5000).progress))
        w.after(1)
    assert len(w.started) == 1, "no slot to move to"
    assert [u for u in w.told if u.run_uid == "a"][-1].parts == [BulkPart()]

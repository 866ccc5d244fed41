"""The effects of orders and reports of runs: which reach a slot, which are refused, and which reach the worker."""

from __future__ import annotations

import pytest

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.api.copy.v1.run_order_pb2 import Cut, Drain, RunOrder, RunUpdate
from keelman.api.copy.v1.ticket_pb2 import Confirmation
from keelman.api.copy.v1.ticket_pb2 import Limits as TicketLimits
from keelman.spark.slots.choice import Slot
from support.worlds.dispatch import ENDED, FAILED, ME, OTHER, RUNNING, World


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
    assert w.d.present(ME)[0].watch.file.path == "/f", "a new link gets it"
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


@pytest.mark.parametrize("waits_for", ["waits for the file /in", ""])
def test_a_run_that_is_parked_says_so_and_what_its_task_waits_for(w: World, waits_for: str) -> None:
    slot = w.running("a")
    w.d.update(slot, RunUpdate(run_uid="a", state=RUNNING, message=waits_for))
    w.d.order(ME, RunOrder(run_uid="a", drain=Drain(parked=True)))
    w.d.update(slot, RunUpdate(run_uid="a", state=states.COPY_RUN_STATE_DRAINING))
    w.d.update(slot, RunUpdate(run_uid="a", state=ENDED, reason="DRAINED"))
    expected_waits_for = waits_for or "waits outside a slot for more to copy"
    assert (w.run("a").reason, w.run("a").message, w.told[-1].reason) == ("PARKED", expected_waits_for, "PARKED")


def test_levels_of_logging_reach_every_slot_of_their_worker_once(w: World) -> None:
    def told(slot: Slot) -> list[dict[str, str]]:
        return [dict(m.log_levels.levels) for m in w.sent(slot) if m.HasField("log_levels")]

    slot, levels = w.running("a"), {"keelman.engine": "DEBUG"}
    w.d.greet(OTHER, w)
    others = w.running("o", OTHER)
    for _ in range(2):
        w.d.pool.log_levels(ME, {})
    assert told(slot) == []
    for _ in range(2):
        w.d.pool.log_levels(ME, levels)
    assert (told(slot), told(others)) == ([levels], [])
    w.end_job(slot.id, "")
    assert w.run("a").state == FAILED
    w.d.pool.log_levels(ME, levels)
    assert told(w.running("b")) == [levels], "a later one has them too"

"""How slots start, report that they live, and are lost with their runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from keelman.api.copy.v1.run_order_pb2 import RunOrder, RunUpdate
from keelman.api.copy.v1.slot_service_pb2 import AttachRequest, SlotBeat, SlotGreeting
from keelman.api.copy.v1.ticket_pb2 import Confirmation
from keelman.model.errors import DeadlineExceeded, Unauthenticated
from keelman.rpc.times import to_duration
from keelman.spark import attach
from keelman.spark.attach import SlotApi
from keelman.spark.slots.choice import SlotLimits
from support.worlds.dispatch import ENDED, FAILED, ME, PENDING, RUNNING, World


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
    w = World(SlotLimits(1, 2, 1))
    w.d.greet(ME, w)
    slot = w.running("a")
    w.d.pool.detached(slot)
    lost = w.told[-1]
    assert (lost.run_uid, lost.state, lost.reason, lost.retriable) == ("a", FAILED, "SLOT_LOST", True)
    assert w.cancelled == [slot.id]
    w.ticket("b")
    assert (w.run("b").reason, len(w.started)) == ("NO_FREE_SLOT", 1)
    w.end_job(slot.id, "killed")
    assert len(w.started) == 2


def test_a_slot_whose_process_died_is_lost_with_what_its_reaper_left() -> None:
    for lose in (lambda w, slot: w.d.pool.detached(slot), lambda w, slot: w.end_job(slot.id, "Python worker crashed")):
        w = World(SlotLimits(1, 2, 1), ends={77: "exited with code 9 in SeaReader.read"})
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
    assert not w.d.pool.slots


def test_missing_beats_lose_a_slot(w: World) -> None:
    slot = w.running("a")
    w.after(4.5, beats=False)
    assert w.run("a").state == RUNNING
    w.after(1, beats=False)
    assert (w.run("a").reason, w.cancelled) == ("SLOT_LOST", [slot.id])


def test_an_announced_standstill_is_no_missing_beat_until_it_is_over(w: World) -> None:
    slot = w.running("a")
    w.d.pool.beat(slot, SlotBeat(standstill=to_duration(20)))
    w.after(24, beats=False)
    assert w.run("a").state == RUNNING
    w.after(1.5, beats=False)
    assert w.run("a").reason == "SLOT_LOST"
    assert "it was starting a Java virtual machine" in w.run("a").message


def test_a_standstill_ends_with_the_next_beat_and_is_never_longer_than_a_start(w: World) -> None:
    slot = w.running("a")
    w.d.pool.beat(slot, SlotBeat(standstill=to_duration(20)))
    w.d.pool.beat(slot, SlotBeat())
    w.after(5.5, beats=False)
    assert w.run("a").reason == "SLOT_LOST"
    slot = w.running("b")
    w.d.pool.beat(slot, SlotBeat(standstill=to_duration(3600)))
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
    w.d.pool.beat(slot, SlotBeat(silent_runs=["b"]))
    assert [w.run(u).reason for u in "ab"] == ["SLOT_LOST"] * 2
    assert w.cancelled == [slot.id]


def test_a_silent_run_of_the_past_recycles_nothing(w: World) -> None:
    slot = w.running("a")
    w.d.pool.beat(slot, SlotBeat(silent_runs=["gone"]))
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


async def test_a_stream_without_a_greeting_is_not_held_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent() -> AsyncIterator[AttachRequest]:
        await asyncio.Event().wait()
        yield AttachRequest()

    monkeypatch.setattr(attach, "GREETING_SECONDS", 0.01)
    async with asyncio.timeout(20):
        with pytest.raises(DeadlineExceeded, match="greet"):
            await SlotApi(World().d).Attach(silent(), cast("Any", None))


def test_a_copy_run_tells_the_host_of_its_slot(w: World) -> None:
    w.ticket("a")
    assert w.run("a").host == ""
    w.running("a")
    assert w.run("a").host == "h"

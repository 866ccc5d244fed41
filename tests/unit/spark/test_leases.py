"""How long a worker may run its copy runs: leases, links, and incarnations that take over."""

from __future__ import annotations

import pytest

from keelman.model.errors import Conflict
from keelman.spark.slots.pool import ENDING_SECONDS
from support.worlds.dispatch import FAILED, ME, NEXT, PENDING, RUNNING, World


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
    assert w.run("a").state == RUNNING, "the messages that its worker sent meanwhile are not read yet"
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

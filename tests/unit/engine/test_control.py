"""Orders to a copy run, and the right to go on."""

import time

import pytest

from keelman.engine.control import Control, CutShort


def test_a_run_that_may_not_copy_any_more_is_cut_at_its_next_beat():
    allowed = True
    control = Control(lambda: allowed)
    control.beat()
    allowed = False
    with pytest.raises(CutShort) as cut:
        control.beat()
    assert cut.value.reason == "HOME_LOST"


def test_the_right_lost_once_stays_lost():
    answers = iter([False, True, True])
    control = Control(lambda: next(answers))
    for _ in range(2):
        with pytest.raises(CutShort, match="HOME_LOST"):
            control.beat()


def test_the_first_reason_of_a_cut_stays():
    control = Control()
    control.cut("WITHDRAWN")
    control.cut("LEASE_LAPSED")
    with pytest.raises(CutShort, match="WITHDRAWN"):
        control.wait(60)


def test_draining_ends_the_wait_for_a_confirmation():
    control = Control()
    control.drain()
    assert control.await_confirmation() is None


def test_a_run_that_begins_may_be_silent_until_it_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    control = Control()
    control.excuse(60)
    control.beat()
    now += 61
    assert control.silent_seconds() == 1, "a beat does not end it"
    control.begun()
    assert control.silent_seconds() == 61
    control.beat()
    assert control.silent_seconds() == 0

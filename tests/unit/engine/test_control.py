"""Orders to a copy run, and its right to continue."""

import time

import pytest

from keelman.api.copy.v1.run_order_pb2 import Cut, RunOrder
from keelman.api.copy.v1.write_job_pb2 import WriteDone
from keelman.engine.control import Control, CutShort
from support.copying.orders import CONFIRM, DRAIN, limit_to


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
    control.apply(DRAIN)
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


def test_each_order_changes_its_part_and_wakes_the_run() -> None:
    control = Control()
    control.apply(CONFIRM)
    assert control.await_confirmation() == CONFIRM.confirm
    assert not control.whole
    control.apply(CONFIRM)
    assert control.whole
    control.apply(limit_to(records=10))
    control.wait(60)
    assert control.pace.most_records == 1
    control.apply(RunOrder(written=WriteDone(number=3)))
    assert control.await_written(3, 60)
    control.wait(60)
    control.apply(RunOrder(cut=Cut(reason="WITHDRAWN")))
    with pytest.raises(CutShort, match="WITHDRAWN"):
        control.beat()

"""How long a member may keep its work while its group's coordinator does not answer."""

import pytest

from keelman.worker.group.session_clock import CUT_SECONDS, LIVELY_SECONDS, SOON_SECONDS, SessionClock
from keelman.worker.intervals import LEASE_SECONDS
from keelman.worker.tasks.link import RENEW_SECONDS


class Clock:
    """A clock that the test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("session", [6.0, 10.0, 45.0])
def test_no_lease_outlasts_the_session_whenever_the_last_renewal_was(session: float) -> None:
    clock = Clock()
    pulse = SessionClock(session=session, interval=1.0, clock=clock)
    sent = clock.now
    clock.now += 0.5  # the answer took so long
    pulse.answered(sent)
    last, cut = clock.now, 0.0
    while not cut:
        pulse.unanswered()
        assert not pulse.fresh, "no ticket and nothing written without an answer"
        assert pulse.patience_seconds <= max(0.2, sent + session - CUT_SECONDS - clock.now)
        last = clock.now if pulse.lasts else last
        cut = clock.now if pulse.over else 0.0
        clock.now += 0.01
    assert last + LEASE_SECONDS <= sent + session
    assert last + RENEW_SECONDS + 0.1 >= sent + session - LEASE_SECONDS, "and not much sooner than it has to be"
    assert sent + session - CUT_SECONDS <= cut <= sent + session - CUT_SECONDS + 0.1


def test_one_that_is_answered_again_in_time_has_lost_nothing() -> None:
    clock = Clock()
    pulse = SessionClock(session=6.0, interval=1.0, clock=clock)
    pulse.answered(clock.now)
    clock.now += 4.5
    pulse.unanswered()
    assert (pulse.fresh, pulse.lasts, pulse.over) == (False, False, False)
    pulse.answered(clock.now)
    assert pulse.fresh
    assert pulse.lasts


def test_an_answer_to_what_was_sent_a_session_ago_gives_no_right() -> None:
    clock = Clock()
    pulse = SessionClock(session=6.0, interval=1.0, clock=clock)
    sent = clock.now
    clock.now += 20.0  # it was frozen
    pulse.answered(sent)
    assert pulse.over
    assert not pulse.fresh
    assert not pulse.lasts


def test_who_was_never_placed_has_no_right() -> None:
    pulse = SessionClock(session=6.0, interval=1.0, clock=Clock())
    assert pulse.over
    assert (pulse.fresh, pulse.lasts) == (False, False)


def test_a_round_is_soon_heard_of_after_another() -> None:
    clock = Clock()
    pulse = SessionClock(session=6.0, interval=1.0, clock=clock)
    pulse.answered(clock.now)
    assert pulse.pause_seconds == 1.0
    pulse.placed()
    assert pulse.pause_seconds == SOON_SECONDS
    clock.now += LIVELY_SECONDS
    assert pulse.pause_seconds == 1.0

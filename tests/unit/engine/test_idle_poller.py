import pytest

from keelman.engine.control import Control, CutShort
from keelman.engine.idle_poller import IdlePoller, Waiter


class Bell:
    def __init__(self):
        self.rings = 0

    def __call__(self):
        self.rings += 1


def broken():
    raise OSError("gone")


@pytest.mark.parametrize("has_data", [lambda: True, lambda: None, broken], ids=["seen", "cannot tell", "failed"])
def test_a_loop_is_rung_once_when_it_should_look_itself(has_data):
    poller, bell = IdlePoller(), Bell()
    poller._started = True  # no thread: the test polls
    poller.enter(Waiter(has_data, bell, quiet=False))
    assert not poller.look(quiet_too=True)
    assert not poller.look(quiet_too=True)
    assert bell.rings == 1


def test_nothing_seen_rings_nobody_and_the_quiet_are_looked_at_less_often():
    poller, bell, quiet_bell = IdlePoller(), Bell(), Bell()
    poller._started = True
    lively, quiet = Waiter(lambda: False, bell, quiet=False), Waiter(lambda: True, quiet_bell, quiet=True)
    poller.enter(lively)
    poller.enter(quiet)
    assert poller.look(quiet_too=False)
    assert (bell.rings, quiet_bell.rings) == (0, 0)
    assert poller.look(quiet_too=True)
    assert (bell.rings, quiet_bell.rings) == (0, 1)
    poller.leave(lively)
    assert not poller.look(quiet_too=True)


@pytest.mark.parametrize("quiet", [False, True])
def test_the_thread_looks_while_a_loop_waits_and_again_for_the_next(quiet):
    poller = IdlePoller()
    for _ in range(2):
        answers = [True, False, False]
        for _ in range(20):  # a wait ends by itself after a while, too
            poller.wait(Control(), lambda answers=answers: answers.pop() if answers else False, quiet=quiet)
            if not answers:
                break
        assert not answers


def test_a_cut_ends_the_wait():
    control = Control()
    control.cut("END")
    with pytest.raises(CutShort):
        IdlePoller().wait(control, lambda: False, quiet=False)

import pytest

from keelman.engine.control import Control, CutShort
from keelman.engine.lookout import Lookout, Waiter


class Bell:
    def __init__(self):
        self.rings = 0

    def __call__(self):
        self.rings += 1


def broken():
    raise OSError("gone")


@pytest.mark.parametrize("glance", [lambda: True, lambda: None, broken], ids=["seen", "cannot tell", "failed"])
def test_a_loop_is_rung_once_when_it_should_look_itself(glance):
    lookout, bell = Lookout(), Bell()
    lookout._started = True  # no thread: the test looks
    lookout.enter(Waiter(glance, bell, quiet=False))
    assert not lookout.look(quiet_too=True)
    assert not lookout.look(quiet_too=True)
    assert bell.rings == 1


def test_nothing_seen_rings_nobody_and_the_quiet_are_looked_at_less_often():
    lookout, bell, quiet_bell = Lookout(), Bell(), Bell()
    lookout._started = True
    lively, quiet = Waiter(lambda: False, bell, quiet=False), Waiter(lambda: True, quiet_bell, quiet=True)
    lookout.enter(lively)
    lookout.enter(quiet)
    assert lookout.look(quiet_too=False)
    assert (bell.rings, quiet_bell.rings) == (0, 0)
    assert lookout.look(quiet_too=True)
    assert (bell.rings, quiet_bell.rings) == (0, 1)
    lookout.leave(lively)
    assert not lookout.look(quiet_too=True)


@pytest.mark.parametrize("quiet", [False, True])
def test_the_thread_looks_while_a_loop_waits_and_again_for_the_next(quiet):
    lookout = Lookout()
    for _ in range(2):
        answers = [True, False, False]
        for _ in range(20):  # a wait ends by itself after a while, too
            lookout.wait(Control(), lambda answers=answers: answers.pop() if answers else False, quiet=quiet)
            if not answers:
                break
        assert not answers


def test_a_cut_ends_the_wait():
    control = Control()
    control.cut("END")
    with pytest.raises(CutShort):
        Lookout().wait(control, lambda: False, quiet=False)

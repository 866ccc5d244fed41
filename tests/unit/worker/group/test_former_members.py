"""Whether members of another kind in a worker's group may be dead: which, for how long, and what proves them alive."""

import pytest

from keelman.worker.group.former_members import FormerMembers

TWO = ("a", "b")


@pytest.mark.parametrize(
    ("members", "state", "seconds", "may_lapse"),
    [
        (TWO, "Stable", 14.9, True),
        (TWO, "Stable", 15.0, False),  # Java's session time-out and the margin are over
        (("b",), "Stable", 14.9, True),  # one member has lapsed
        (("b",), "Stable", 15.0, False),
        ((*TWO, "c"), "Stable", 0.1, False),  # a dead member does not join
        (("a", "c"), "Stable", 0.1, False),
        (TWO, "PreparingRebalance", 74.9, True),  # a round may wait for the dead
        (TWO, "PreparingRebalance", 75.0, False),
    ],
)
def test_members_are_alive_once_they_outlast_a_session_or_another_joins(
    members: tuple[str, ...], state: str, seconds: float, *, may_lapse: bool
) -> None:
    former = FormerMembers(session=6.0, rebalance=60.0)
    assert former.may_lapse(TWO, "Stable", 100.0)
    assert former.may_lapse(members, state, 100.0 + seconds) is may_lapse


def test_a_longer_session_of_the_workers_own_properties_is_waited_for() -> None:
    former = FormerMembers(session=30.0, rebalance=60.0)
    assert former.may_lapse(TWO, "Stable", 0.0)
    assert former.may_lapse(TWO, "Stable", 34.9)
    assert not former.may_lapse(TWO, "Stable", 35.0)


def test_those_that_come_later_are_new_ones() -> None:
    former = FormerMembers(session=6.0, rebalance=60.0)
    assert former.may_lapse(TWO, "Stable", 0.0)
    former.forget()
    assert former.may_lapse(("c",), "Stable", 100.0)
    assert former.may_lapse(("c",), "Stable", 114.0)

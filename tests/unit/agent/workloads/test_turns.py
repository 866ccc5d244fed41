"""Workers of a node start a few at a time, in the order of their requests."""

from __future__ import annotations

from keelman.agent.workloads.turns import TURN_SECONDS, StartTurns


class Node:
    """Workers that request turns, and the workers that were woken."""

    def __init__(self, most: int) -> None:
        self.turns = StartTurns(most)
        self.woken: list[str] = []

    def take(self, name: str, now: float = 0.0) -> float | None:
        return self.turns.take(name, now, lambda: self.woken.append(name))


def test_so_many_start_at_once_and_the_next_when_one_is_ready() -> None:
    node = Node(2)
    assert [node.take(name, 1.0) for name in "abcd"] == [None, None, 1.0 + TURN_SECONDS, 1.0 + TURN_SECONDS]
    node.turns.give_back("b")
    assert node.woken == ["c"]
    assert node.take("d", 2.0) is not None, "c has requested its turn before it"
    assert node.take("c", 2.0) is None
    node.turns.give_back("a")
    assert node.woken == ["c", "d"]
    assert node.take("d", 3.0) is None


def test_one_that_is_not_to_start_any_more_lets_the_next_go_first() -> None:
    node = Node(1)
    assert node.take("a") is None
    assert node.take("b") is not None
    assert node.take("c") is not None
    node.turns.give_back("b")
    node.turns.give_back("a")
    assert node.woken == ["c"]
    assert node.take("c") is None
    node.turns.give_back("nobody")
    assert node.woken == ["c"]


def test_one_that_does_not_get_ready_does_not_keep_others_waiting_for_ever() -> None:
    node = Node(1)
    assert node.take("a", 0.0) is None
    until = node.take("b", 1.0)
    assert until == TURN_SECONDS
    assert node.take("b", until - 0.1) is not None
    assert node.take("b", until) is None

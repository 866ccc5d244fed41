"""Tasks take turns in waiting for their slots."""

from __future__ import annotations

from keelman.worker.tasks.start_queue import StartQueue


def test_so_many_at_a_time_and_the_others_in_their_order() -> None:
    turns, called = StartQueue(2), list[str]()
    taken = [turns.take("", name, lambda name=name: called.append(name)) for name in "abcd"]  # type: ignore[misc]
    assert taken == [True, True, False, False]
    assert not turns.take("", "c", lambda: called.append("again"))
    turns.give("a")
    assert (called, turns.has("c"), turns.has("d")) == (["c"], True, False)
    assert turns.take("", "c", lambda: None), "it has its turn already"
    turns.give("a")
    assert called == ["c"], "it had none to give any more"
    turns.give("b")
    assert called == ["c", "d"]


def test_one_that_waits_no_more_is_passed_over() -> None:
    turns, called = StartQueue(1), list[str]()
    for name in "abc":
        turns.take("", name, lambda name=name: called.append(name))  # type: ignore[misc]
    turns.give("b")
    turns.give("a")
    assert called == ["c"]


def test_kinds_do_not_wait_for_each_other() -> None:
    turns = StartQueue(1)
    assert turns.take("", "a", lambda: None)
    assert turns.take("/plugins/acme", "b", lambda: None)
    assert not turns.take("", "c", lambda: None)


def test_one_of_another_kind_by_now_waits_there_alone() -> None:
    """The kind of the task has changed because its plugin was queried: a turn of the former kind would never come."""
    turns, called = StartQueue(1), list[str]()
    assert turns.take("", "a", lambda: None)
    assert turns.take("/plugin", "b", lambda: None)
    assert not turns.take("", "c", lambda: called.append("c"))
    turns.give("a")
    assert called == ["c"]
    assert turns.has("c")
    assert not turns.take("/plugin", "c", lambda: called.append("c again"))
    assert not turns.has("c")
    assert turns.take("", "d", lambda: None), "its former place is free"
    turns.give("b")
    assert turns.has("c")
    assert called == ["c", "c again"]


def test_one_that_is_ahead_comes_before_those_that_waited_longer() -> None:
    turns, called = StartQueue(1), list[str]()
    for name, ahead in (("a", False), ("b", False), ("c", True), ("d", True), ("b", True)):
        turns.take("", name, lambda name=name: called.append(name), ahead=ahead)  # type: ignore[misc]
    for name in "acd":
        turns.give(name)
    assert called == ["c", "d", "b"]
    turns.give("b")
    assert turns.take("", "e", lambda: None), "no task waits any more"

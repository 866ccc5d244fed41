"""Refusals are answered in turn, so many in a second; what waits is bounded, and who has gone does not wait."""

from __future__ import annotations

import asyncio

import pytest

from keelman.gateway.access import turns
from keelman.gateway.access.turns import Turns
from support.eventually import eventually

A_SECOND, AT_ONCE = 256, 32
"""Numbers whose quotients are exact."""


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "A_SECOND", A_SECOND)
    monkeypatch.setattr(turns, "AT_ONCE", AT_ONCE)


class Clock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def pass_turns(self, number: int) -> None:
        """Moves on by the time of so many turns, and a little."""
        self.now += (number + 0.1) / A_SECOND


def takers(of: Turns, number: int) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(of.take()) for _ in range(number)]


async def done(tasks: list[asyncio.Task[None]], number: int) -> None:
    await eventually(lambda: sum(task.done() for task in tasks) == number, seconds=20)


async def test_the_first_refusals_are_answered_at_once_and_later_ones_in_turn() -> None:
    clock = Clock()
    of = Turns(clock)
    tasks = takers(of, AT_ONCE + 1 + 10)
    await done(tasks, AT_ONCE + 1)
    for answered in (1, 2, 3):
        clock.pass_turns(1)
        await done(tasks, AT_ONCE + 1 + answered)
        assert all(task.done() for task in tasks[: AT_ONCE + 1 + answered]), "in the order in which they came"
    clock.pass_turns(10)
    await done(tasks, len(tasks))
    assert not of._waiting


async def test_a_caller_that_has_gone_does_not_take_the_turn_of_others() -> None:
    clock = Clock()
    of = Turns(clock)
    tasks = takers(of, AT_ONCE + 1 + 3)
    await done(tasks, AT_ONCE + 1)
    first, second, last = tasks[-3:]
    first.cancel()
    second.cancel()
    await done([first, second], 2)
    clock.pass_turns(1)
    await done([last], 1)


async def test_so_many_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_WAITING", 5)
    clock = Clock()
    of = Turns(clock)
    tasks = takers(of, AT_ONCE + 1 + 8)
    await done(tasks, AT_ONCE + 1 + 3)
    assert all(task.done() for task in tasks[-3:]), "the newest are answered at once"
    clock.pass_turns(5)
    await done(tasks, len(tasks))

"""Refusals of one address are delayed more and more; the memory for addresses and for waiting is bounded."""

from __future__ import annotations

import asyncio

import pytest

from keelman.gateway.access import failures
from keelman.gateway.access.failures import MAX_SECONDS, MAX_WAITING_OF_PEER, Failures, network_of
from keelman.model.errors import KeelmanError, PermissionDenied, Unauthenticated
from support.eventually import eventually

UNKNOWN = Unauthenticated("", reason="UNKNOWN_TOKEN")
FREE = 60
"""With this number one failure is forgotten each second."""


class Clock:
    """A clock that only sleeping and tests move."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


async def refused(slow: Failures, number: int, address: str = "10.0.0.7", error: KeelmanError = UNKNOWN) -> None:
    for _ in range(number):
        await slow.delay(error, address)


async def test_refusals_beyond_the_free_ones_wait_longer_and_longer() -> None:
    clock = Clock()
    slow = Failures(6, clock, clock.sleep)
    await refused(slow, 6)
    assert clock.slept == []
    await refused(slow, 9)
    assert clock.slept[:4] == pytest.approx([0.1, 0.2, 0.4, 0.8], rel=0.2)
    assert clock.slept == sorted(clock.slept)
    assert clock.slept[-1] == MAX_SECONDS


async def test_an_address_is_forgiven_after_a_while() -> None:
    clock = Clock()
    slow = Failures(FREE, clock, clock.sleep)
    await refused(slow, FREE + 100)
    clock.slept.clear()
    clock.now += 75
    await refused(slow, FREE)
    assert clock.slept == []


async def test_other_addresses_and_other_refusals_do_not_wait() -> None:
    clock = Clock()
    slow = Failures(1, clock, clock.sleep)
    await refused(slow, 3)
    clock.slept.clear()
    await refused(slow, 1, "10.0.0.8")
    for error in (
        PermissionDenied("", reason="ROLE"),
        Unauthenticated("", reason="NO_CREDENTIALS"),
        Unauthenticated("", reason="EXPIRED"),
    ):
        await refused(slow, 3, error=error)
    assert clock.slept == []


def test_a_network_counts_as_one_address() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:2") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:10.0.0.7") == network_of("10.0.0.7") != network_of("10.0.0.8")
    assert network_of("unix") == "unix"


def test_the_addresses_with_the_oldest_failures_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "MAX_PEERS", 3)
    slow = Failures(1, Clock())
    for peer in ("a", "b", "c", "a", "d"):
        slow.failed(peer)
    assert slow.failed("a") > 0
    assert slow.failed("b") == 0, "it was forgotten"
    assert len(slow._peers) == 3


async def test_so_many_wait_at_once_and_no_more() -> None:
    go_on = asyncio.Event()

    async def sleep(_: float) -> None:
        await go_on.wait()

    slow = Failures(1, Clock(), sleep)
    await refused(slow, 1)
    waiting = [asyncio.ensure_future(refused(slow, 1)) for _ in range(MAX_WAITING_OF_PEER + 5)]
    await eventually(lambda: sum(task.done() for task in waiting) == 5)
    waiting[0].cancel()
    await asyncio.wait((waiting[0],))
    another = asyncio.ensure_future(refused(slow, 1))
    await asyncio.sleep(0)
    assert not another.done(), "there is room again"
    go_on.set()
    await asyncio.gather(*waiting[1:], another)
    assert not slow._waiting

"""How the answers to heartbeats affect a worker: whether it may continue, and who learns that it may not."""

from __future__ import annotations

import time
from typing import Any

import pytest

from keelman.kafka.groups import protocol as codes
from keelman.model.work import MemberAssignment
from keelman.worker.group.membership import GroupPlace, Membership

URL = "http://w1:8083/"


class Told:
    """Records the reasons for lost places."""

    def __init__(self) -> None:
        self.lost: list[str] = []

    def on_refused(self, problem: str) -> None:
        raise AssertionError(problem)

    def on_lost(self, reason: str) -> None:
        self.lost.append(reason)


def placed() -> Membership:
    """A worker with a place in the third generation."""
    group: Any = None
    membership = Membership(
        group,
        group_id="g",
        session_ms=10_000,
        heartbeat_ms=3_000,
        wake=lambda: None,
        on_member=lambda member, leads: None,
    )
    membership.member, membership.generation, membership.rejoin = "m-1", 3, False
    membership.place = GroupPlace("m-1", 3, True, MemberAssignment("m-1", URL, 7))
    membership._clock.placed()
    membership._clock.answered(time.monotonic())
    assert membership.leads
    assert membership.lasting
    return membership


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (codes.ILLEGAL_GENERATION, "the group continued without it"),
        (codes.UNKNOWN_MEMBER, "the group knows it no more"),
    ],
)
def test_who_the_group_went_on_without_gives_its_place_up_and_joins_again(code: int, reason: str) -> None:
    membership, told = placed(), Told()
    membership._answered(code, time.monotonic(), told)
    assert told.lost == [reason]
    assert (membership.losses, membership.rejoin) == (1, True)
    assert not membership.leads
    assert not membership.lasting
    membership._answered(code, time.monotonic(), told)
    assert told.lost == [reason], "it is reported once"


def test_who_joins_already_is_not_lost_with_the_generation_before() -> None:
    membership, told = placed(), Told()
    membership._joining = True
    membership._answered(codes.ILLEGAL_GENERATION, time.monotonic(), told)
    assert told.lost == []
    assert membership.leads


def test_a_new_round_is_joined_with_the_place_that_it_has() -> None:
    membership, told = placed(), Told()
    membership._answered(codes.REBALANCE_IN_PROGRESS, time.monotonic(), told)
    assert told.lost == []
    assert membership.rejoin
    assert membership.leads

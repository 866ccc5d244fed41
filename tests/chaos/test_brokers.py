"""What befalls a cluster of three brokers, one of each kind on a path or two; `make faults` runs all on all paths."""

from __future__ import annotations

import pytest
from chaos_accidents import ACCIDENTS, in_turn
from chaos_system import System
from test_accidents import check

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


async def test_leaders_that_move_and_are_lost_lose_and_double_nothing(on_three: System) -> None:
    moves = in_turn(*(ACCIDENTS[name] for name in ("leaders moved", "partitions reassigned", "in-sync replica frozen")))
    losses = in_turn(ACCIDENTS["transactions' leader killed"], ACCIDENTS["groups' leader killed"])
    await check(on_three, {moves: ("mirror", "Kafka sink"), losses: ("file source", "file sink")})


async def test_what_a_source_loses_is_not_copied_twice_and_the_rest_is_copied(on_three: System) -> None:
    strikes = {
        ACCIDENTS["stopped past offsets' retention"]: ("Kafka sink",),
        ACCIDENTS["source topic made anew"]: ("file sink",),
    }
    await check(on_three, strikes)


async def test_an_update_and_an_unclean_election_lose_no_more_than_the_cluster_does(on_three: System) -> None:
    await check(on_three, {ACCIDENTS["brokers rolled"]: ("file source",)})
    await check(on_three, {ACCIDENTS["unclean election"]: ("mirror",)})

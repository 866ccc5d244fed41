"""What befalls a cluster of three brokers, one of each kind on a path or two; `make faults` runs all on all paths."""

from __future__ import annotations

import pytest
from chaos_accidents import ACCIDENTS, Accident, in_turn
from chaos_system import System
from test_accidents import check

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def one_after_another(*names: str) -> Accident:
    return in_turn(*(ACCIDENTS[name] for name in names))


async def test_leaders_that_move_and_topics_and_offsets_that_go_lose_and_double_nothing(on_three: System) -> None:
    strikes = {
        one_after_another("leaders moved", "partitions reassigned", "in-sync replica frozen"): ("mirror",),
        ACCIDENTS["source topic made anew"]: ("file sink",),
        ACCIDENTS["stopped past offsets' retention"]: ("Kafka sink",),
    }
    await check(on_three, strikes)


async def test_brokers_that_are_lost_and_updated_lose_and_double_nothing(on_three: System) -> None:
    lost = one_after_another("transactions' leader killed", "groups' leader killed", "brokers rolled")
    await check(on_three, {lost: ("file source", "Kafka sink")})


async def test_after_an_unclean_election_what_the_source_still_holds_is_copied_once(on_three: System) -> None:
    await check(on_three, {ACCIDENTS["unclean election"]: ("mirror",)})

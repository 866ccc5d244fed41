"""How long a fetcher pauses after an answer with records."""

from __future__ import annotations

import asyncio

from keelman.kafka.fetching.pauses import LITTLE_BYTES, Pauses
from keelman.kafka.fetching.settings import FetchSettings

CALM = FetchSettings(calm=frozenset({"offsets"}))


async def turns(pauses: Pauses, **brought: int) -> int | None:
    """Returns for how many turns of the loop the fetcher pauses; None if for more than ten."""
    waiting = asyncio.create_task(pauses.make_way(brought))
    for turn in range(10):
        await asyncio.sleep(0)
        if waiting.done():
            return turn
    waiting.cancel()
    return None


async def test_calm_topics_are_not_looked_at_again_at_once_unless_somebody_waits() -> None:
    pauses = Pauses(CALM)
    assert await turns(pauses, offsets=100) is None
    assert await turns(pauses, offsets=100, configs=1) == 0
    with pauses.hurried():
        with pauses.hurried():
            assert await turns(pauses, offsets=100) == 0
        assert await turns(pauses, offsets=100) == 0
    assert await turns(pauses, offsets=100) is None


async def test_who_begins_to_wait_ends_a_pause() -> None:
    pauses = Pauses(CALM)
    waiting = asyncio.create_task(pauses.make_way({"offsets": 100}))
    await asyncio.sleep(0)
    with pauses.hurried():
        async with asyncio.timeout(0.09):
            await waiting


async def test_little_makes_way_for_a_turn_and_much_does_not() -> None:
    pauses = Pauses(FetchSettings(makes_way=True))
    assert await turns(pauses, orders=LITTLE_BYTES - 1) == 1
    assert await turns(pauses, orders=LITTLE_BYTES) == 0
    assert await turns(Pauses(FetchSettings()), orders=1) == 0

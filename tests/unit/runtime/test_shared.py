"""Reads that callers at the same time share."""

from __future__ import annotations

import asyncio

import pytest

from keelman.runtime.coalesced import Shared


class Source:
    def __init__(self) -> None:
        self.reads = 0
        self.value = "a"
        self.problem: Exception | None = None
        self.go_on = asyncio.Event()

    async def read(self) -> str:
        self.reads += 1
        value = self.value
        await self.go_on.wait()
        if self.problem is not None:
            raise self.problem
        return value


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_who_asks_while_one_reads_gets_the_next_read_with_all_others() -> None:
    source = Source()
    shared = Shared(source.read)
    first = [asyncio.ensure_future(shared()) for _ in range(3)]
    await turns()
    source.value = "b"
    later = [asyncio.ensure_future(shared()) for _ in range(100)]
    await turns()
    assert source.reads == 1
    source.go_on.set()
    assert await asyncio.gather(*first) == ["a"] * 3
    assert await asyncio.gather(*later) == ["b"] * 100, "it has all that was written before the call"
    assert source.reads == 2
    assert await shared() == "b"
    assert source.reads == 3, "nothing is kept"


async def test_an_error_is_for_all_who_share_it_and_not_for_the_next() -> None:
    source = Source()
    shared = Shared(source.read)
    source.problem = ValueError("away")
    source.go_on.set()
    errors = await asyncio.gather(*(shared() for _ in range(3)), return_exceptions=True)
    assert [str(error) for error in errors] == ["away"] * 3
    source.problem = None
    assert await shared() == "a"


async def test_a_caller_who_goes_ends_nobody_elses_read() -> None:
    source = Source()
    shared = Shared(source.read)
    gone, stays = asyncio.ensure_future(shared()), asyncio.ensure_future(shared())
    await turns()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    source.go_on.set()
    assert await stays == "a"
    alone = asyncio.ensure_future(shared())
    alone.cancel()
    await asyncio.gather(alone, return_exceptions=True)
    assert await shared() == "a"

"""Writes that wait share transactions; one that fails or is given up leaves the others alone."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from keelman.model.errors import NotFound
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Transaction
from keelman.state.sessions.write_queue import MOST_TOGETHER, WriteQueue
from support.eventually import eventually
from support.state.stores import open_store


class _Counted(WriteQueue):
    """Notes the transaction of each write."""

    def __init__(self, store: ResourceStore) -> None:
        super().__init__(store)
        self.used: list[Transaction] = []

    @property
    def sizes(self) -> list[int]:
        """The numbers of writes in each transaction, in order."""
        return list(Counter(map(id, self.used)).values())

    async def add(self, number: int) -> int:
        async def change(tx: Transaction) -> int:
            self.used.append(tx)
            if number < 0:
                raise NotFound(f"nothing has the number {number}")
            return number

        return await self.write(change)


@contextlib.asynccontextmanager
async def _queue(folder: Path) -> AsyncIterator[tuple[ResourceStore, _Counted]]:
    async with open_store(str(folder / "state.db")) as store:
        yield store, _Counted(store)


async def test_what_waits_for_its_turn_is_written_together(tmp_path: Path) -> None:
    async with _queue(tmp_path) as (store, queue):
        async with store.write():
            writes = [asyncio.ensure_future(queue.add(number)) for number in range(MOST_TOGETHER + 20)]
            await asyncio.sleep(0)
            assert queue.waited_seconds > 0
        assert await asyncio.gather(*writes) == list(range(MOST_TOGETHER + 20))
        assert queue.sizes == [MOST_TOGETHER, 20]
        assert queue.waited_seconds == 0


async def test_a_write_that_is_refused_fails_alone(tmp_path: Path) -> None:
    async with _queue(tmp_path) as (store, queue):
        async with store.write():
            writes = [asyncio.ensure_future(queue.add(number)) for number in (1, -1, 2)]
            await asyncio.sleep(0)
        results = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(result) for result in results] == [int, NotFound, int]
        assert queue.waited_seconds == 0


async def test_a_write_whose_caller_has_gone_is_left_out(tmp_path: Path) -> None:
    async with _queue(tmp_path) as (store, queue):
        async with store.write():
            writes = [asyncio.ensure_future(queue.add(number)) for number in range(3)]
            await asyncio.sleep(0)
            writes[0].cancel()  # the one that has the turn
            writes[1].cancel()
            await asyncio.gather(*writes[:2], return_exceptions=True)
        assert await writes[2] == 2
        assert queue.sizes == [1]


async def test_a_database_that_fails_fails_those_that_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _queue(tmp_path) as (store, queue):
        problem, real = OSError("the disk is full"), store.settle

        def failing(tx: Any) -> None:
            raise problem

        async with store.write():
            writes = [asyncio.ensure_future(queue.add(number)) for number in range(2)]
            await asyncio.sleep(0)
        monkeypatch.setattr(store, "settle", failing)
        assert await asyncio.gather(*writes, return_exceptions=True) == [problem, problem]
        monkeypatch.setattr(store, "settle", real)
        assert await queue.add(7) == 7
        await eventually(lambda: queue.waited_seconds == 0)

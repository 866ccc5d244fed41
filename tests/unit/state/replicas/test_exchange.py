"""Heartbeats in messages of a size that PostgreSQL accepts."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import psycopg
import pytest

from keelman.state.replicas.exchange import COMMITTED, EXCHANGED, PAYLOAD_BYTES, Exchange, _parts
from keelman.state.replicas.heard import Heard
from support.eventually import eventually
from support.fake_time import FakeProcess, FakeTimeLoop

BEAT = 2.0


class Away(Exchange):
    """An exchange whose database does not answer."""

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        raise psycopg.OperationalError("nobody answers")
        yield


def test_who_hears_nothing_of_its_own_sends_its_agents_away_but_not_after_a_halt() -> None:
    loop, calls = FakeTimeLoop(), []
    process = FakeProcess(loop, "state")
    store: Any = None
    exchange = Away("", store, Heard(loop.time), BEAT, lambda: calls.append(loop.time()), loop.time, "me")

    async def halted() -> None:
        task = process.start(exchange.run(lambda revision: None))
        await asyncio.sleep(5.0)
        process.freeze()
        await asyncio.sleep(15.0)
        process.thaw()
        await asyncio.sleep(5.0)
        task.cancel()
        await asyncio.wait([task])

    loop.run(halted(), most_seconds=60.0)
    assert calls == [22.5, 23.0, 23.5, 24.0, 24.5]


class Busy(Exchange):
    """An exchange whose database answers, but whose writers keep it from reading the commits of others."""

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        yield self

    async def notifies(self, timeout: float) -> AsyncIterator[Any]:
        yield psycopg.Notify(COMMITTED, "7", 1)
        await asyncio.sleep(BEAT)
        yield psycopg.Notify(EXCHANGED, json.dumps({"from": "me"}), 1)

    async def _notify(self, message: dict[str, Any]) -> None:
        pass


class Writers:
    """A store whose turn does not come."""

    revision = 0

    async def catch_up(self) -> None:
        await asyncio.Event().wait()


def test_who_waits_behind_its_own_writers_is_not_cut_off() -> None:
    loop, calls = FakeTimeLoop(), []
    store: Any = Writers()
    exchange = Busy("", store, Heard(loop.time), BEAT, lambda: calls.append(loop.time()), loop.time, "me")

    async def busy() -> None:
        task = FakeProcess(loop, "state").start(exchange.run(lambda revision: None))
        await asyncio.sleep(60.0)
        task.cancel()
        await asyncio.wait([task])

    loop.run(busy(), most_seconds=120.0)
    assert calls == []


class Told(Busy):
    """An exchange that receives another service's notes."""

    notes: Sequence[tuple[str, object]] = ()

    async def notifies(self, timeout: float) -> AsyncIterator[Any]:
        while self.notes:
            (channel, told), *self.notes = self.notes
            yield psycopg.Notify(channel, json.dumps(told), 1)
        await asyncio.Event().wait()


class Slow:
    """A store that catches up with the commits of others when the test allows it."""

    def __init__(self, said: list[str]) -> None:
        self.said, self.may, self.revision = said, asyncio.Event(), 5

    async def catch_up(self) -> None:
        await self.may.wait()
        self.revision = 7
        self.said.append("taken in 7")


@pytest.mark.parametrize("committed", [[(COMMITTED, 7)], []])
async def test_a_commit_is_taken_in_before_it_counts_as_planned(committed: list[tuple[str, object]]) -> None:
    messages: list[str] = []
    slow = Slow(messages)
    store: Any = slow
    exchange = Told("", store, Heard(), BEAT, lambda: None)
    plans = [(EXCHANGED, {"from": "another", "planned": revision, "nodes": []}) for revision in (5, 7)]
    exchange.notes = [plans[0], *committed, plans[1]]
    task = asyncio.ensure_future(exchange.run(lambda revision: messages.append(f"planned {revision}")))
    await eventually(lambda: exchange._planned_elsewhere == 7)
    before = list(messages)
    slow.may.set()
    await eventually(lambda: messages[-1] == "planned 7")
    task.cancel()
    await asyncio.wait([task])
    assert before == ["planned 5"]
    assert list(dict.fromkeys(messages)) == ["planned 5", "taken in 7", "planned 7"]


def test_many_nodes_are_told_in_several_messages() -> None:
    nodes = [[f"node-{number:04}" + "x" * 50, 0.123456789, 1 << 40, 1 << 45, 12.25] for number in range(1000)]
    parts = _parts(nodes)
    assert [node for part in parts for node in part] == nodes
    assert all(len(json.dumps(part)) < PAYLOAD_BYTES + 100 for part in parts)
    assert _parts([]) == [[]], "an empty list is sent too"

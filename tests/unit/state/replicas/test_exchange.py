"""Heartbeats in messages that PostgreSQL takes."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import psycopg

from keelman.state.replicas.exchange import PAYLOAD_BYTES, Exchange, _parts
from keelman.state.replicas.heard import Heard
from keelman.testing.fake_time import FakeProcess, FakeTimeLoop

BEAT = 2.0


class Away(Exchange):
    """One whose database does not answer."""

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


def test_many_nodes_are_told_in_several_messages() -> None:
    nodes = [[f"node-{number:04}" + "x" * 50, 0.123456789, 1 << 40, 1 << 45, 12.25] for number in range(1000)]
    parts = _parts(nodes)
    assert [one for part in parts for one in part] == nodes
    assert all(len(json.dumps(part)) < PAYLOAD_BYTES + 100 for part in parts)
    assert _parts([]) == [[]], "of none it is told too"

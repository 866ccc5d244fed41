"""Our client of Couchbase's changes while windows are full, servers are silent, and frames are invalid."""

import asyncio
import time

import pytest

from keelman.couchbase.seeds import NOOP_SECONDS
from support.couchbase.ours import ours
from support.couchbase.server import couchbase_server
from support.eventually import eventually

pytestmark = pytest.mark.component


async def test_a_window_that_is_full_stops_the_server_and_acknowledgements_open_it() -> None:
    with couchbase_server(vbuckets=1) as server:
        async with ours(server, window=4096) as mine:
            for n in range(300):
                await asyncio.to_thread(server.put, f"doc-{n}", {"pad": "x" * 100})
            await eventually(lambda: len(mine.seen) == 300)
            (session,) = [session for session in server.sessions() if session.flags >= 0]
            assert len(session.acknowledged) > 5
            assert 0 <= session.unacknowledged < 4096


async def test_a_server_that_falls_silent_is_left_after_two_intervals() -> None:
    assert NOOP_SECONDS == 120.0
    with couchbase_server(vbuckets=4) as server:
        async with ours(server, noop_seconds=1.0) as mine:
            await asyncio.to_thread(server.put, "first", {"n": 1})
            await eventually(lambda: len(mine.seen) == 1)
            silent = [session for session in server.sessions() if session.flags >= 0]
            await asyncio.to_thread(server.silence)
            begun = time.monotonic()
            await asyncio.to_thread(server.put, "second", {"n": 2})
            await eventually(lambda: len(mine.seen) == 2)
            assert time.monotonic() - begun >= 1.0
            assert not set(silent) & set(server.sessions())
            assert [event[5] for event in mine.seen] == ["_default._default.first", "_default._default.second"]


async def test_a_server_that_has_nothing_to_say_is_kept() -> None:
    with couchbase_server(vbuckets=4) as server:
        async with ours(server, noop_seconds=0.5) as mine:
            await eventually(lambda: server.noops >= 5)
            (session,) = [session for session in server.sessions() if session.flags >= 0]
            await asyncio.to_thread(server.put, "doc", {"n": 1})
            await eventually(lambda: len(mine.seen) == 1)
            assert [session for session in server.sessions() if session.flags >= 0] == [session]


async def test_what_came_before_something_wrong_is_kept() -> None:
    """Frames and an invalid frame arrive in one piece: the stream continues after the last valid frame."""
    with couchbase_server(vbuckets=1) as server:
        async with ours(server) as mine:
            await asyncio.to_thread(server.put, "first", {"n": 1})
            await eventually(lambda: len(mine.seen) == 1)
            await asyncio.to_thread(server.put_and_garble, "second", {"n": 2})
            await asyncio.to_thread(server.put, "third", {"n": 3})
            await eventually(lambda: len(mine.seen) == 3)
            assert [event[2] for event in mine.seen] == [1, 2, 3]

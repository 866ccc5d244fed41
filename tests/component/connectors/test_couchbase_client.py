"""The official Java client and ours follow the same test server side by side: both must see the same of each scenario.

What only one of them sees is either a fault of the server, which is made from the protocol's rules, or one of ours.
"""

import asyncio
import base64
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from keelman.couchbase.seeds import NOOP_SECONDS
from keelman.runtime.java.installation import find
from keelman.testing.eventually import eventually
from support.couchbase.changes import everything
from support.couchbase.follower import Follower, following
from support.couchbase.java_client import compiled
from support.couchbase.ours import KINDS, Seen, ours
from support.couchbase.server import CouchbaseServer, couchbase_server
from support.java.kit import missing

pytestmark = [pytest.mark.component, pytest.mark.skipif(bool(missing()), reason=missing() or "Java is here")]


@pytest.fixture(scope="module")
async def classes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The class path of the program that follows a bucket."""
    return await compiled(tmp_path_factory.mktemp("follow"), "Follow")


class Official(Follower):
    """The official client."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.seen: Seen = []
        super().__init__(process)

    def take(self, kind: str, rest: Sequence[str]) -> bool:
        if kind not in KINDS.values():
            return False
        vbucket, seqno, _, revision, cas = map(int, rest[:5])
        self.seen.append((kind, vbucket, seqno, revision, cas, rest[5], base64.b64decode(rest[6])))
        return True


def java(
    server: CouchbaseServer, classes: list[Path], *, polling_ms: int = 0, window: int = 1 << 20
) -> AbstractAsyncContextManager[Official]:
    """The official client from the beginning, once it streams."""
    arguments = [server.seeds, "travel", "Administrator", "password", "ENABLED", str(window), str(polling_ms)]
    flags = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m"]
    return following(Official, [str(find().program), *flags, "-cp", ":".join(map(str, classes)), "Follow", *arguments])


def by_vbucket(seen: Seen) -> dict[int, Seen]:
    """The changes of each vbucket in their order."""
    return {number: [one for one in seen if one[1] == number] for number in sorted({one[1] for one in seen})}


def moved(server: CouchbaseServer) -> None:
    """A rebalance, and connections that are cut."""
    for vbucket in range(4):
        server.move(vbucket, 1 - server.vbuckets[vbucket].node)
        server.put(f"moved-{vbucket}", {}, vbucket=vbucket)
    server.cut()
    for n in range(8):
        server.put(f"after-{n}", {"n": n}, vbucket=n)


def rolled_back(server: CouchbaseServer) -> None:
    """A failover that loses changes, and a vbucket whose history is another one altogether."""
    for n in range(6):
        server.put(f"before-{n}", {"n": n}, vbucket=2)
        server.put(f"flushed-{n}", {"n": n}, vbucket=5)


SCENARIOS: list[Callable[[CouchbaseServer], None]] = [everything, moved]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
async def test_both_clients_see_the_same(classes: list[Path], scenario: Callable[[CouchbaseServer], None]) -> None:
    with couchbase_server(vbuckets=8, nodes=2) as server:
        server.put("first", {"n": 0})
        async with java(server, classes) as theirs, ours(server) as mine:
            await asyncio.to_thread(scenario, server)
            await eventually(lambda: len(mine.seen) == _stored(server), seconds=60)
            await eventually(lambda: len(theirs.seen) >= len(mine.seen), seconds=60)
            assert by_vbucket(theirs.seen) == by_vbucket(mine.seen)


def _stored(server: CouchbaseServer) -> int:
    """How many changes of documents a client sees that was there from the beginning."""
    return sum(one.kind in KINDS for history in server.vbuckets.values() for one in history.items)


async def test_both_clients_roll_back_to_the_same(classes: list[Path]) -> None:
    with couchbase_server(vbuckets=8, nodes=2) as server:
        async with java(server, classes) as theirs, ours(server) as mine:
            await asyncio.to_thread(rolled_back, server)
            await eventually(lambda: len(mine.seen) == len(theirs.seen) == 12, seconds=60)
            await asyncio.to_thread(server.fail_over, 2, lost=2)
            await asyncio.to_thread(server.forget_history, 5)
            await asyncio.to_thread(server.put, "new", {"n": 9}, vbucket=2)
            await eventually(lambda: len(mine.seen) == 12 + 1 + 6, seconds=60)
            await eventually(lambda: len(theirs.seen) == len(mine.seen), seconds=60)
            assert by_vbucket(theirs.seen) == by_vbucket(mine.seen)
            assert sorted(one for one in theirs.other if one.startswith("rollback")) == ["rollback 2 4", "rollback 5 0"]
            assert mine.changes.rollbacks == 2


async def test_both_clients_wait_for_the_disk(classes: list[Path]) -> None:
    with couchbase_server(vbuckets=4, nodes=2) as server:
        server.persist(1, 0)
        async with java(server, classes, polling_ms=50) as theirs, ours(server, polling_ms=50) as mine:
            await asyncio.to_thread(server.put, "waits", {"n": 1}, vbucket=1)
            await asyncio.to_thread(server.put, "there", {"n": 2}, vbucket=2)
            await eventually(lambda: len(mine.seen) == len(theirs.seen) == 1, seconds=60)
            await asyncio.to_thread(server.persist, 1, None)
            await eventually(lambda: len(mine.seen) == len(theirs.seen) == 2, seconds=60)
            assert by_vbucket(theirs.seen) == by_vbucket(mine.seen)


async def test_a_window_that_is_full_stops_the_server_and_acknowledgements_open_it() -> None:
    with couchbase_server(vbuckets=1) as server:
        async with ours(server, window=4096) as mine:
            for n in range(300):
                await asyncio.to_thread(server.put, f"doc-{n}", {"pad": "x" * 100})
            await eventually(lambda: len(mine.seen) == 300, seconds=60)
            (session,) = [one for one in server.sessions() if one.flags >= 0]
            assert len(session.acknowledged) > 5
            assert 0 <= session.unacknowledged < 4096


async def test_a_server_that_falls_silent_is_left_after_two_intervals() -> None:
    assert NOOP_SECONDS == 120.0
    with couchbase_server(vbuckets=4) as server:
        async with ours(server, noop_seconds=1.0) as mine:
            await asyncio.to_thread(server.put, "first", {"n": 1})
            await eventually(lambda: len(mine.seen) == 1, seconds=60)
            silent = [one for one in server.sessions() if one.flags >= 0]
            await asyncio.to_thread(server.silence)
            begun = time.monotonic()
            await asyncio.to_thread(server.put, "second", {"n": 2})
            await eventually(lambda: len(mine.seen) == 2, seconds=60)
            assert time.monotonic() - begun >= 1.0
            assert not set(silent) & set(server.sessions())
            assert [one[5] for one in mine.seen] == ["_default._default.first", "_default._default.second"]


async def test_a_server_that_has_nothing_to_say_is_kept() -> None:
    with couchbase_server(vbuckets=4) as server:
        async with ours(server, noop_seconds=0.5) as mine:
            await eventually(lambda: server.noops >= 5, seconds=60)
            (session,) = [one for one in server.sessions() if one.flags >= 0]
            await asyncio.to_thread(server.put, "doc", {"n": 1})
            await eventually(lambda: len(mine.seen) == 1, seconds=60)
            assert [one for one in server.sessions() if one.flags >= 0] == [session]


async def test_what_came_before_something_wrong_is_kept() -> None:
    """Frames and what is none in one piece: the stream goes on behind the last of the frames."""
    with couchbase_server(vbuckets=1) as server:
        async with ours(server) as mine:
            await asyncio.to_thread(server.put, "first", {"n": 1})
            await eventually(lambda: len(mine.seen) == 1, seconds=60)
            await asyncio.to_thread(server.put_and_garble, "second", {"n": 2})
            await asyncio.to_thread(server.put, "third", {"n": 3})
            await eventually(lambda: len(mine.seen) == 3, seconds=60)
            assert [one[2] for one in mine.seen] == [1, 2, 3]

"""Our client holds changes back until each copy of their vbucket has them on disk."""

import asyncio
from collections.abc import Iterator

import pytest

from support.couchbase.ours import Ours, ours
from support.couchbase.server import CouchbaseServer, couchbase_server
from support.eventually import eventually

pytestmark = pytest.mark.component
POLLING_MS = 20


@pytest.fixture
def server() -> Iterator[CouchbaseServer]:
    """A vbucket with a replica at an otherwise empty node, and a vbucket without."""
    with couchbase_server(vbuckets=2, nodes=3) as actual_couchbase_server:
        actual_couchbase_server.replicate(1, 2)
        yield actual_couchbase_server


async def is_held(server: CouchbaseServer, mine: Ours, *keys: str) -> None:
    """Waits for some more polls of the persisted state; no document but these was seen by then."""
    before = server.observed
    await eventually(lambda: server.observed >= before + 4)
    assert mine.keys == sorted(keys)


async def test_a_replica_has_it_on_disk_too(server: CouchbaseServer) -> None:
    server.persist(1, 0, replica=True)
    async with ours(server, polling_ms=POLLING_MS) as mine:
        await asyncio.to_thread(server.put, "waits", {}, vbucket=1)
        await asyncio.to_thread(server.put, "there", {}, vbucket=0)
        await eventually(lambda: mine.keys == ["there"])
        await is_held(server, mine, "there")
        await asyncio.to_thread(server.persist, 1, 1, replica=True)
        await asyncio.to_thread(server.put, "next", {}, vbucket=1)
        await eventually(lambda: mine.keys == ["there", "waits"])
        await is_held(server, mine, "there", "waits")
        await asyncio.to_thread(server.persist, 1, None, replica=True)
        await eventually(lambda: len(mine.seen) == 3)


async def test_all_is_held_while_a_replica_has_another_history_or_is_away(server: CouchbaseServer) -> None:
    async with ours(server, polling_ms=POLLING_MS) as mine:
        await asyncio.to_thread(server.part, 1)
        await asyncio.to_thread(server.put, "first", {}, vbucket=1)
        await is_held(server, mine)
        await asyncio.to_thread(server.part, 1, other=False)
        await eventually(lambda: mine.keys == ["first"])
        await asyncio.to_thread(server.kill, 2)
        await asyncio.to_thread(server.put, "second", {}, vbucket=1)
        await is_held(server, mine, "first")
        await asyncio.to_thread(server.revive, 2)
        await eventually(lambda: len(mine.seen) == 2)


async def test_a_replica_that_the_map_has_no_more_is_not_asked(server: CouchbaseServer) -> None:
    async with ours(server, polling_ms=POLLING_MS) as mine:
        await asyncio.to_thread(server.kill, 2)
        await asyncio.to_thread(server.put, "doc", {}, vbucket=1)
        await is_held(server, mine)
        await asyncio.to_thread(server.replicate, 1, -1)
        await eventually(lambda: mine.keys == ["doc"])


async def test_a_node_that_does_not_know_the_history_it_has_sent_is_begun_again_with(server: CouchbaseServer) -> None:
    server.persist(0, 1)
    async with ours(server, polling_ms=POLLING_MS) as mine:
        await asyncio.to_thread(lambda: [server.put(key, {}, vbucket=0) for key in ("first", "second")])
        await eventually(lambda: mine.keys == ["first"])
        await asyncio.to_thread(server.forget_history, 0, silently=True)
        await asyncio.to_thread(server.persist, 0, None)
        await eventually(lambda: mine.keys == ["first", "first", "second"])
        assert mine.changes.rollbacks == 1


@pytest.mark.parametrize("status", [0x85, 0x86])
async def test_a_copy_that_is_busy_is_asked_again(server: CouchbaseServer, status: int) -> None:
    server.refuse(0x91, status, vbucket=1)
    async with ours(server, polling_ms=POLLING_MS) as mine:
        await asyncio.to_thread(server.put, "doc", {}, vbucket=1)
        await eventually(lambda: mine.keys == ["doc"])


async def test_a_failover_to_a_replica_that_had_less_on_disk_takes_nothing_back(server: CouchbaseServer) -> None:
    """The emitted documents were persisted there too."""
    server.persist(1, 2, replica=True)
    async with ours(server, polling_ms=POLLING_MS) as mine:
        await asyncio.to_thread(lambda: [server.put(f"doc-{n}", {}, vbucket=1) for n in range(2)])
        await eventually(lambda: mine.keys == ["doc-0", "doc-1"])
        # In a snapshot of their own: a history that ends within a snapshot is read again from its beginning.
        await asyncio.to_thread(lambda: [server.put(f"doc-{n}", {}, vbucket=1) for n in (2, 3)])
        await is_held(server, mine, "doc-0", "doc-1")
        await asyncio.to_thread(lambda: server.fail_over(1, lost=2, node=2))
        await asyncio.to_thread(server.put, "instead", {}, vbucket=1)
        await eventually(lambda: mine.keys == ["doc-0", "doc-1", "instead"])

"""The news that parked tasks get of a Couchbase bucket while not all of it answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from keelman.connect.watches import VbucketPosition, VbucketWatch
from keelman.connectors.couchbase.keys import official_keys, reached_by
from keelman.runtime.supervise import Siblings
from keelman.worker.parking.vbucket_watches import VbucketWatches, WatchedVbuckets
from support.couchbase.copies import official
from support.couchbase.server import CouchbaseServer, couchbase_server
from support.eventually import eventually

pytestmark = pytest.mark.component


@asynccontextmanager
async def watching() -> AsyncIterator[VbucketWatches]:
    """The watches of a worker, whose loops end with the block; an exception of a loop comes out of it."""
    async with Siblings() as siblings:
        vbucket_watches = VbucketWatches()
        vbucket_watches.begin(siblings)
        yield vbucket_watches


def watch(watches: VbucketWatches, server: CouchbaseServer, *vbuckets: int, **more: str) -> list[int]:
    """Waits for changes of these vbuckets after their last one; the list gets an entry once there is one."""
    chosen = {f"couchbase.{key}": text for key, text in more.items()}
    parsed = official_keys().parse({**official("parked", server), **chosen})
    woken: list[int] = []
    positions = {
        number: VbucketPosition(server.vbuckets[number].high, 0xABC0_0000_0000_0000 + number) for number in vbuckets
    }
    vbucket_watch = VbucketWatch(reached_by(parsed, parsed["couchbase.seed.nodes"], "travel"), positions)
    watches.add(WatchedVbuckets(vbucket_watch, lambda: woken.append(1)))
    return woken


async def test_a_node_that_is_away_keeps_no_other_from_being_asked() -> None:
    with couchbase_server(vbuckets=4, nodes=2) as server:
        async with watching() as watches:
            await asyncio.to_thread(server.kill, 1)
            away, here = watch(watches, server, 1, 3), watch(watches, server, 0, 1)
            await asyncio.to_thread(server.put, "doc", {}, vbucket=0)
            await eventually(lambda: here == [1])
            assert away == []
            await asyncio.to_thread(server.put, "doc", {}, vbucket=3)
            await asyncio.to_thread(server.revive, 1)
            await eventually(lambda: away == [1])
            assert len(watches) == 0


async def test_a_vbucket_that_moves_from_a_node_that_is_away_is_found() -> None:
    with couchbase_server(vbuckets=4, nodes=2) as server:
        async with watching() as watches:
            await asyncio.to_thread(server.kill, 1)
            woken = watch(watches, server, 0, 1)
            await asyncio.to_thread(server.put, "doc", {}, vbucket=1)
            await eventually(lambda: [session for session in server.sessions() if session.bucket])
            await asyncio.to_thread(server.replace_node, 1, 0)
            await eventually(lambda: woken == [1])


async def test_an_empty_history_ends_no_watch() -> None:
    with couchbase_server(vbuckets=1) as server:
        async with watching() as watches:
            server.vbuckets[0].log = []
            woken = watch(watches, server, 0)
            await eventually(lambda: [session for session in server.sessions() if session.bucket])
            await asyncio.to_thread(server.put, "doc", {})
            await eventually(lambda: woken == [1])


async def test_who_reads_one_collection_is_not_woken_by_others() -> None:
    with couchbase_server(vbuckets=2) as server:
        server.create_scope("inventory")
        server.create_collection("inventory", "airline")
        async with watching() as watches:
            single_watch = watch(watches, server, 0, 1, collections="inventory.airline")
            two = watch(watches, server, 0, 1, collections="inventory.airline,_default._default")
            await asyncio.to_thread(server.put, "doc", {}, vbucket=1)
            await eventually(lambda: two == [1])
            another = watch(watches, server, 0, collections="inventory.airline,_default._default")
            await asyncio.to_thread(server.put, "doc", {}, vbucket=0)
            await eventually(lambda: another == [1])
            assert single_watch == [], "it was called meanwhile"
            await asyncio.to_thread(lambda: server.put("air", {}, scope="inventory", collection="airline", vbucket=1))
            await eventually(lambda: single_watch == [1])


@pytest.mark.parametrize("fault", ["dropped", "rolled back"])
async def test_who_reads_one_collection_is_woken_when_it_is_dropped_or_taken_back(fault: str) -> None:
    with couchbase_server(vbuckets=1) as server:
        server.create_scope("inventory")
        server.create_collection("inventory", "airline")
        server.put("air", {}, scope="inventory", collection="airline")
        async with watching() as watches:
            woken = watch(watches, server, 0, collections="inventory.airline")
            if fault == "dropped":
                await asyncio.to_thread(server.drop_collection, "inventory", "airline")
            else:
                await asyncio.to_thread(lambda: server.fail_over(0, lost=1))
            await eventually(lambda: woken == [1])

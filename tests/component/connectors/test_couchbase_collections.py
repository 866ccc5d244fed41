"""Our client of Couchbase's changes while the collections that it reads are dropped and created again."""

import asyncio
from collections.abc import Iterator

import pytest

from keelman.couchbase import changes
from keelman.couchbase.frames import Opcode
from keelman.couchbase.manifest import Collection, Selection
from support.couchbase.ours import Ours, ours
from support.couchbase.server import CouchbaseServer, couchbase_server
from support.eventually import eventually

pytestmark = pytest.mark.component
AIRLINE, HOTEL = Collection("inventory", "airline"), Collection("inventory", "hotel")
GONE = "requested collections are gone"


@pytest.fixture
def server() -> Iterator[CouchbaseServer]:
    """A server with two collections in a scope."""
    with couchbase_server(vbuckets=2) as actual_couchbase_server:
        actual_couchbase_server.create_scope("inventory")
        actual_couchbase_server.create_collection("inventory", "airline", "hotel")
        yield actual_couchbase_server


def put(server: CouchbaseServer, *keys: str) -> None:
    """Stores documents in the collection that a key begins with."""
    for key in keys:
        server.put(key, {}, scope="inventory", collection=key.partition("-")[0], vbucket=1)


async def saw(mine: Ours, *keys: str) -> None:
    """Waits until it has seen exactly these documents, once each."""
    await eventually(lambda: len(mine.seen) >= len(keys), what=f"{mine.keys} are {keys}")
    assert mine.keys == sorted(keys)


@pytest.mark.parametrize("selection", [Selection("", [AIRLINE]), Selection("inventory")], ids=["collection", "scope"])
async def test_a_vbucket_whose_collections_are_dropped_waits_until_there_is_one_again(
    server: CouchbaseServer, selection: Selection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_AGAIN_SECONDS", 0.5)
    async with ours(server, selection=selection) as mine:
        await asyncio.to_thread(put, server, "airline-1")
        await saw(mine, "airline-1")
        if selection.scope:
            await asyncio.to_thread(server.drop_scope, "inventory")
        else:
            await asyncio.to_thread(server.drop_collection, *AIRLINE)
        await eventually(lambda: mine.changes.problem.endswith(GONE))
        assert mine.changes.resting() is None
        assert mine.failure == ""
        if selection.scope:
            await asyncio.to_thread(server.create_scope, "inventory")
        await asyncio.to_thread(server.create_collection, *AIRLINE)
        await asyncio.to_thread(put, server, "airline-2")
        await saw(mine, "airline-1", "airline-2")
        await eventually(lambda: mine.changes.problem == "")


async def test_collections_that_are_dropped_while_nodes_are_away_are_waited_for(server: CouchbaseServer) -> None:
    async with ours(server, selection=Selection("", [AIRLINE])) as mine:
        await asyncio.to_thread(put, server, "airline-1")
        await saw(mine, "airline-1")
        await asyncio.to_thread(server.kill, 0)
        await asyncio.to_thread(server.drop_collection, *AIRLINE)
        await asyncio.to_thread(server.revive, 0)
        await eventually(lambda: mine.changes.problem.endswith(GONE))
        assert mine.failure == ""


@pytest.mark.parametrize("polling_ms", [0, 20])
async def test_of_several_collections_one_is_dropped_and_made_again(server: CouchbaseServer, polling_ms: int) -> None:
    """The others are read on, and nothing of the new one is missed."""

    def change() -> None:
        put(server, "hotel-2")
        server.drop_collection(*AIRLINE)
        put(server, "hotel-3")
        server.put("other", {}, vbucket=1)
        server.create_collection(*AIRLINE)
        put(server, "airline-2", "hotel-4")

    async with ours(server, selection=Selection("", [AIRLINE, HOTEL]), polling_ms=polling_ms) as mine:
        await asyncio.to_thread(put, server, "airline-1", "hotel-1")
        await saw(mine, "airline-1", "hotel-1")
        await asyncio.to_thread(change)
        await saw(mine, "airline-1", "airline-2", "hotel-1", "hotel-2", "hotel-3", "hotel-4")
        await asyncio.to_thread(server.cut)
        await asyncio.to_thread(put, server, "airline-3", "hotel-5")
        await eventually(lambda: len(mine.seen) == 8)
        await eventually(lambda: mine.changes.resting() is not None)
        assert mine.changes.problem == ""
        assert mine.changes.rollbacks == 0


async def test_who_may_not_read_all_reads_the_collections_that_are_left(server: CouchbaseServer) -> None:
    async with ours(server, selection=Selection("", [AIRLINE, HOTEL])) as mine:
        await asyncio.to_thread(put, server, "airline-1")
        await saw(mine, "airline-1")
        for vbucket in (0, 1):
            server.refuse(Opcode.STREAM_REQUEST, 0x24, vbucket=vbucket)
        await asyncio.to_thread(server.drop_collection, *AIRLINE)
        await asyncio.to_thread(put, server, "hotel-1")
        await saw(mine, "airline-1", "hotel-1")
        assert mine.failure == ""


async def test_collections_of_a_scope_that_are_made_later_are_read(server: CouchbaseServer) -> None:
    async with ours(server, selection=Selection("inventory")) as mine:
        await asyncio.to_thread(server.create_collection, "inventory", "route", "landmark")
        await asyncio.to_thread(put, server, "route-1", "landmark-1", "hotel-1")
        await saw(mine, "route-1", "landmark-1", "hotel-1")

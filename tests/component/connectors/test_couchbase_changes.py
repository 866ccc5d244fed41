"""Our client of Couchbase's changes while nodes are replaced, hang or warm up, and collections come and go."""

import asyncio
import time

import pytest

from keelman.couchbase import changes, nodes
from keelman.couchbase.frames import Opcode
from keelman.couchbase.manifest import Collection, Selection
from keelman.testing.eventually import eventually
from support.couchbase.ours import ours
from support.couchbase.server import couchbase_server

pytestmark = pytest.mark.component


async def test_when_all_nodes_of_a_client_are_replaced_the_seeds_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "SEEDS_SECONDS", 0.0)
    with couchbase_server(vbuckets=2, nodes=3) as server:
        for history in server.vbuckets.values():
            history.node = 1
        async with ours(server) as mine:
            await asyncio.to_thread(server.put, "before", {})
            await eventually(lambda: mine.keys == ["before"], seconds=60)
            await asyncio.to_thread(server.kill, 1)
            await asyncio.to_thread(server.replace_node, 1, 2)
            await asyncio.to_thread(server.put, "behind", {})
            await eventually(lambda: mine.keys == ["before", "behind"], seconds=60)
            assert mine.changes.problem == ""


async def test_a_node_that_hangs_and_left_the_cluster_is_left() -> None:
    """Its connection stays open and silent, which only the no-ops would tell, in four minutes."""
    with couchbase_server(vbuckets=4, nodes=2) as server:
        async with ours(server) as mine:
            await asyncio.to_thread(server.put, "before", {})
            await eventually(lambda: mine.keys == ["before"], seconds=60)
            await asyncio.to_thread(server.silence, 1)
            await asyncio.to_thread(server.replace_node, 1, 0)
            await asyncio.to_thread(server.put, "behind", {}, vbucket=1)
            await eventually(lambda: mine.keys == ["before", "behind"], seconds=60)


async def test_without_flow_control_a_server_sends_no_more_than_our_own_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "OWN_WINDOW_BYTES", 4096)
    with couchbase_server(vbuckets=1) as server:
        for n in range(300):
            server.put(f"doc-{n}", {"pad": "x" * 100})
        async with ours(server, window=0, takes=False) as mine:

            def sent() -> int:
                (session,) = [one for one in server.sessions() if one.flags >= 0]
                return session.unacknowledged

            await eventually(lambda: sent() >= 4096, seconds=60)
            mine.take()
            assert len(mine.seen) < 60

            def all_seen() -> bool:
                mine.take()
                return len(mine.seen) == 300

            await eventually(all_seen, seconds=60)


@pytest.mark.parametrize("status", [0x07, 0x08, 0x25, 0x85, 0x86])
async def test_a_start_while_vbuckets_are_moved_or_warmed_up(status: int) -> None:
    with couchbase_server(vbuckets=2) as server:
        server.refuse(Opcode.FAILOVER_LOG, status, vbucket=1)
        server.put("doc", {}, vbucket=1)
        async with ours(server) as mine:
            await eventually(lambda: mine.keys == ["doc"], seconds=60)
            assert mine.changes.problem == ""


async def test_a_vbucket_whose_collections_are_dropped_waits_until_there_is_one_again() -> None:
    selection = Selection("", [Collection("inventory", "airline")])
    with couchbase_server(vbuckets=2) as server:
        server.create_scope("inventory")
        server.create_collection("inventory", "airline")
        async with ours(server, selection=selection) as mine:
            await asyncio.to_thread(server.put, "one", {}, scope="inventory", collection="airline")
            await eventually(lambda: mine.keys == ["one"], seconds=60)
            await asyncio.to_thread(server.drop_collection, "inventory", "airline")
            await eventually(
                lambda: mine.changes.problem.endswith("collections that are asked for are gone"), seconds=60
            )
            assert mine.changes.resting() is None
            mine.take()  # and has not failed
            await asyncio.to_thread(server.create_collection, "inventory", "airline")
            await asyncio.to_thread(server.put, "two", {}, scope="inventory", collection="airline")
            await eventually(lambda: mine.keys == ["one", "two"], seconds=60)
            await eventually(lambda: mine.changes.problem == "", seconds=60)


async def test_a_stream_that_ends_again_and_again_is_opened_after_longer_pauses() -> None:
    with couchbase_server(vbuckets=1) as server:
        async with ours(server):
            begun = time.monotonic()
            for opened in range(1, 9):
                await eventually(lambda: len(server.asked) == opened, seconds=60)  # noqa: B023  awaited in its turn
                if opened < 8:
                    await asyncio.to_thread(server.end_streams, 4)
            assert time.monotonic() - begun >= sum(0.032 * 2**n for n in range(7)) / 2

"""Our client of Couchbase's changes while nodes are replaced, hang, warm up or refuse streams."""

import asyncio
import time

import pytest

from keelman.couchbase import changes, nodes
from keelman.couchbase.cluster import BucketCluster
from keelman.couchbase.frames import Opcode
from support.couchbase.ours import access_to, ours
from support.couchbase.server import couchbase_server
from support.eventually import eventually

pytestmark = pytest.mark.component


async def test_when_all_nodes_of_a_client_are_replaced_the_seeds_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "SEEDS_SECONDS", 0.0)
    with couchbase_server(vbuckets=2, nodes=3) as server:
        for history in server.vbuckets.values():
            history.node = 1
        async with ours(server) as mine:
            await asyncio.to_thread(server.put, "before", {})
            await eventually(lambda: mine.keys == ["before"])
            await asyncio.to_thread(server.kill, 1)
            await asyncio.to_thread(server.replace_node, 1, 2)
            await asyncio.to_thread(server.put, "behind", {})
            await eventually(lambda: mine.keys == ["before", "behind"])
            assert mine.changes.problem == ""


async def test_a_node_that_hangs_and_left_the_cluster_is_left() -> None:
    """Its connection stays open and silent, which only the no-ops would show, after four minutes."""
    with couchbase_server(vbuckets=4, nodes=2) as server:
        async with ours(server) as mine:
            await asyncio.to_thread(server.put, "before", {})
            await eventually(lambda: mine.keys == ["before"])
            await asyncio.to_thread(server.silence, 1)
            await asyncio.to_thread(server.replace_node, 1, 0)
            await asyncio.to_thread(server.put, "behind", {}, vbucket=1)
            await eventually(lambda: mine.keys == ["before", "behind"])


async def test_without_flow_control_a_server_sends_no_more_than_our_own_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "OWN_WINDOW_BYTES", 4096)
    with couchbase_server(vbuckets=1) as server:
        for n in range(300):
            server.put(f"doc-{n}", {"pad": "x" * 100})
        async with ours(server, window=0, takes=False) as mine:

            def sent() -> int:
                (session,) = [session for session in server.sessions() if session.flags >= 0]
                return session.unacknowledged

            await eventually(lambda: sent() >= 4096)
            mine.take()
            assert len(mine.seen) < 60

            def all_seen() -> bool:
                mine.take()
                return len(mine.seen) == 300

            await eventually(all_seen)


@pytest.mark.parametrize(
    ("opcode", "status"),
    [
        *((Opcode.FAILOVER_LOG, status) for status in (0x07, 0x08, 0x25, 0x85, 0x86)),
        *((Opcode.STREAM_REQUEST, status) for status in (0x08, 0x0D, 0x25, 0x82, 0x85, 0x86)),
    ],
)
async def test_what_is_refused_for_now_at_a_start_is_asked_for_again(opcode: Opcode, status: int) -> None:
    """Requests are repeated while vbuckets are moved or warmed up."""
    with couchbase_server(vbuckets=2) as server:
        server.refuse(opcode, status, vbucket=1)
        server.put("doc", {}, vbucket=1)
        async with ours(server) as mine:
            await eventually(lambda: mine.keys == ["doc"])
            assert mine.changes.problem == ""


async def test_a_stream_that_ends_again_and_again_is_opened_after_longer_pauses() -> None:
    with couchbase_server(vbuckets=1) as server:
        async with ours(server):
            begun = time.monotonic()
            for opened in range(1, 9):
                await eventually(lambda: len(server.asked) == opened)  # noqa: B023  awaited in its turn
                if opened < 8:
                    await asyncio.to_thread(server.end_streams, 4)
            assert time.monotonic() - begun >= sum(0.032 * 2**n for n in range(7)) / 2


@pytest.mark.parametrize(("status", "name"), [(0x86, "TEMPORARY_FAILURE"), (0x07, "NOT_MY_VBUCKET")])
async def test_a_stream_that_stays_refused_for_now_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, status: int, name: str
) -> None:
    """The task is restarted: another attempt may succeed."""
    monkeypatch.setattr(changes, "MAX_REFUSED_SECONDS", 0.5)
    with couchbase_server(vbuckets=2) as server:
        server.refuse(Opcode.STREAM_REQUEST, status)
        async with ours(server, takes=False) as mine:
            await eventually(lambda: mine.failure)
            assert mine.failure.startswith(f"AwayError: {server.seeds} opens no stream of vbucket ")
            assert f"{name} ({status:#04x}), for " in mine.failure


@pytest.mark.parametrize("status", [0x88, 0x8C])
async def test_collections_that_stay_unknown_to_a_node_end_the_task(status: int) -> None:
    with couchbase_server(vbuckets=1) as server:
        server.refuse(Opcode.STREAM_REQUEST, status)
        async with ours(server, takes=False, bootstrap_seconds=0.5) as mine:
            await eventually(lambda: mine.failure)
            assert mine.failure.startswith(f"CouchbaseError: {server.seeds} opens no stream of vbucket 0: UNKNOWN_")
            assert f"({status:#04x}), for " in mine.failure


async def test_last_changes_are_asked_for_until_each_vbucket_is_somewhere() -> None:
    with couchbase_server(vbuckets=2) as server:
        server.put("doc", {}, vbucket=1)
        server.vbuckets[1].node = -1
        cluster = BucketCluster(access_to(server))
        await cluster.bootstrap()
        await asyncio.to_thread(server.move, 1, 0)
        assert await cluster.all_high_seqnos([0, 1]) == {0: 0, 1: 1}


async def test_framing_extras_count_for_the_flow_control() -> None:
    """Otherwise the window would become full and stay so."""
    with couchbase_server(vbuckets=1) as server:
        server.is_framed = True
        async with ours(server, window=1024) as mine:
            await asyncio.to_thread(lambda: [server.put(f"doc-{n}", {}) for n in range(400)])
            await eventually(lambda: len(mine.seen) == 400)
            (session,) = [session for session in server.sessions() if session.flags >= 0]
            assert 0 <= session.unacknowledged < 1024


@pytest.mark.parametrize("version", [0, 2])
async def test_later_forms_of_snapshots(version: int) -> None:
    with couchbase_server(vbuckets=1) as server:
        server.marker_version = version
        async with ours(server) as mine:
            for n in range(3):
                await asyncio.to_thread(server.put, f"doc-{n}", {})
                await eventually(lambda: len(mine.seen) == n + 1)  # noqa: B023  awaited in its turn
            await asyncio.to_thread(server.cut)
            await asyncio.to_thread(server.put, "doc-3", {})
            await eventually(lambda: len(mine.seen) == 4)
            assert [request[3:] for request in server.asked] == [(0, 0), (3, 3)]
            assert mine.changes.rollbacks == 0


async def test_of_synchronous_writes_the_committed_ones_are_seen() -> None:
    with couchbase_server(vbuckets=1) as server:
        async with ours(server) as mine:
            await asyncio.to_thread(server.put_durably, "committed", {"n": 1})
            await asyncio.to_thread(server.put_durably, "aborted", {"n": 2}, commits=False)
            await asyncio.to_thread(server.put_durably, "prepared", {"n": 3}, commits=None)
            await eventually(lambda: mine.changes.resting() == {0: (5, server.vbuckets[0].log[0][0])})
            assert mine.keys == ["committed"]


@pytest.mark.parametrize("ignores", [True, False])
async def test_who_is_older_than_the_deletions_that_are_kept_begins_again_unless_it_ignores_that(ignores: bool) -> None:
    with couchbase_server(vbuckets=1) as server:
        if not ignores:
            server.capabilities.discard("dcp.IgnorePurgedTombstones")
        async with ours(server) as mine:
            await asyncio.to_thread(lambda: [server.put(key, {}) for key in ("a", "b")])
            await eventually(lambda: mine.keys == ["a", "b"])
            await asyncio.to_thread(server.kill, 0)
            await asyncio.to_thread(lambda: (server.delete("a"), server.put("c", {}), server.purge(0)))
            await asyncio.to_thread(server.revive, 0)
            await eventually(lambda: mine.keys[-1] == "c")
            assert mine.keys == (["a", "b", "c"] if ignores else ["a", "b", "b", "c"])
            assert mine.changes.rollbacks == (not ignores)

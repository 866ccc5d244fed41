"""The official Java client and ours follow the same test server side by side: both must see the same of each scenario.

A difference is either a fault of the server, which is written from the protocol's rules, or a fault of ours.
"""

import asyncio
import base64
import ssl
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from keelman.couchbase.manifest import Collection, Selection
from keelman.runtime.java.installation import find
from support.certificates import Authority
from support.couchbase import changes
from support.couchbase.follower import Follower, following
from support.couchbase.java_client import compiled
from support.couchbase.ours import KINDS, Ours, Seen, ours
from support.couchbase.server import CouchbaseServer, couchbase_server
from support.couchbase.vbuckets import DELETION, EXPIRATION, MUTATION
from support.eventually import eventually
from support.java.kit import missing

pytestmark = [pytest.mark.component, pytest.mark.skipif(bool(missing()), reason=missing() or "Java is here")]
Scenario = Callable[[CouchbaseServer], None]


@pytest.fixture(scope="module")
async def classes() -> list[Path]:
    """The class path of the program that follows a bucket."""
    return await compiled("Follow")


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
    server: CouchbaseServer, classes: list[Path], *, polling_ms: int = 0, window: int = 1 << 20, collections: str = "",
    begin: str = "BEGINNING", compression: str = "ENABLED", trusted: str = "",
) -> AbstractAsyncContextManager[Official]:  # fmt: skip
    """The official client, once it streams."""
    arguments = [server.seeds, "travel", "Administrator", "password", compression, str(window), str(polling_ms)]
    arguments += [collections, begin, trusted]
    flags = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m"]
    return following(Official, [str(find().program), *flags, "-cp", ":".join(map(str, classes)), "Follow", *arguments])


def by_vbucket(seen: Seen) -> dict[int, Seen]:
    """The changes of each vbucket in their order."""
    return {number: [event for event in seen if event[1] == number] for number in sorted({event[1] for event in seen})}


def rolled_back(server: CouchbaseServer) -> None:
    """A failover that loses changes, and a vbucket whose history is entirely different."""
    for n in range(6):
        server.put(f"before-{n}", {"n": n}, vbucket=2)
        server.put(f"flushed-{n}", {"n": n}, vbucket=5)


QUICK: list[Scenario] = [changes.everything, changes.moved]
SLOW: list[Scenario] = [
    changes.durable, changes.attributes, changes.much, changes.vanished, changes.ended,
]  # fmt: skip


@pytest.mark.parametrize(
    "scenario",
    [*QUICK, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW)],
    ids=lambda value: value.__name__,
)
async def test_both_clients_see_the_same(classes: list[Path], scenario: Scenario) -> None:
    with couchbase_server(vbuckets=8, nodes=2) as server:
        server.put("first", {"n": 0})
        async with java(server, classes) as theirs, ours(server) as mine:
            await asyncio.to_thread(scenario, server)
            await eventually(lambda: len(mine.seen) == _stored(server))
            await same(theirs, mine)


async def same(theirs: Official, mine: Ours) -> None:
    """Waits until both have seen the same changes of each vbucket."""
    await eventually(lambda: len(theirs.seen) >= len(mine.seen))
    assert by_vbucket(theirs.seen) == by_vbucket(mine.seen)


def _stored(server: CouchbaseServer) -> int:
    """The number of changes of documents that a client sees that followed from the beginning."""
    return sum(change.kind in KINDS for history in server.vbuckets.values() for change in history.items)


BEFORE: list[Scenario] = [
    changes.everything, changes.durable, changes.attributes, changes.dropped, changes.purged, changes.much,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["ENABLED", "DISABLED", "FORCED"])
@pytest.mark.parametrize("scenario", BEFORE, ids=lambda value: value.__name__)
async def test_both_clients_see_what_the_server_has(classes: list[Path], scenario: Scenario, compression: str) -> None:
    """Of the documents stored before they connect: each document's last change, in collections that exist."""
    with couchbase_server(vbuckets=8, nodes=2) as server:
        scenario(server)
        async with java(server, classes, compression=compression) as theirs, ours(server) as mine:
            there = [
                change
                for history in server.vbuckets.values()
                for change in history.since(0, server.collections.ids)
                if change.kind in (MUTATION, DELETION, EXPIRATION)
            ]
            await eventually(lambda: len(mine.seen) == len(there))
            await same(theirs, mine)
            assert sorted(change[4] for change in mine.seen) == sorted(change.cas for change in there)
            if scenario is changes.dropped:
                counts = [sum(line.startswith(f"{word} ") for line in theirs.other) for word in
                        ("scope", "collection", "dropped", "dropped-scope")]  # fmt: skip
                assert counts == [2 * 8, 6 * 8, 3 * 8, 8]


@pytest.mark.slow
async def test_both_clients_read_a_collection_until_it_is_dropped(classes: list[Path]) -> None:
    with couchbase_server(vbuckets=4) as server:
        server.create_scope("inventory")
        server.create_collection("inventory", "airline", "hotel")

        def put(key: str) -> None:
            for collection in ("airline", "hotel"):
                server.put(f"{key}-{collection}", {}, scope="inventory", collection=collection, vbucket=1)

        put("first")
        chosen = Selection("", [Collection("inventory", "airline")])
        async with (
            java(server, classes, collections="inventory.airline") as theirs,
            ours(server, selection=chosen) as mine,
        ):
            await asyncio.to_thread(put, "second")
            await eventually(lambda: mine.keys == ["first-airline", "second-airline"])
            await same(theirs, mine)
            await asyncio.to_thread(server.drop_collection, "inventory", "airline")
            await asyncio.to_thread(put_hotel, server)
            await eventually(lambda: sum(line.startswith("dropped ") for line in theirs.other) == 4)
            await eventually(lambda: "are gone" in mine.changes.problem)
            assert len(mine.seen) == len(theirs.seen) == 2


def put_hotel(server: CouchbaseServer) -> None:
    """Changes a document that no stream includes."""
    server.put("third-hotel", {}, scope="inventory", collection="hotel", vbucket=1)


@pytest.mark.slow
async def test_both_clients_begin_with_now(classes: list[Path]) -> None:
    with couchbase_server(vbuckets=8, nodes=2) as server:
        changes.everything(server)
        begins = dict.fromkeys(server.vbuckets)
        async with java(server, classes, begin="NOW") as theirs, ours(server, positions=begins) as mine:
            await asyncio.to_thread(lambda: [server.put(f"new-{n}", {"n": n}) for n in range(16)])
            await eventually(lambda: len(mine.seen) == 16)
            await same(theirs, mine)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1"])
async def test_both_clients_prove_a_password_in_each_way(classes: list[Path], mechanism: str) -> None:
    with couchbase_server(vbuckets=2) as server:
        server.mechanisms = (mechanism, "PLAIN")
        server.put("doc", {})
        async with java(server, classes) as theirs, ours(server) as mine:
            await eventually(lambda: len(mine.seen) == 1)
            await same(theirs, mine)


@pytest.mark.slow
async def test_the_official_client_takes_the_server_for_one_with_tls(classes: list[Path], tmp_path: Path) -> None:
    """With TLS it logs in with PLAIN."""
    authority = Authority()
    issued = authority.issue("node", "127.0.0.1")
    for name, text in (("chain", issued.chain_pem), ("key", issued.key_pem), ("trusted", authority.pem)):
        (tmp_path / f"{name}.pem").write_text(text)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "chain.pem", tmp_path / "key.pem")
    with couchbase_server(vbuckets=2, tls=context) as server:
        server.put("doc", {"n": 1})
        async with java(server, classes, trusted=str(tmp_path / "trusted.pem")) as theirs:
            await eventually(lambda: len(theirs.seen) == 1)


@pytest.mark.slow
async def test_both_clients_live_with_a_small_window_a_slow_server_and_noops(classes: list[Path]) -> None:
    with couchbase_server(vbuckets=2) as server:
        server.delay, server.noop_seconds = 0.005, 0.2
        async with java(server, classes, window=2048) as theirs, ours(server, window=2048) as mine:
            await asyncio.to_thread(lambda: [server.put(f"doc-{n}", {"n": n}) for n in range(300)])
            await eventually(lambda: len(mine.seen) == 300)
            await same(theirs, mine)
            streaming = [session for session in server.sessions() if session.flags >= 0]
            assert [len(stream.acknowledged) > 5 for stream in streaming] == [True, True]
            noops = server.noops
            await eventually(lambda: server.noops >= noops + 6)
            assert [session for session in server.sessions() if session.flags >= 0] == streaming


@pytest.mark.slow
@pytest.mark.parametrize("ignores", [True, False])
async def test_both_clients_go_back_where_deletions_were_purged(classes: list[Path], ignores: bool) -> None:
    with couchbase_server(vbuckets=1) as server:
        if not ignores:
            server.capabilities.discard("dcp.IgnorePurgedTombstones")
        async with java(server, classes) as theirs, ours(server) as mine:
            await asyncio.to_thread(lambda: [server.put(key, {}) for key in ("a", "b")])
            await eventually(lambda: len(mine.seen) == len(theirs.seen) == 2)
            await asyncio.to_thread(server.kill, 0)
            await asyncio.to_thread(lambda: (server.delete("a"), server.put("c", {}), server.purge(0)))
            await asyncio.to_thread(server.revive, 0)
            await eventually(lambda: len(mine.seen) == (3 if ignores else 4))
            await same(theirs, mine)
            assert [line for line in theirs.other if line.startswith("rollback")] == (
                [] if ignores else ["rollback 0 0"]
            )


async def test_both_clients_roll_back_to_the_same(classes: list[Path]) -> None:
    with couchbase_server(vbuckets=8, nodes=2) as server:
        async with java(server, classes) as theirs, ours(server) as mine:
            await asyncio.to_thread(rolled_back, server)
            await eventually(lambda: len(mine.seen) == len(theirs.seen) == 12)
            await asyncio.to_thread(server.fail_over, 2, lost=2)
            await asyncio.to_thread(server.forget_history, 5)
            await asyncio.to_thread(server.put, "new", {"n": 9}, vbucket=2)
            await eventually(lambda: len(mine.seen) == 12 + 1 + 6)
            await same(theirs, mine)
            assert sorted(line for line in theirs.other if line.startswith("rollback")) == [
                "rollback 2 4",
                "rollback 5 0",
            ]
            assert (mine.changes.rollbacks, mine.changes.taken_back) == (2, 2 + 6)


async def test_both_clients_wait_for_the_disk(classes: list[Path]) -> None:
    with couchbase_server(vbuckets=4, nodes=2) as server:
        server.persist(1, 0)
        async with java(server, classes, polling_ms=50) as theirs, ours(server, polling_ms=50) as mine:
            await asyncio.to_thread(server.put, "waits", {"n": 1}, vbucket=1)
            await asyncio.to_thread(server.put, "there", {"n": 2}, vbucket=2)
            await eventually(lambda: len(mine.seen) == len(theirs.seen) == 1)
            await asyncio.to_thread(server.persist, 1, None)
            await eventually(lambda: len(mine.seen) == len(theirs.seen) == 2)
            assert by_vbucket(theirs.seen) == by_vbucket(mine.seen)


@pytest.mark.slow
async def test_both_clients_wait_for_a_replicas_disk(classes: list[Path]) -> None:
    with couchbase_server(vbuckets=4, nodes=2) as server:
        for vbucket in server.vbuckets:
            server.replicate(vbucket, 1 - server.vbuckets[vbucket].node)
        server.persist(1, 0, replica=True)
        async with java(server, classes, polling_ms=50) as theirs, ours(server, polling_ms=50) as mine:
            await asyncio.to_thread(server.put, "waits", {"n": 1}, vbucket=1)
            await asyncio.to_thread(server.put, "there", {"n": 2}, vbucket=2)
            await eventually(lambda: len(mine.seen) == len(theirs.seen) == 1)
            observed = server.observed
            await eventually(lambda: server.observed >= observed + 8)
            assert len(mine.seen) == len(theirs.seen) == 1
            await asyncio.to_thread(server.persist, 1, None, replica=True)
            await eventually(lambda: len(mine.seen) == len(theirs.seen) == 2)
            await same(theirs, mine)

"""The official Java client and ours follow the same test server side by side: both must see the same of each scenario.

What only one of them sees is either a fault of the server, which is made from the protocol's rules, or one of ours.
"""

import asyncio
import base64
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from keelman.couchbase.changes import Changes, Wanted
from keelman.couchbase.cluster import Cluster
from keelman.couchbase.frames import Opcode
from keelman.couchbase.messages import document
from keelman.couchbase.seeds import Access, seeds_of
from keelman.couchbase.vbucket import Event, Position
from keelman.runtime.java.installation import find
from keelman.runtime.java.maven import Lock
from keelman.runtime.java.maven import jars as fetched
from keelman.runtime.processes.die_with_parent import tethered
from keelman.testing.eventually import eventually
from support.couchbase.server import CouchbaseServer, couchbase_server
from support.java_kit import missing

KIT = Path(__file__).parents[2] / "support" / "couchbase"
pytestmark = [pytest.mark.component, pytest.mark.skipif(bool(missing()), reason=missing() or "Java is here")]
KINDS = {Opcode.MUTATION: "mutation", Opcode.DELETION: "deletion", Opcode.EXPIRATION: "deletion"}
Seen = list[tuple[str, int, int, int, int, str, bytes]]
"""Kind, vbucket, seqno, revision, CAS, qualified key and content of each change, in the order of each vbucket."""


@pytest.fixture(scope="module")
async def classes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The class path of the program that follows a bucket."""
    jars = await fetched(Lock.read(KIT / "dcp_client.lock"))
    folder = tmp_path_factory.mktemp("follow")
    compiler = find().program.with_name("javac")
    command = [
        str(compiler),
        "-nowarn",
        "-d",
        str(folder),
        "-cp",
        ":".join(map(str, jars)),
        str(KIT / "java" / "Follow.java"),
    ]
    subprocess.run(command, check=True, timeout=120)
    return [folder, *jars]


class Follower:
    """The official client in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.seen: Seen = []
        self.other: list[str] = []
        self._process = process
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for raw in self._process.stdout:
            kind, *rest = raw.decode().rstrip("\n").split(" ")
            if kind in KINDS.values():
                vbucket, seqno, _, revision, cas = map(int, rest[:5])
                self.seen.append((kind, vbucket, seqno, revision, cas, rest[5], base64.b64decode(rest[6])))
            else:
                self.other.append(raw.decode().strip())

    async def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reading


@asynccontextmanager
async def java(
    server: CouchbaseServer, classes: list[Path], *, polling_ms: int = 0, window: int = 1 << 20
) -> AsyncIterator[Follower]:
    """The official client from the beginning, once it streams."""
    arguments = [server.seeds, "travel", "Administrator", "password", "ENABLED", str(window), str(polling_ms)]
    flags = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m"]
    command = tethered([str(find().program), *flags, "-cp", ":".join(map(str, classes)), "Follow", *arguments])
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    follower = Follower(process)
    try:
        await eventually(lambda: "streaming" in follower.other, seconds=90)
        yield follower
    finally:
        await follower.end()


class Ours:
    """Our client, from the beginning."""

    def __init__(self) -> None:
        self.seen: Seen = []
        self.changes: Changes | None = None

    def take(self) -> None:
        """As a reader does when told that there is something."""
        assert self.changes is not None
        self.seen += [_seen(event) for event in self.changes.take(10_000) if event.kind]


def _seen(event: Event) -> tuple[str, int, int, int, int, str, bytes]:
    name = f"{event.collection}.{event.key.decode()}"
    return KINDS[Opcode(event.kind)], event.vbucket, event.seqno, event.revision, event.cas, name, document(event)


@asynccontextmanager
async def ours(server: CouchbaseServer, *, polling_ms: int = 0, window: int = 1 << 20) -> AsyncIterator[Ours]:
    found = Ours()
    cluster = Cluster(Access(seeds_of([server.seeds]), "travel", "Administrator", "password"))
    await cluster.bootstrap()
    wanted = Wanted(polling_seconds=polling_ms / 1000, buffer_bytes=window)
    found.changes = Changes(cluster, wanted, found.take)
    await found.changes.start({number: Position() for number in server.vbuckets})
    try:
        yield found
    finally:
        await found.changes.close()


def by_vbucket(seen: Seen) -> dict[int, Seen]:
    """The changes of each vbucket in their order."""
    return {number: [one for one in seen if one[1] == number] for number in sorted({one[1] for one in seen})}


def everything(server: CouchbaseServer) -> None:
    """Each kind of change."""
    server.create_scope("inventory")
    server.create_collection("inventory", "airline")
    for n in range(20):
        server.put(f"doc-{n}", {"n": n}, snappy=n % 3 == 0)
        server.put(f"air-{n}", {"n": n}, scope="inventory", collection="airline", expiry=1_900_000_000)
    server.put("bytes", b"\x00\xff no JSON")
    server.delete("doc-3")
    server.expire("doc-4")


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
            assert mine.changes is not None
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

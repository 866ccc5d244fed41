"""Two Go clients follow the test server and see exactly its contents: it keeps to the protocol as they implement it.

gocbcore is the client of Couchbase's Go SDK, gomemcached that of Couchbase's own services; they share no code.
"""

import asyncio
import base64
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import cramjam
import pytest

from support.couchbase.changes import attributes, dropped, durable, everything, much, purged
from support.couchbase.documents import uncompressed
from support.couchbase.follower import Follower, following
from support.couchbase.server import CouchbaseServer, couchbase_server
from support.couchbase.vbuckets import DELETION, EXPIRATION, MUTATION
from support.eventually import eventually

GO = shutil.which("go") or ""
SOURCES = Path(__file__).parents[2] / "support" / "couchbase" / "go"
pytestmark = [pytest.mark.component, pytest.mark.slow, pytest.mark.skipif(not GO, reason="there is no Go")]
BUILD_SECONDS, SNAPPY, XATTRS = 400, 2, 4
Scenario = Callable[[CouchbaseServer], None]
Seen = dict[int, list[tuple[str, int, int, int, int, bytes, bytes]]]
"""By vbucket: kind, seqno, revision, CAS, collection, key and document of each change, in their order."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both, built."""
    folder = tmp_path_factory.mktemp("go")
    command = [GO, "build", "-mod=readonly", "-o", f"{folder}/", "./..."]
    outcome = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    if outcome.returncode and "dial tcp" in outcome.stderr:
        pytest.skip("the modules cannot be fetched here")
    assert not outcome.returncode, outcome.stderr
    return folder


class Client(Follower):
    """Either of the two clients."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.seen: Seen = {}
        super().__init__(process)

    def take(self, kind: str, rest: Sequence[str]) -> bool:
        if kind not in ("mutation", "deletion", "expiration"):
            return False
        vbucket, seqno, revision, cas, collection, datatype = map(int, rest[:6])
        key, value = map(base64.b64decode, rest[6:])
        if datatype & SNAPPY:
            value = bytes(cramjam.snappy.decompress_raw(value))
        self.seen.setdefault(vbucket, []).append((kind, seqno, revision, cas, collection, key, value))
        return True

    @property
    def count(self) -> int:
        """The number of changes that it has seen."""
        return sum(map(len, self.seen.values()))


def streaming(server: CouchbaseServer, program: Path) -> AbstractAsyncContextManager[Client]:
    """A client from the beginning, once it streams."""
    arguments = [server.seeds, "travel", "Administrator", "password", str(len(server.vbuckets))]
    return following(Client, [str(program), *arguments], stderr=subprocess.STDOUT)


def stored(server: CouchbaseServer, *, expirations: bool) -> Seen:
    """The changes that a client sees from the beginning.

    Without `expirations` those are deletions for it. Neither client requests extended attributes.
    """
    kinds = {MUTATION: "mutation", DELETION: "deletion", EXPIRATION: "expiration" if expirations else "deletion"}
    answer: Seen = {}
    for number, history in server.vbuckets.items():
        for change in history.since(0, server.collections.ids):
            if change.kind not in kinds:
                continue
            value = uncompressed(change.value) if change.datatype & SNAPPY else change.value
            if change.datatype & XATTRS:
                value = value[4 + int.from_bytes(value[:4]) :]
            row = kinds[change.kind], change.seqno, change.revision, change.cas, change.collection, change.key, value
            answer.setdefault(number, []).append(row)
    return answer


ALL: list[Scenario] = [everything, durable, attributes, much, dropped, purged]


@pytest.mark.parametrize("scenario", ALL, ids=lambda value: value.__name__)
@pytest.mark.parametrize("program", ["gocbcore", "gomemcached"])
async def test_a_go_client_sees_what_the_server_has(programs: Path, program: str, scenario: Scenario) -> None:
    with couchbase_server(vbuckets=8) as server:
        server.put("first", {"n": 0})
        scenario(server)
        async with streaming(server, programs / program) as client:
            expected = stored(server, expirations=program == "gocbcore")
            await eventually(lambda: client.count >= sum(map(len, expected.values())))
            assert client.seen == expected
            if scenario is much:
                assert sum(sum(session.acknowledged) for session in server.sessions()) > 1 << 20


@pytest.mark.parametrize("scenario", [everything, durable, much], ids=lambda value: value.__name__)
@pytest.mark.parametrize("program", ["gocbcore", "gomemcached"])
async def test_a_go_client_sees_what_happens_while_it_follows(programs: Path, program: str, scenario: Scenario) -> None:
    with couchbase_server(vbuckets=8) as server:
        server.put("first", {"n": 0})
        async with streaming(server, programs / program) as client:
            kinds = (MUTATION, DELETION, EXPIRATION)
            await eventually(lambda: client.count == 1)
            await asyncio.to_thread(scenario, server)
            changes = [
                change for history in server.vbuckets.values() for change in history.items if change.kind in kinds
            ]
            await eventually(lambda: client.count >= len(changes))
            seen = [(row[1], row[3], row[5]) for rows in client.seen.values() for row in rows]
            assert sorted(seen) == sorted((change.seqno, change.cas, change.key) for change in changes)


async def test_gocbcore_hears_of_collections(programs: Path) -> None:
    with couchbase_server(vbuckets=1) as server:
        async with streaming(server, programs / "gocbcore") as client:
            await asyncio.to_thread(dropped, server)
            await eventually(lambda: client.count >= 5)
            inventory, old = 8, 13
            events = [line.split() for line in client.other if line.startswith(("scope", "collection", "drop"))]
            assert [(words[0], int(words[3]), words[4:]) for words in events] == [
                ("scope", inventory, ["inventory"]),
                *[("collection", at, [each]) for at, each in ((9, "airline"), (10, "hotel"), (11, "route"))],
                ("dropped", 9, []),
                ("collection", 12, ["airline"]),
                ("scope", old, ["old"]),
                ("collection", 14, ["one"]),
                ("collection", 15, ["two"]),
                ("dropped", 14, []),
                ("dropped", 15, []),
                ("dropped-scope", old, []),
            ]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1"])
@pytest.mark.parametrize("program", ["gocbcore", "gomemcached"])
async def test_go_clients_prove_a_password_in_each_way(programs: Path, program: str, mechanism: str) -> None:
    with couchbase_server(vbuckets=1) as server:
        server.mechanisms = (mechanism,)
        server.put("first", {"n": 0})
        async with streaming(server, programs / program) as client:
            await eventually(lambda: client.count == 1)

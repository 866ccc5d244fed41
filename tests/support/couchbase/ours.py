"""Our client of a test server's bucket, and the changes it sees."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from keelman.couchbase.changes import StreamOptions, VbucketChanges
from keelman.couchbase.cluster import BucketCluster
from keelman.couchbase.errors import AwayError, CouchbaseError
from keelman.couchbase.frames import Opcode
from keelman.couchbase.manifest import Selection
from keelman.couchbase.messages import document
from keelman.couchbase.seeds import NOOP_SECONDS, BucketAccess, seeds_of
from keelman.couchbase.vbucket import Event, Position
from support.couchbase.server import CouchbaseServer

KINDS = {Opcode.MUTATION: "mutation", Opcode.DELETION: "deletion", Opcode.EXPIRATION: "deletion"}
Seen = list[tuple[str, int, int, int, int, str, bytes]]
"""Kind, vbucket, seqno, revision, CAS, qualified key and content of each change, in the order of each vbucket."""


class Ours:
    """Our client, from the beginning."""

    changes: VbucketChanges

    def __init__(self) -> None:
        self.seen: Seen = []

    @property
    def keys(self) -> list[str]:
        """The ids of the changed documents that it saw, in alphabetical order."""
        return sorted(item[5].rpartition(".")[2] for item in self.seen)

    @property
    def failure(self) -> str:
        """The error that ended the reading; for a client whose changes the test takes itself."""
        try:
            self.take()
        except (CouchbaseError, AwayError) as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def take(self) -> None:
        """Takes events as a reader does after a notification."""
        self.seen += [_seen(event) for event in self.changes.take(10_000) if event.kind]


def _seen(event: Event) -> tuple[str, int, int, int, int, str, bytes]:
    name = f"{event.collection}.{event.key.decode()}"
    return KINDS[Opcode(event.kind)], event.vbucket, event.seqno, event.revision, event.cas, name, document(event)


def access_to(server: CouchbaseServer) -> BucketAccess:
    """The settings by which it reaches the server."""
    return BucketAccess(seeds_of([server.seeds]), "travel", "Administrator", "password")


@asynccontextmanager
async def ours(
    server: CouchbaseServer,
    *,
    polling_ms: int = 0,
    window: int = 1 << 20,
    noop_seconds: float = NOOP_SECONDS,
    bootstrap_seconds: float = 30.0,
    selection: Selection | None = None,
    positions: Mapping[int, Position | None] | None = None,
    takes: bool = True,
) -> AsyncIterator[Ours]:
    """Our client, once it has begun. Without `takes` it leaves the events in their buffer."""
    actual_ours = Ours()
    access = replace(access_to(server), noop_seconds=noop_seconds, bootstrap_seconds=bootstrap_seconds)
    cluster = BucketCluster(access)
    await cluster.bootstrap()
    stream_options = StreamOptions(selection or Selection(), polling_seconds=polling_ms / 1000, buffer_bytes=window)
    actual_ours.changes = VbucketChanges(cluster, stream_options, actual_ours.take if takes else lambda: None)
    try:
        await actual_ours.changes.start(positions or {number: Position() for number in server.vbuckets})
        yield actual_ours
    finally:
        await actual_ours.changes.close()

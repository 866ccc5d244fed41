"""The test server: nodes on loopback ports, one bucket, and a method for each event of a cluster.

It runs in a thread of its own; every method may be called from the test's thread and returns when it has taken effect.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from support.couchbase import events
from support.couchbase.access import SCRAM
from support.couchbase.documents import JSON_TYPE, stored_value
from support.couchbase.nodes import Node, cluster_map
from support.couchbase.session import FEATURES, Session
from support.couchbase.vbuckets import ABORTED, DELETION, EXPIRATION, MUTATION, PREPARED, Collections, History, Item

T = TypeVar("T")


class CouchbaseServer:
    """A bucket's `vbuckets` over `nodes` nodes."""

    session: type[Session] = Session

    def __init__(
        self,
        *,
        vbuckets: int = 8,
        nodes: int = 1,
        bucket: str = "travel",
        user: str = "Administrator",
        password: str = "password",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.bucket = bucket
        self.users = {user: password}
        self.nodes = [Node(index) for index in range(nodes)]
        self.vbuckets = {number: History(number, number % nodes) for number in range(vbuckets)}
        self.collections = Collections()
        self.certified: set[str] = set()
        """Names of the clients that connected with a certificate."""
        self.mechanisms: tuple[str, ...] = (*SCRAM, "PLAIN")
        self.features = set(FEATURES)
        self.refusals: dict[tuple[int, int], tuple[int, bytes]] = {}
        """(opcode, vbucket) to the status and text that answer it: once, or always for vbucket -1."""
        self.capabilities = {"collections", "dcp.IgnorePurgedTombstones"}
        self.marker_version: int | None = None
        """The version of snapshot markers: None for the first form, 0 or 2 for clients of `max_marker_version`."""
        self.is_framed = False
        """Whether framing extras precede the messages, as for clients with stream numbers."""
        self.observed = 0
        """The number of polls of the persisted state."""
        self.asked: list[tuple[int, int, int, int, int]] = []
        """Streams that were opened: vbucket, start, vbuuid, snapshot."""
        self.revision, self.epoch, self.uuid = 1, 1, "0f" * 16
        self.delay = 0.0
        self.noop_seconds = 120.0
        self.noops = 0
        self.is_ready, self.hides_maps, self.may_read = True, False, True
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="couchbase", daemon=True)

    @property
    def seeds(self) -> str:
        """The address of the first node, host:port."""
        return f"127.0.0.1:{self.nodes[0].port}"

    def start(self) -> None:
        """Starts to listen."""
        self._thread.start()
        for node in self.nodes:
            self._await(self._listen(node))

    def stop(self) -> None:
        """Ends the server."""
        for node in self.nodes:
            self.kill(node.index)
        self._await(self._ended())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(300)
        self._loop.close()

    def map(self, node: Node) -> dict[str, Any]:
        """The cluster map from a node's point of view."""
        vbuckets = self.vbuckets.values() if self.is_ready else ()
        return cluster_map(self.nodes, node, vbuckets, is_tls=self._tls is not None) | {
            "rev": self.revision, "revEpoch": self.epoch, "name": self.bucket, "uuid": self.uuid,
            "bucketCapabilities": sorted(self.capabilities),
        }  # fmt: skip

    def put(self, key: str, document: Any, *, scope: str = "_default", collection: str = "_default", **how: Any) -> int:
        """Stores a document: its JSON, or bytes unchanged. Returns its vbucket.

        `snappy`: compressed; `xattrs`: JSON with an attribute before it; `expiry`: seconds; `vbucket`: not by its key.
        """
        value, datatype = stored_value(document, xattrs=how.get("xattrs"), snappy=bool(how.get("snappy")))
        return self._change(key, MUTATION, scope, collection, how.get("vbucket"), value, datatype, how.get("expiry", 0))

    def delete(
        self, key: str, *, scope: str = "_default", collection: str = "_default", vbucket: int | None = None
    ) -> int:
        """Deletes a document."""
        return self._change(key, DELETION, scope, collection, vbucket)

    def expire(
        self, key: str, *, scope: str = "_default", collection: str = "_default", vbucket: int | None = None
    ) -> int:
        """Expires a document."""
        return self._change(key, EXPIRATION, scope, collection, vbucket, expiry=1_800_000_000)

    def put_durably(self, key: str, document: Any, *, commits: bool | None = True, vbucket: int | None = None) -> int:
        """Writes a document synchronously: prepares it, then commits or aborts it; with None it stays prepared."""
        number = self._change(key, PREPARED, "_default", "_default", vbucket)
        if commits:
            self.put(key, document, vbucket=number)
        elif commits is not None:
            self._change(key, ABORTED, "_default", "_default", number)
        return number

    def create_scope(self, name: str) -> int:
        """Creates a scope; returns its id."""

        def work() -> int:
            at = self.collections.scope(name)
            self._system(events.scope_created(name, at, self.collections.uid))
            return at

        return self._do(work)

    def create_collection(self, scope: str, name: str, *others: str) -> int:
        """Creates a collection, or several in one change of the manifest; returns the id of the first.

        Only the last event of the change has the new number.
        """

        def work() -> int:
            of, before = self.collections.scopes[scope], self.collections.uid
            names = [name, *others]
            collections = [self.collections.collection(scope, name) for name in names]
            self.collections.uid = before + 1
            for single_name, at in zip(names, collections, strict=True):
                self._system(events.collection_created(single_name, at, of, before + (at == collections[-1])))
            return collections[0]

        return self._do(work)

    def drop_collection(self, scope: str, name: str) -> None:
        """Drops the collection; streams of this collection alone end after the event that reports it."""

        def work() -> None:
            of, at = self.collections.scopes[scope], self.collections.drop(scope, name)
            self._system(events.collection_dropped(at, of, self.collections.uid))

        self._do(work)

    def drop_scope(self, name: str) -> None:
        """Drops a scope, after its collections."""

        def work() -> None:
            of, gone = self.collections.drop_scope(name)
            for at in gone:
                self._system(events.collection_dropped(at, of, self.collections.uid - 1))
            self._system(events.scope_dropped(of, self.collections.uid))

        self._do(work)

    def purge(self, vbucket: int) -> None:
        """Forgets deletions: a reader that has not read them returns to the beginning, unless it ignores purges."""
        self._do(self.vbuckets[vbucket].purge)

    def replicate(self, vbucket: int, node: int) -> None:
        """Gives another node a replica of the vbucket, and tells clients."""

        def work() -> None:
            self.vbuckets[vbucket].replica = node
            self._new_map()

        self._do(work)

    def part(self, vbucket: int, *, other: bool = True) -> None:
        """Gives the vbucket's replica another history, or the same again."""
        own = [(0xBAD0_0000_0000_0000 + vbucket, 0)] if other else None
        self._do(lambda: setattr(self.vbuckets[vbucket], "replica_log", own))

    def replace_node(self, node: int, other: int) -> None:
        """Gives the node's vbuckets to another and removes the node from all maps; no connection or stream ends."""

        def work() -> None:
            for history in self.vbuckets.values():
                if history.node == node:
                    history.node = other
            self.nodes[node].member = False
            self._new_map()

        self._do(work)

    def move(self, vbucket: int, node: int) -> None:
        """Moves the active copy to another node, as a rebalance does, and tells clients."""

        def work() -> None:
            self.vbuckets[vbucket].node = node
            self._new_map()
            self._end(vbucket, 2)

        self._do(work)

    def fail_over(self, vbucket: int, *, lost: int = 0, node: int | None = None, silently: bool = False) -> None:
        """Makes another copy the active one, without the last changes."""

        def work() -> None:
            history = self.vbuckets[vbucket]
            history.fail_over(lost)
            history.node = history.node if node is None else node
            self._new_map()
            if silently:
                for session in self._sessions():
                    session.streams.pop(vbucket, None)
            else:
                self._end(vbucket, 2)

        self._do(work)

    def forget_history(self, vbucket: int, *, silently: bool = False) -> None:
        """The vbucket begins anew under another uuid, as after a flush of its files; silently: streams continue."""

        def work() -> None:
            history = self.vbuckets[vbucket]
            history.log = [(0xDEAD_0000_0000_0000 + vbucket, 0)]
            if not silently:
                self._end(vbucket, 2)

        self._do(work)

    def persist(self, vbucket: int, seqno: int | None, *, replica: bool = False) -> None:
        """Sets the last persisted number, at the vbucket's node or its replica's; None persists everything at once."""
        self._do(lambda: setattr(self.vbuckets[vbucket], "replica_persisted" if replica else "persisted", seqno))

    def end_streams(self, reason: int) -> None:
        """Ends all streams."""
        self._do(lambda: [self._end(vbucket, reason) for vbucket in self.vbuckets])

    def cut(self) -> None:
        """Ends all connections."""
        self._do(lambda: [session.cut() for session in self._sessions()])

    def silence(self, node: int | None = None, *, on: bool = True) -> None:
        """Makes the server, or a node of it, read and answer nothing, with its connections open."""

        def work() -> None:
            for session in self._sessions():
                if node is None or session.node.index == node:
                    session.silent = on
                    session.wake()

        self._do(work)

    def malformed(self) -> None:
        """Writes an invalid frame to each connection with streams."""
        self._do(lambda: [session.writer.write(b"\x16\x03\x01" * 9) for session in self._sessions() if session.streams])

    def put_and_garble(self, key: str, document: Any) -> None:
        """Stores a document and sends it with an invalid frame after it, in one piece."""
        number = zlib.crc32(key.encode()) % len(self.vbuckets)

        def work() -> None:
            of = self.collections.collections["_default", "_default"]
            item = self.vbuckets[number].add(
                Item(0, MUTATION, key.encode(), json.dumps(document).encode(), JSON_TYPE, of)
            )
            for session in self._sessions():
                if number in session.streams:
                    session.garbled(number, item)

        self._do(work)

    def refuse(self, opcode: int, status: int, *, vbucket: int = -1, text: bytes = b"") -> None:
        """Answers a request with this status: once for a vbucket, always without one."""
        self._do(lambda: self.refusals.__setitem__((opcode, vbucket), (status, text)))

    def refused(self, opcode: int, vbucket: int) -> tuple[int, bytes] | None:
        """The answer to a request that the test has refused, or None."""
        return self.refusals.pop((opcode, vbucket), None) or self.refusals.get((opcode, -1))

    def kill(self, node: int) -> None:
        """Closes a node's port and ends its connections."""

        def work() -> None:
            single_node = self.nodes[node]
            if single_node.listening is not None:
                single_node.listening.close()
            for session in list(single_node.sessions):
                session.cut()

        self._do(work)

    def revive(self, node: int) -> None:
        """Reopens the node's port."""
        self._await(self._listen(self.nodes[node]))

    def sessions(self) -> list[Session]:
        """The open connections."""
        return self._do(lambda: list(self._sessions()))

    def _change(  # noqa: PLR0917  the fields of a change
        self, key: str, kind: int, scope: str, collection: str, vbucket: int | None, value: bytes = b"",
        datatype: int = 0, expiry: int = 0,
    ) -> int:  # fmt: skip
        number = zlib.crc32(key.encode()) % len(self.vbuckets) if vbucket is None else vbucket

        def work() -> None:
            of = self.collections.collections[scope, collection]
            item = Item(0, kind, key.encode(), value, datatype, of, expiry=expiry)
            self.vbuckets[number].add(item)
            self._wake()

        self._do(work)
        return number

    def _system(self, item: Item) -> None:
        for history in self.vbuckets.values():
            history.add(item)
        self._wake()

    def _wake(self) -> None:
        for session in self._sessions():
            session.wake()

    def _end(self, vbucket: int, reason: int) -> None:
        for session in self._sessions():
            session.end_stream(vbucket, reason)

    def _new_map(self) -> None:
        self.revision += 1
        if not self.hides_maps:
            for session in self._sessions():
                session.push_map()

    def _sessions(self) -> Iterator[Session]:
        for node in self.nodes:
            yield from node.sessions

    async def _ended(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _listen(self, node: Node) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            session = self.session(self, node, reader, writer)
            node.sessions.append(session)
            try:
                await session.run()
            finally:
                node.sessions.remove(session)

        node.listening = await asyncio.start_server(serve, "127.0.0.1", node.port, ssl=self._tls)
        node.port = node.listening.sockets[0].getsockname()[1]

    def _do(self, work: Callable[[], T]) -> T:
        async def now() -> T:
            return work()

        return self._await(now())

    def _await(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(300)


@contextmanager
def couchbase_server(**how: Any) -> Iterator[CouchbaseServer]:
    """A server that ends with the block."""
    server = CouchbaseServer(**how)
    server.start()
    try:
        yield server
    finally:
        server.stop()

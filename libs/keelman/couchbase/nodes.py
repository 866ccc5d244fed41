"""The nodes that send changes: one connection to each that is needed, and the newest map of all of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from keelman.couchbase.cluster import BucketCluster, failover_log, manifest_of
from keelman.couchbase.cluster_map import NodeAddress
from keelman.couchbase.connection import Connection, ConnectionListener
from keelman.couchbase.errors import AwayError, CouchbaseError, NotReadyError
from keelman.couchbase.frames import Feature
from keelman.couchbase.handshake import controls_of, open_dcp
from keelman.couchbase.manifest import CollectionManifest
from keelman.couchbase.messages import Decoder
from keelman.couchbase.vbucket import Branch
from keelman.runtime.backoff import Backoff
from keelman.runtime.supervise import wait_or_stop

AGAIN_SECONDS, MAX_AGAIN_SECONDS = 0.2, 5.0
MAP_SECONDS = 2.0
SEEDS_SECONDS = 10.0
"""If the map has been wrong for this long, the client requests one from nodes other than the connected ones too."""


class NodeConnections:
    """The connections of one client to nodes, in one event loop. `listener` gets the nodes' messages, `manifest` learns
    each node's collections; `window` and `flags` apply to every connection."""

    def __init__(
        self,
        cluster: BucketCluster,
        manifest: CollectionManifest,
        listener: ConnectionListener,
        *,
        window: int,
        flags: int,
    ) -> None:
        self._cluster, self._manifest, self._listener = cluster, manifest, listener
        self._window, self._flags = window, flags
        self._connections: dict[NodeAddress, asyncio.Task[Connection]] = {}
        self._learning: asyncio.Task[None] | None = None

    async def active(self, vbucket: int) -> Connection:
        """Returns the connection to the node with the vbucket's active copy. Raises AwayError, NotReadyError,
        CouchbaseError."""
        current = self._cluster.map
        address = None if current is None else current.active(vbucket)
        if address is None:
            raise NotReadyError(f"vbucket {vbucket} has no active copy now")
        return await self.connect(address)

    async def histories(self, vbuckets: Iterable[int], problems: dict[int, str]) -> dict[int, list[Branch]]:
        """Returns the histories of all these vbuckets. They are requested concurrently: a bucket has 1,024. `problems`
        gets the reason for each vbucket whose request is being retried. Raises AwayError, CouchbaseError."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._cluster.access.bootstrap_seconds
        tasks = {number: loop.create_task(self._history(number, problems, until)) for number in vbuckets}
        try:
            await asyncio.gather(*tasks.values())
        finally:
            for task in tasks.values():
                task.cancel()
        return {number: task.result() for number, task in tasks.items()}

    async def _history(self, number: int, problems: dict[int, str], until: float) -> list[Branch]:
        """Returns the history of one vbucket; retries until the deadline if its node cannot serve it yet."""
        again, loop = Backoff(AGAIN_SECONDS, MAX_AGAIN_SECONDS), asyncio.get_running_loop()
        while True:
            changed = self._cluster.changed
            try:
                connection = await self.active(number)
                history = await failover_log(connection, number)
            except NotReadyError as error:
                if loop.time() >= until:
                    raise
                problems[number] = str(error)
                if not (error.cluster_map and self._cluster.take_map(error.cluster_map, connection.address)):
                    await wait_or_stop(changed, again.next())
                continue
            problems.pop(number, None)
            return history

    async def learn_manifest(self, vbuckets: Iterable[int]) -> None:
        """Learns the bucket's collections from a node of these vbuckets. Concurrent calls share one request."""
        if self._learning is None or self._learning.done():
            self._learning = asyncio.get_running_loop().create_task(self._learn_manifest(vbuckets))
        await asyncio.shield(self._learning)

    async def _learn_manifest(self, vbuckets: Iterable[int]) -> None:
        for address in self._cluster.actives(vbuckets):
            with contextlib.suppress(AwayError):
                self._manifest.learn(await manifest_of(await self.connect(address)))
                return

    async def connect(self, address: NodeAddress) -> Connection:
        """Returns the only connection to a node; opens it if there is none. Raises AwayError, CouchbaseError."""
        task = self._connections.get(address)
        if task is None:
            task = self._connections[address] = asyncio.get_running_loop().create_task(self._opened(address))
        try:
            return await asyncio.shield(task)
        except (AwayError, CouchbaseError):
            if self._connections.get(address) is task:
                del self._connections[address]
            raise

    def forget(self, connection: Connection) -> None:
        """Removes a lost connection: the next caller that needs its node opens another one."""
        self._connections.pop(connection.address, None)

    def close(self) -> None:
        """Ends all connections."""
        for connection in self._open():
            connection.close()
        for task in self._connections.values():
            task.cancel()
        if self._learning is not None:
            self._learning.cancel()

    async def keep_map(self, has_problem: Callable[[], bool]) -> None:
        """Requests maps if servers do not push them, and whenever there is a problem. While the problem lasts and no
        connected node has another map, the seeds and all other nodes are tried: the connected ones may be gone."""
        loop = asyncio.get_running_loop()
        current, since = self._cluster.map, loop.time()
        while True:
            await asyncio.sleep(MAP_SECONDS)
            await self._ask_connected(always=has_problem())
            if self._cluster.map is not current or not has_problem():
                current, since = self._cluster.map, loop.time()
            elif loop.time() - since >= SEEDS_SECONDS:
                await self._cluster.ask_all()
                since = loop.time()

    async def leave_gone(self) -> None:
        """Ends the connections to nodes that a new map does not have: a node that hangs would not end its own."""
        while True:
            changed, current = self._cluster.changed, self._cluster.map
            for connection in self._open():
                if current is not None and connection.address not in current.nodes:
                    connection.leave("the node is no longer in the cluster")
            await changed.wait()

    def _open(self) -> list[Connection]:
        return [
            task.result()
            for task in self._connections.values()
            if task.done() and not task.cancelled() and task.exception() is None
        ]

    async def _ask_connected(self, *, always: bool) -> None:
        for connection in self._open():
            if Feature.CLUSTER_MAP_PUSH in connection.features and not always:
                continue
            with contextlib.suppress(AwayError, CouchbaseError):
                await self._cluster.ask_map(connection)
                break

    async def _opened(self, address: NodeAddress) -> Connection:
        connection = await self._cluster.connect(address, self._listener)
        try:
            controls = controls_of(self._cluster.access, connection.features, self._window)
            await open_dcp(connection, self._cluster.access, controls, self._flags)
            self._manifest.learn(await manifest_of(connection))
            collections = Feature.COLLECTIONS in connection.features
            connection.stream(Decoder(self._manifest, collections=collections), self._window)
        except BaseException:
            connection.close()
            raise
        return connection

"""The nodes of a cluster by one bucket's map, and a connection to each that is needed."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from keelman.couchbase.cluster_map import ClusterMap, NodeAddress, is_bucket_map, parse_map
from keelman.couchbase.connection import Connection, ConnectionListener
from keelman.couchbase.errors import AwayError, CouchbaseError, NotReadyError, RefusedError, UnservedError
from keelman.couchbase.frames import PASSING, Feature, Opcode, ResponseStatus
from keelman.couchbase.handshake import log_in, status_text
from keelman.couchbase.manifest import CollectionManifest, parse_manifest
from keelman.couchbase.seeds import PORT, TLS_PORT, BucketAccess
from keelman.couchbase.vbucket import Branch, parse_log
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import wait_or_stop

NOT_READY_SECONDS, AGAIN_SECONDS = 2.0, 0.2
_ACTIVE = struct.pack(">I", 1)
_SEQNO = struct.Struct(">HQ")

_log = get_logger()


class BucketCluster:
    """One bucket of a cluster. `map` is the newest known map; `changed` is set when a newer one arrives."""

    def __init__(self, access: BucketAccess) -> None:
        self.access = access
        self.map: ClusterMap | None = None
        self.changed = asyncio.Event()

    async def bootstrap(self) -> ClusterMap:
        """Returns the bucket's map, from the first seed that has it.

        Raises CouchbaseError if a seed refuses the client; AwayError naming each seed if none answers, or if the bucket
        has no vbuckets within `bootstrap_seconds`.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self.access.bootstrap_seconds
        while True:
            cluster_map = await self._from_seeds()
            if cluster_map.vbuckets:
                return cluster_map
            if loop.time() + NOT_READY_SECONDS > until:
                raise AwayError(f"bucket {self.access.bucket!r} is not ready: its map has no vbuckets yet")
            await asyncio.sleep(NOT_READY_SECONDS)

    def take_map(self, text: bytes, node_address: NodeAddress) -> bool:
        """Takes over a newer map. Returns whether it was newer. A map without vbuckets, as of a bucket that is not
        ready, does not replace one with vbuckets. Raises CouchbaseError for text that is not a map."""
        if not is_bucket_map(text):
            return False
        access = self.access
        newer = parse_map(text, node_address, access.seeds, tls=access.tls is not None, network=access.network)
        current = self.map
        if not newer.is_newer_than(current) or (current is not None and current.vbuckets and not newer.vbuckets):
            return False
        if current is not None and current.uuid != newer.uuid:
            _log.warning("couchbase_bucket_is_another", bucket=access.bucket, uuid=newer.uuid, before=current.uuid)
        self.map = newer
        self.changed.set()
        self.changed = asyncio.Event()
        return True

    async def ask_map(self, connection: Connection) -> None:
        """Requests a node's map. Raises AwayError, CouchbaseError."""
        answer = await connection.request(Opcode.CLUSTER_MAP)
        if answer.status == ResponseStatus.SUCCESS:
            self.take_map(answer.value, connection.address)
        elif answer.status in PASSING or answer.status in (ResponseStatus.NO_BUCKET, ResponseStatus.CONFIG_ONLY):
            raise AwayError(f"{connection.where} has no map of bucket {self.access.bucket!r}: {status_text(answer)}")
        else:
            raise CouchbaseError(f"{connection.where} gives no map: {status_text(answer)}")

    async def ask_all(self) -> None:
        """Requests another map from the seeds and then from the nodes of the current map, in turn, until one has it."""
        current = self.map
        nodes = () if current is None else current.nodes
        for address in dict.fromkeys([*self._seeds, *nodes]):
            if address is None:
                continue
            with contextlib.suppress(AwayError, CouchbaseError):
                async with self.logged_in(address) as connection:
                    await self.ask_map(connection)
            if self.map is not current:
                return

    @asynccontextmanager
    async def logged_in(
        self, address: NodeAddress, listener: ConnectionListener | None = None
    ) -> AsyncIterator[Connection]:
        """Opens a connection to a node for the duration of the block. Raises AwayError, CouchbaseError."""
        connection = await self.connect(address, listener)
        try:
            yield connection
        finally:
            connection.close()

    async def connect(self, address: NodeAddress, listener: ConnectionListener | None = None) -> Connection:
        """Returns a logged-in connection to a node. Raises AwayError, CouchbaseError."""
        connection = await Connection.connect(address, self.access, listener or Nobody())
        try:
            async with asyncio.timeout(self.access.bootstrap_seconds):
                connection.features = await log_in(connection, self.access)
        except TimeoutError:
            connection.close()
            raise AwayError(f"{address} does not finish the login in {self.access.bootstrap_seconds:g} s") from None
        except BaseException:
            connection.close()
            raise
        return connection

    async def high_seqnos(self, vbuckets: Iterable[int]) -> dict[int, int]:
        """Returns the last change of each of these vbuckets that has an active copy. Raises AwayError,
        CouchbaseError."""
        requested, high_seqnos = set(vbuckets), dict[int, int]()
        for address in self.actives(requested):
            async with self.logged_in(address) as connection:
                seqnos = await high_seqnos_of(connection)
                high_seqnos.update({vbucket: seqno for vbucket, seqno in seqnos.items() if vbucket in requested})
        return high_seqnos

    async def all_high_seqnos(self, vbuckets: Iterable[int]) -> dict[int, int]:
        """Returns the last change of each of these vbuckets; retries for those that have no active copy now. Raises
        AwayError too if some have none for `bootstrap_seconds`."""
        loop, high_seqnos = asyncio.get_running_loop(), dict[int, int]()
        until, missing = loop.time() + self.access.bootstrap_seconds, list(vbuckets)
        while missing:
            high_seqnos |= await self.high_seqnos(missing)
            missing = [vbucket for vbucket in missing if vbucket not in high_seqnos]
            if missing:
                if loop.time() >= until:
                    raise AwayError(f"vbucket {missing[0]} has no active copy now: its last change is not known")
                await self.ask_all()
                await wait_or_stop(self.changed, AGAIN_SECONDS)
        return high_seqnos

    def actives(self, vbuckets: Iterable[int]) -> list[NodeAddress]:
        """Returns the nodes that have the active copies of these vbuckets."""
        current = self.map
        nodes = {} if current is None else {current.active(vbucket): None for vbucket in vbuckets}
        return [node for node in nodes if node is not None]

    @property
    def _seeds(self) -> list[NodeAddress]:
        default = TLS_PORT if self.access.tls is not None else PORT
        return [NodeAddress(seed.host, seed.port or default) for seed in self.access.seeds]

    async def _from_seeds(self) -> ClusterMap:
        failures = []
        for address in self._seeds:
            try:
                async with self.logged_in(address) as connection:
                    await self.ask_map(connection)
            except AwayError as error:
                failures.append(str(error))
                continue
            if self.map is not None:
                return self.map
            failures.append(f"{address} has no map of bucket {self.access.bucket!r}: it is no data node")
        raise AwayError("no Couchbase node answers: " + "; ".join(failures))


async def high_seqnos_of(connection: Connection, collection: int | None = None) -> dict[int, int]:
    """Returns the last change of each vbucket whose active copy is on a node or, with `collection`, the collection's
    last change. Raises AwayError, UnservedError."""
    of = b"" if collection is None else struct.pack(">I", collection)
    answer = await connection.request(Opcode.ALL_SEQNOS, extras=_ACTIVE + of)
    if answer.status:
        raise UnservedError(f"{connection.where} does not name its vbuckets' last changes: {status_text(answer)}")
    return dict(_SEQNO.iter_unpack(answer.value[: len(answer.value) // _SEQNO.size * _SEQNO.size]))


async def failover_log(connection: Connection, vbucket: int) -> list[Branch]:
    """Returns the history of a vbucket, the newest branch first. Raises AwayError, NotReadyError, RefusedError."""
    answer = await connection.request(Opcode.FAILOVER_LOG, vbucket=vbucket)
    if answer.status:
        text = f"{connection.where} gives no failover log of vbucket {vbucket}: {status_text(answer)}"
        if answer.status == ResponseStatus.NOT_MY_VBUCKET:
            raise NotReadyError(text, answer.value)
        if answer.status in PASSING or answer.status in (ResponseStatus.NO_BUCKET, ResponseStatus.CONFIG_ONLY):
            raise NotReadyError(text)
        raise RefusedError(text, answer.status)
    return parse_log(answer.value)


async def manifest_of(connection: Connection) -> CollectionManifest:
    """Returns the bucket's collections; only the default collection if the server knows no collections. Raises
    AwayError, UnservedError, CouchbaseError."""
    if Feature.COLLECTIONS not in connection.features:
        return CollectionManifest()
    answer = await connection.request(Opcode.MANIFEST)
    if answer.status:
        raise UnservedError(f"{connection.where} gives no collections: {status_text(answer)}")
    return parse_manifest(answer.value)


class Nobody:
    """A listener that ignores everything: for connections that only send requests."""

    def events(self, connection: Connection, events: object) -> None:
        """Ignores events: none come."""

    def map_pushed(self, connection: Connection, value: bytes) -> None:
        """Ignores the map."""

    def stream_ended(self, connection: Connection, vbucket: int, reason: int) -> None:
        """Ignores the end: no stream was opened."""

    def lost(self, connection: Connection, reason: str) -> None:
        """Ignores the loss: the request raises."""

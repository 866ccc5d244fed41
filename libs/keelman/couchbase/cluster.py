"""The nodes of a cluster as one bucket's map names them, and a connection to each that is needed."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from keelman.couchbase.cluster_map import ClusterMap, NodeAddress, is_bucket_map, parse_map
from keelman.couchbase.connection import Connection, Listener
from keelman.couchbase.errors import AwayError, CouchbaseError, NotReadyError, RefusedError, UnservedError
from keelman.couchbase.frames import PASSING, Feature, Opcode, Status
from keelman.couchbase.handshake import log_in, status_text
from keelman.couchbase.manifest import Manifest, parse_manifest
from keelman.couchbase.seeds import PORT, TLS_PORT, Access
from keelman.couchbase.vbucket import Branch, parse_log
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import wait_or_stop

NOT_READY_SECONDS, AGAIN_SECONDS = 2.0, 0.2
_ACTIVE = struct.pack(">I", 1)
_SEQNO = struct.Struct(">HQ")

_log = get_logger()


class Cluster:
    """One bucket. `map` is the newest that is known; whoever waits for another one waits for `changed`."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.map: ClusterMap | None = None
        self.changed = asyncio.Event()

    async def bootstrap(self) -> ClusterMap:
        """The bucket's map, from the first seed that has one.

        Raises CouchbaseError where a seed refuses us, AwayError that names each seed where none answers, or where the
        bucket has no vbuckets within the time to bootstrap.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self.access.bootstrap_seconds
        while True:
            found = await self._from_seeds()
            if found.vbuckets:
                return found
            if loop.time() + NOT_READY_SECONDS > until:
                raise AwayError(f"bucket {self.access.bucket!r} is not ready: its map has no vbuckets yet")
            await asyncio.sleep(NOT_READY_SECONDS)

    def take_map(self, text: bytes, asked: NodeAddress) -> bool:
        """Takes a map in that is newer; whether it is. One without vbuckets, as of a bucket that is not ready, replaces
        none that has them. Raises CouchbaseError for one that is none."""
        if not is_bucket_map(text):
            return False
        access = self.access
        found = parse_map(text, asked, access.seeds, tls=access.tls is not None, network=access.network)
        known = self.map
        if not found.is_newer_than(known) or (known is not None and known.vbuckets and not found.vbuckets):
            return False
        if known is not None and known.uuid != found.uuid:
            _log.warning("couchbase_bucket_is_another", bucket=access.bucket, uuid=found.uuid, before=known.uuid)
        self.map = found
        self.changed.set()
        self.changed = asyncio.Event()
        return True

    async def ask_map(self, connection: Connection) -> None:
        """Asks a node for its map. Raises AwayError, CouchbaseError."""
        answer = await connection.request(Opcode.CLUSTER_MAP)
        if answer.status == Status.SUCCESS:
            self.take_map(answer.value, connection.address)
        elif answer.status in PASSING or answer.status in (Status.NO_BUCKET, Status.CONFIG_ONLY):
            raise AwayError(f"{connection.where} has no map of bucket {self.access.bucket!r}: {status_text(answer)}")
        else:
            raise CouchbaseError(f"{connection.where} gives no map: {status_text(answer)}")

    async def ask_all(self) -> None:
        """Asks the seeds and then the nodes of the map for another map, one after the other until one has it."""
        known = self.map
        nodes = () if known is None else known.nodes
        for address in dict.fromkeys([*self._seeds, *nodes]):
            if address is None:
                continue
            with contextlib.suppress(AwayError, CouchbaseError):
                async with self.logged_in(address) as connection:
                    await self.ask_map(connection)
            if self.map is not known:
                return

    @asynccontextmanager
    async def logged_in(self, address: NodeAddress, listener: Listener | None = None) -> AsyncIterator[Connection]:
        """A connection to a node for a while. Raises AwayError, CouchbaseError."""
        connection = await self.connect(address, listener)
        try:
            yield connection
        finally:
            connection.close()

    async def connect(self, address: NodeAddress, listener: Listener | None = None) -> Connection:
        """A connection to a node, logged in. Raises AwayError, CouchbaseError."""
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
        """The last change of each of these vbuckets that has an active copy. Raises AwayError, CouchbaseError."""
        asked, found = set(vbuckets), dict[int, int]()
        for address in self.actives(asked):
            async with self.logged_in(address) as connection:
                seqnos = await high_seqnos_of(connection)
                found.update({vbucket: seqno for vbucket, seqno in seqnos.items() if vbucket in asked})
        return found

    async def all_high_seqnos(self, vbuckets: Iterable[int]) -> dict[int, int]:
        """The same, asked for again where some have no active copy now. Raises AwayError too where that stays so for
        the time to bootstrap."""
        loop, found = asyncio.get_running_loop(), dict[int, int]()
        until, missing = loop.time() + self.access.bootstrap_seconds, list(vbuckets)
        while missing:
            found |= await self.high_seqnos(missing)
            missing = [vbucket for vbucket in missing if vbucket not in found]
            if missing:
                if loop.time() >= until:
                    raise AwayError(f"vbucket {missing[0]} has no active copy now: its last change is not known")
                await self.ask_all()
                await wait_or_stop(self.changed, AGAIN_SECONDS)
        return found

    def actives(self, vbuckets: Iterable[int]) -> list[NodeAddress]:
        """The nodes that have the active copies of these vbuckets."""
        current = self.map
        found = {} if current is None else {current.active(one): None for one in vbuckets}
        return [one for one in found if one is not None]

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
    """The last change of each vbucket whose active copy is on a node, or that of a collection by its id. Raises
    AwayError, UnservedError."""
    of = b"" if collection is None else struct.pack(">I", collection)
    answer = await connection.request(Opcode.ALL_SEQNOS, extras=_ACTIVE + of)
    if answer.status:
        raise UnservedError(f"{connection.where} does not name its vbuckets' last changes: {status_text(answer)}")
    return dict(_SEQNO.iter_unpack(answer.value[: len(answer.value) // _SEQNO.size * _SEQNO.size]))


async def failover_log(connection: Connection, vbucket: int) -> list[Branch]:
    """The history of a vbucket, the newest branch first. Raises AwayError, NotReadyError, RefusedError."""
    answer = await connection.request(Opcode.FAILOVER_LOG, vbucket=vbucket)
    if answer.status:
        text = f"{connection.where} gives no failover log of vbucket {vbucket}: {status_text(answer)}"
        if answer.status == Status.NOT_MY_VBUCKET:
            raise NotReadyError(text, answer.value)
        if answer.status in PASSING or answer.status in (Status.NO_BUCKET, Status.CONFIG_ONLY):
            raise NotReadyError(text)
        raise RefusedError(text, answer.status)
    return parse_log(answer.value)


async def manifest_of(connection: Connection) -> Manifest:
    """The bucket's collections; those of before there were any where the server knows none. Raises AwayError,
    UnservedError, CouchbaseError."""
    if Feature.COLLECTIONS not in connection.features:
        return Manifest()
    answer = await connection.request(Opcode.MANIFEST)
    if answer.status:
        raise UnservedError(f"{connection.where} gives no collections: {status_text(answer)}")
    return parse_manifest(answer.value)


class Nobody:
    """Hears nothing: of connections that only ask."""

    def events(self, connection: Connection, events: object) -> None:
        """None come."""

    def map_pushed(self, connection: Connection, value: bytes) -> None:
        """Not wanted."""

    def stream_ended(self, connection: Connection, vbucket: int, reason: int) -> None:
        """None was opened."""

    def lost(self, connection: Connection, why: str) -> None:
        """Nothing to do: the request raises."""

"""Queries Couchbase nodes for the last changes of the vbuckets that parked tasks wait for: one request per node and
second, for all tasks that reach the bucket in the same way. Each new map queries the branches of their histories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from keelman.connect.errors import ConnectError
from keelman.connect.watches import VbucketWatch
from keelman.connectors.couchbase.keys import COLLECTIONS, access_by
from keelman.connectors.couchbase.values import collection_of
from keelman.couchbase.cluster import BucketCluster, Nobody, failover_log, high_seqnos_of, manifest_of
from keelman.couchbase.cluster_map import NodeAddress
from keelman.couchbase.connection import Connection
from keelman.couchbase.errors import AwayError, CouchbaseError, UnservedError
from keelman.couchbase.frames import Feature
from keelman.couchbase.manifest import Collection
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import Siblings, first_of

log = get_logger()
ASK_SECONDS, MAX_PAUSE_SECONDS = 1.0, 10.0


@dataclass(slots=True, eq=False)
class WatchedVbuckets:
    """Vbuckets under watch; `wake` is called once, when there is more, and then the watch ends."""

    watch: VbucketWatch
    wake: Callable[[], None]


class VbucketWatches:
    """Runs a loop for each bucket, while anything of it is watched."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[tuple[str, str], ...], _Bucket] = {}
        self._siblings: Siblings | None = None

    def begin(self, siblings: Siblings) -> None:
        """Sets the scope in which the loops run."""
        self._siblings = siblings

    def __len__(self) -> int:
        return sum(len(bucket.watched) for bucket in self._buckets.values())

    def add(self, vbuckets: WatchedVbuckets) -> None:
        """Watches them from now on."""
        assert self._siblings is not None
        key = _key(vbuckets.watch)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(dict(key))
            self._siblings.start(self._life(key, bucket), name="vbucket watches")
        bucket.watched[vbuckets] = None

    def remove(self, vbuckets: WatchedVbuckets) -> None:
        """Ends their watch; does nothing when they are not watched."""
        bucket = self._buckets.get(_key(vbuckets.watch))
        if bucket is not None:
            bucket.watched.pop(vbuckets, None)

    async def _life(self, key: tuple[tuple[str, str], ...], bucket: _Bucket) -> None:
        try:
            await bucket.run()
        finally:
            del self._buckets[key]


class _Bucket:
    """Watches one bucket's vbuckets."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._silent = False
        self.watched: dict[WatchedVbuckets, None] = {}

    async def run(self) -> None:
        """Runs until nothing is watched any more. Nodes that do not answer are tried again and again."""
        backoff = Backoff(first=ASK_SECONDS, most=MAX_PAUSE_SECONDS)
        while self.watched:
            try:
                await self._ask(backoff)
            except AwayError as error:
                self._is_silent(error)
                await asyncio.sleep(backoff.next())
            except (ConnectError, CouchbaseError) as error:  # cannot be watched at all: the tasks' clients report it
                log.warning("watch_failed", nodes=self._nodes, error=str(error))
                self._wake(list(self.watched))

    @property
    def _nodes(self) -> str:
        return self._properties["couchbase.seed.nodes"]

    async def _ask(self, backoff: Backoff) -> None:
        """Watches by one map, until that is no longer valid: each node in a loop of its own, so that an absent node
        does not delay the others. Raises AwayError where all are away, CouchbaseError, ConnectError."""
        cluster = BucketCluster(access_by(self._properties))
        await cluster.bootstrap()
        nodes_asked = _AskedNodes(cluster, cluster.actives(self._numbers()))
        if not nodes_asked.addresses:
            raise AwayError("no vbucket that is waited for has an active copy now")
        await first_of(*(self._ask_node(nodes_asked, address, backoff) for address in nodes_asked.addresses))

    async def _ask_node(self, nodes_asked: _AskedNodes, address: NodeAddress, backoff: Backoff) -> None:
        """Watches one node until the map is no longer valid. Raises AwayError where no other node answers either."""
        pause = Backoff(first=ASK_SECONDS, most=MAX_PAUSE_SECONDS)
        while True:
            try:
                async with nodes_asked.cluster.logged_in(address, nodes_asked) as node:
                    branches: dict[int, int] = {}
                    while self.watched:
                        last = await self._look(node, branches)
                        pause.reset()
                        backoff.reset()
                        nodes_asked.away.discard(address)
                        if self._silent and not nodes_asked.away:
                            log.info("watched_bucket_answers_again", nodes=self._nodes)
                            self._silent = False
                        await asyncio.sleep(ASK_SECONDS)
                        if await nodes_asked.is_over(node, self._numbers(), last):
                            return  # a vbucket has moved or begun another branch, or is newly watched
                    return
            except AwayError as error:
                self._is_silent(error)
                if nodes_asked.is_away(address):
                    raise
            await asyncio.sleep(pause.next())

    async def _look(self, node: Connection, branches: dict[int, int]) -> Mapping[int, int]:
        """Returns the last changes of a node's vbuckets; wakes tasks that have not read up to them."""
        last = await high_seqnos_of(node)
        for number in self._numbers() & last.keys() - branches.keys():
            history = await failover_log(node, number)
            if history:
                branches[number] = history[0].vbuuid
        changed = [entry for entry in self.watched if _changed(entry.watch, last, branches)]
        self._wake(await self._concerned(node, changed, last, branches))
        return last

    async def _concerned(
        self, node: Connection, changed: list[WatchedVbuckets], last: Mapping[int, int], branches: Mapping[int, int]
    ) -> list[WatchedVbuckets]:
        """Returns those that read more than one collection, or whose own collection has changed, or where that is
        unknown. Queries each collection once. Raises AwayError."""
        chosen = {entry: entry.watch.properties.get(COLLECTIONS) for entry in changed}
        own = await self._last_of(node, {name for name in chosen.values() if name is not None})
        return [entry for entry in changed if _changed(entry.watch, last, branches, own.get(chosen[entry]))]

    async def _last_of(self, node: Connection, names: set[str]) -> dict[str | None, Mapping[int, int]]:
        """Returns the last changes of collections, without those that the node refuses. Raises AwayError."""
        positions: dict[str | None, Mapping[int, int]] = {}
        if not names or Feature.COLLECTIONS not in node.features:
            return positions
        ids: Mapping[Collection, int] = {}
        with self._refusals_logged():
            ids = {collection: at for at, collection in (await manifest_of(node)).collections.items()}
        for name in sorted(names):
            if (at := ids.get(collection_of(name))) is not None:
                with self._refusals_logged():
                    positions[name] = await high_seqnos_of(node, at)
        return positions

    @contextmanager
    def _refusals_logged(self) -> Iterator[None]:
        """Logs and ignores a node's refusals, such as of a dropped collection: the tasks' own clients find out."""
        try:
            yield
        except UnservedError as error:
            log.info("watched_collection_not_told", nodes=self._nodes, error=str(error))

    def _numbers(self) -> set[int]:
        return {number for entry in self.watched for number in entry.watch.positions}

    def _is_silent(self, error: AwayError) -> None:
        if not self._silent:
            log.warning("watched_bucket_silent", nodes=self._nodes, error=str(error))
        self._silent = True

    def _wake(self, woken: Iterable[WatchedVbuckets]) -> None:
        for entry in woken:
            self.watched.pop(entry, None)
            entry.wake()


def _key(watch: VbucketWatch) -> tuple[tuple[str, str], ...]:
    """Returns the properties by which its bucket is reached, whatever is read there."""
    return tuple(sorted((key, text) for key, text in watch.properties.items() if key != COLLECTIONS))


def _changed(
    watch: VbucketWatch,
    last: Mapping[int, int],
    branches: Mapping[int, int],
    own: Mapping[int, int] | None = None,
) -> bool:
    """Returns whether a vbucket has more, or less, or another history of the same length. `own` are the last changes of
    the only collection that is read: changes of others do not count."""
    for number, (seqno, vbuuid) in watch.positions.items():
        if branches.get(number, vbuuid) != vbuuid:
            return True
        now = last.get(number, seqno)
        if now < seqno or (now > seqno and (own is None or own.get(number, now) > seqno)):
            return True
    return False


class _AskedNodes(Nobody):
    """The nodes that are queried by one map. Learns whether the cluster has another map: each failover and each
    rebalance makes one."""

    def __init__(self, cluster: BucketCluster, addresses: Sequence[NodeAddress]) -> None:
        self.cluster, self.addresses = cluster, addresses
        self.away: set[NodeAddress] = set()
        self._map, self._other_map, self._in_doubt = cluster.map, False, False

    def is_away(self, address: NodeAddress) -> bool:
        """Notes that a node does not answer: another node has to be queried for the map. Returns whether there is no
        other."""
        self.away.add(address)
        self._in_doubt = True
        return self.away.issuperset(self.addresses)

    async def is_over(self, node: Connection, numbers: Iterable[int], last: Mapping[int, int]) -> bool:
        """Returns whether the map is no longer valid, by a node's answer: the node lacks a vbucket that it should have,
        or a watched vbucket is at none of these nodes. Raises AwayError, CouchbaseError."""
        if self._in_doubt:
            self._in_doubt = False
            await self.cluster.ask_map(node)
        current = self._map
        if self._other_map or self.cluster.map is not current or current is None:
            return True
        places = {number: current.active(number) for number in numbers}
        return any(
            at not in self.addresses or (at == node.address and number not in last) for number, at in places.items()
        )

    def map_pushed(self, connection: Connection, value: bytes) -> None:
        """Notes that the cluster has another map."""
        self._other_map = True

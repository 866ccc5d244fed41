"""Asks Couchbase nodes for the last changes of the vbuckets that parked tasks wait for: one question a node and second,
for all tasks that reach the bucket in the same way. The branches of their histories are asked by each new map."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from keelman.connect.errors import ConnectError
from keelman.connect.watches import VbucketWatch
from keelman.connectors.couchbase.keys import access_by
from keelman.couchbase.cluster import Cluster, Nobody, failover_log, high_seqnos_of
from keelman.couchbase.connection import Connection
from keelman.couchbase.errors import AwayError, CouchbaseError
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import Siblings

log = get_logger()
ASK_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class WatchedVbuckets:
    """Vbuckets under watch; `wake` is called once, when there is more, and then they are watched no more."""

    watch: VbucketWatch
    wake: Callable[[], None]


class VbucketWatches:
    """Has a loop for each bucket, while anything of it is watched."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[tuple[str, str], ...], _Bucket] = {}
        self._siblings: Siblings | None = None

    def begin(self, siblings: Siblings) -> None:
        """Where the loops run."""
        self._siblings = siblings

    def __len__(self) -> int:
        return sum(len(bucket.watched) for bucket in self._buckets.values())

    def add(self, vbuckets: WatchedVbuckets) -> None:
        """Watches them from now on."""
        assert self._siblings is not None
        key = tuple(sorted(vbuckets.watch.properties.items()))
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(dict(key))
            self._siblings.start(self._life(key, bucket), name="vbucket watches")
        bucket.watched[vbuckets] = None

    def remove(self, vbuckets: WatchedVbuckets) -> None:
        """Watches them no more; nothing happens when they are not watched."""
        bucket = self._buckets.get(tuple(sorted(vbuckets.watch.properties.items())))
        if bucket is not None:
            bucket.watched.pop(vbuckets, None)

    async def _life(self, key: tuple[tuple[str, str], ...], bucket: _Bucket) -> None:
        try:
            await bucket.run()
        finally:
            del self._buckets[key]


class _Bucket:
    """What is watched of one bucket."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._silent = False
        self.watched: dict[WatchedVbuckets, None] = {}

    async def run(self) -> None:
        """Until nothing is watched any more. Nodes that do not answer are asked again and again."""
        backoff = Backoff(first=ASK_SECONDS, most=10.0)
        while self.watched:
            try:
                await self._ask(backoff)
            except AwayError as error:
                if not self._silent:
                    log.warning("watched_bucket_silent", nodes=self._nodes, error=str(error))
                self._silent = True
                await asyncio.sleep(backoff.next())
            except (ConnectError, CouchbaseError) as error:  # not to be watched at all: the tasks' own clients say why
                log.warning("watch_failed", nodes=self._nodes, error=str(error))
                self._wake(list(self.watched))

    @property
    def _nodes(self) -> str:
        return self._properties["couchbase.seed.nodes"]

    async def _ask(self, backoff: Backoff) -> None:
        """By one map, until it does not hold any more. Raises AwayError, CouchbaseError, ConnectError."""
        cluster, other_map = Cluster(access_by(self._properties)), _OtherMap()
        await cluster.bootstrap()
        async with contextlib.AsyncExitStack() as stack:
            nodes = [
                await stack.enter_async_context(cluster.logged_in(address, other_map))
                for address in cluster.actives(self._numbers())
            ]
            branches: dict[int, int] = {}
            while self.watched:
                found = [await high_seqnos_of(node) for node in nodes]
                for node, seqnos in zip(nodes, found, strict=True):
                    for number in self._numbers() & seqnos.keys() - branches.keys():
                        branches[number] = (await failover_log(node, number))[0].vbuuid
                last = {number: seqno for seqnos in found for number, seqno in seqnos.items()}
                if self._silent:
                    log.info("watched_bucket_answers_again", nodes=self._nodes)
                    self._silent = False
                backoff.reset()
                self._wake([one for one in self.watched if _changed(one.watch, last, branches)])
                await asyncio.sleep(ASK_SECONDS)
                if other_map.came or not self._numbers() <= last.keys():
                    return  # a vbucket has moved or begun another branch, or is watched only now

    def _numbers(self) -> set[int]:
        return {number for one in self.watched for number in one.watch.positions}

    def _wake(self, woken: Iterable[WatchedVbuckets]) -> None:
        for one in woken:
            self.watched.pop(one, None)
            one.wake()


def _changed(watch: VbucketWatch, last: Mapping[int, int], branches: Mapping[int, int]) -> bool:
    """Whether a vbucket has more, or less, or another history of the same length."""
    return any(
        last.get(number, seqno) != seqno or branches.get(number, vbuuid) != vbuuid
        for number, (seqno, vbuuid) in watch.positions.items()
    )


class _OtherMap(Nobody):
    """Hears whether the cluster has another map: each failover and each rebalance makes one."""

    came = False

    def map_pushed(self, connection: Connection, value: bytes) -> None:
        """It has."""
        self.came = True

"""Which parked tasks a Couchbase node's answers wake, where each reads one collection."""

import json
import struct
from collections.abc import Coroutine
from typing import Any, cast

import pytest

from keelman.connect.watches import VbucketPosition, VbucketWatch
from keelman.couchbase.connection import Connection
from keelman.couchbase.errors import AwayError
from keelman.couchbase.frames import RESPONSE, Feature, Frame, Opcode, ResponseStatus
from keelman.runtime.supervise import Siblings
from keelman.worker.parking.vbucket_watches import VbucketWatches, WatchedVbuckets, _Bucket

REACHED = {"couchbase.seed.nodes": "one", "couchbase.bucket": "travel"}
COLLECTIONS = {"a": 8, "b": 9, "c": 10}


def reading(collection: str) -> dict[str, str]:
    """The connection to the bucket of a task that reads this collection; the whole bucket for an empty name."""
    return {**REACHED, "couchbase.collections": f"s.{collection}"} if collection else REACHED


class Node:
    """A node with one vbucket, whose last change is 5, of collection `a`.

    It does not report on the collection `refused`, and with `is_away` on none.
    """

    where, features = "one:11210", frozenset((Feature.COLLECTIONS,))

    def __init__(self) -> None:
        self.refused, self.is_away = "", False
        self.asked: list[int] = []

    async def request(self, opcode: int, *, extras: bytes = b"", vbucket: int = 0) -> Frame:
        self.asked.append(opcode)
        status, value = ResponseStatus.SUCCESS, b""
        if opcode == Opcode.MANIFEST:
            named = [{"name": name, "uid": f"{uid:x}"} for name, uid in COLLECTIONS.items()]
            value = json.dumps({"uid": "2", "scopes": [{"name": "s", "uid": "8", "collections": named}]}).encode()
        elif opcode == Opcode.FAILOVER_LOG:
            value = struct.pack(">QQ", 7, 0)
        elif len(extras) == 4:
            value = struct.pack(">HQ", 0, 5)
        elif self.is_away:
            raise AwayError("one:11210: the server ended the connection")
        else:
            is_refused = extras[-1] == COLLECTIONS.get(self.refused)
            status = ResponseStatus.UNKNOWN_COLLECTION if is_refused else ResponseStatus.SUCCESS
            value = struct.pack(">HQ", 0, 5 if extras[-1] == COLLECTIONS["a"] else 3)
        return Frame(RESPONSE, opcode, 0, status, 0, 0, b"", b"", value)


class Watched:
    """The watches of a bucket; each waits after change 3, and reads collections of scope `s`."""

    def __init__(self, *collections: str) -> None:
        self.node, self.woken = Node(), list[str]()
        self.bucket = _Bucket(REACHED)
        for collection in collections:
            self.add(collection)

    def add(self, collection: str) -> None:
        watch = VbucketWatch(reading(collection), {0: VbucketPosition(3, 7)})
        self.bucket.watched[WatchedVbuckets(watch, lambda: self.woken.append(collection))] = None

    async def look(self) -> list[str]:
        await self.bucket._look(cast("Connection", self.node), {})
        return self.woken


@pytest.mark.parametrize(("collection", "woken"), [("a", ["a"]), ("b", []), ("dropped", ["dropped"])])
async def test_only_changes_of_its_collection_wake_a_task(collection: str, woken: list[str]) -> None:
    assert await Watched(collection).look() == woken


async def test_a_node_that_refuses_to_tell_of_a_collection_wakes_who_reads_it() -> None:
    watched = Watched("c", "b")
    watched.node.refused = "b"
    assert await watched.look() == ["b"]


async def test_a_node_that_is_lost_meanwhile_wakes_nobody() -> None:
    watched = Watched("b")
    watched.node.is_away = True
    with pytest.raises(AwayError):
        await watched.look()
    assert watched.woken == []


async def test_each_collection_is_asked_for_once() -> None:
    watched = Watched("b", "a", "", "b", "a")
    assert await watched.look() == ["a", "", "a"]
    assert watched.node.asked.count(Opcode.ALL_SEQNOS) == 3
    assert watched.node.asked.count(Opcode.MANIFEST) == 1


def test_all_tasks_of_a_bucket_share_its_connections() -> None:
    watches = VbucketWatches()
    started = list[str]()

    def start(life: Coroutine[Any, Any, None], *, name: str) -> None:
        life.close()
        started.append(name)

    watches.begin(cast("Siblings", type("Some", (), {"start": staticmethod(start)})()))
    watched = [WatchedVbuckets(VbucketWatch(reading(name), {}), lambda: None) for name in ("a", "b", "")]
    for watch in watched:
        watches.add(watch)
    assert started == ["vbucket watches"]
    assert len(watches) == 3
    watches.remove(watched[0])
    assert len(watches) == 2

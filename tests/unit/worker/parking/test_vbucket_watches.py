"""Which parked tasks a Couchbase node's answers wake, where each reads one collection."""

import json
import struct
from typing import cast

import pytest

from keelman.connect.watches import VbucketPosition, VbucketWatch
from keelman.couchbase.connection import Connection
from keelman.couchbase.errors import AwayError
from keelman.couchbase.frames import RESPONSE, Feature, Frame, Opcode, Status
from keelman.worker.parking.vbucket_watches import WatchedVbuckets, _Bucket

REACHED = {"couchbase.seed.nodes": "one", "couchbase.bucket": "travel"}
COLLECTIONS = {"a": 8, "b": 9}


class Node:
    """With one vbucket, whose last change is 5, of collection `a`. `status` answers a question about a collection; with
    `is_away` none is answered."""

    where, features = "one:11210", frozenset((Feature.COLLECTIONS,))

    def __init__(self) -> None:
        self.status, self.is_away = Status.SUCCESS, False
        self.asked: list[int] = []

    async def request(self, opcode: int, *, extras: bytes = b"", vbucket: int = 0) -> Frame:
        self.asked.append(opcode)
        status, value = Status.SUCCESS, b""
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
            status, value = self.status, struct.pack(">HQ", 0, 5 if extras[-1] == COLLECTIONS["a"] else 3)
        return Frame(RESPONSE, opcode, 0, status, 0, 0, b"", b"", value)


class Watched:
    """What is watched of a bucket; each waits behind change 3, and reads collections of scope `s`."""

    def __init__(self, collection: str) -> None:
        self.node, self.woken = Node(), list[str]()
        self.bucket = _Bucket({**REACHED, "couchbase.collections": f"s.{collection}"})
        self.add(collection)

    def add(self, collection: str) -> None:
        watch = VbucketWatch({**REACHED, "couchbase.collections": f"s.{collection}"}, {0: VbucketPosition(3, 7)})
        self.bucket.watched[WatchedVbuckets(watch, lambda: self.woken.append(collection))] = None

    async def look(self) -> list[str]:
        await self.bucket._look(cast("Connection", self.node), {})
        return self.woken


@pytest.mark.parametrize(("collection", "woken"), [("a", ["a"]), ("b", []), ("dropped", ["dropped"])])
async def test_only_changes_of_its_collection_wake_a_task(collection: str, woken: list[str]) -> None:
    assert await Watched(collection).look() == woken


async def test_a_node_that_refuses_to_tell_of_a_collection_wakes_who_reads_it() -> None:
    watched = Watched("b")
    watched.node.status = Status.UNKNOWN_COLLECTION
    assert await watched.look() == ["b"]


async def test_a_node_that_is_lost_meanwhile_wakes_nobody() -> None:
    watched = Watched("b")
    watched.node.is_away = True
    with pytest.raises(AwayError):
        await watched.look()
    assert watched.woken == []

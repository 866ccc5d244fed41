"""What a client of changes makes of maps that are pushed and of connections that end."""

import asyncio
import json
from typing import Any, cast

import pytest

from keelman.couchbase import cluster as cluster_module
from keelman.couchbase.changes import OWN_WINDOW_BYTES, Changes, StreamOptions
from keelman.couchbase.cluster import Cluster
from keelman.couchbase.cluster_map import NodeAddress
from keelman.couchbase.connection import Connection
from keelman.couchbase.seeds import Access, Seed
from keelman.couchbase.vbucket import Vbucket

NODE = NodeAddress("one", 11210)


def new() -> tuple[Cluster, Changes]:
    """A client that has begun with nothing."""
    cluster = Cluster(Access([Seed("one")], "travel"))
    return cluster, Changes(cluster, StreamOptions(), lambda: None)


def pushed(revision: int, *vbuckets: list[int], uuid: str = "") -> bytes:
    """A map as servers push it."""
    given = {"rev": revision, "name": "travel", "uuid": uuid, "nodeLocator": "vbucket",
             "nodesExt": [{"services": {"kv": 11210}}],
             "vBucketServerMap": {"vBucketMap": list(vbuckets)}}  # fmt: skip
    return json.dumps(given).encode()


def test_a_map_without_vbuckets_replaces_none_that_has_them() -> None:
    cluster, _ = new()
    assert cluster.take_map(pushed(1), NODE)
    assert cluster.take_map(pushed(2, [0]), NODE)
    assert not cluster.take_map(pushed(3), NODE)
    assert cluster.map is not None
    assert cluster.map.active(0) == NODE
    assert cluster.take_map(pushed(4, [0], [0]), NODE)


async def test_only_the_vbuckets_of_a_connection_that_ends_have_a_problem() -> None:
    _, changes = new()
    with_streams, idle = (
        cast("Connection", type("Ended", (), {"where": f"{name}:1", "address": NodeAddress(name, 1)})())
        for name in ("one", "two")
    )
    changes._vbuckets[3] = Vbucket(3)
    changes._ended[3] = with_streams, asyncio.get_running_loop().create_future()
    changes.lost(idle, "the server ended the connection")
    assert changes.problem == ""
    changes.lost(with_streams, "the server ended the connection")
    assert changes.problem == "one:1: the server ended the connection"
    assert changes.resting() is None


def test_a_bucket_that_was_made_again_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[dict[str, Any]] = []
    log = type("Log", (), {"warning": lambda _, name, **given: warned.append({"name": name, **given})})
    monkeypatch.setattr(cluster_module, "_log", log())
    cluster, _ = new()
    for revision, uuid in ((1, "a"), (2, "a"), (3, "b")):
        assert cluster.take_map(pushed(revision, [0], uuid=uuid), NODE)
    assert warned == [{"name": "couchbase_bucket_is_another", "bucket": "travel", "uuid": "b", "before": "a"}]


def test_without_flow_control_the_window_is_our_own() -> None:
    assert StreamOptions(buffer_bytes=0).window == OWN_WINDOW_BYTES
    assert StreamOptions(buffer_bytes=5).window == 5

"""Which node is queried for the bucket's collections."""

import asyncio
from typing import cast

import pytest

from keelman.couchbase import nodes as nodes_module
from keelman.couchbase.cluster import BucketCluster
from keelman.couchbase.cluster_map import NodeAddress
from keelman.couchbase.connection import Connection, ConnectionListener
from keelman.couchbase.errors import AwayError
from keelman.couchbase.manifest import Collection, CollectionManifest
from keelman.couchbase.nodes import NodeConnections


async def test_a_node_that_is_away_keeps_no_other_from_telling_the_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    away, here = NodeAddress("away", 11210), NodeAddress("here", 11210)
    manifest = CollectionManifest(7, {8: "s"}, {8: Collection("s", "c")})
    cluster = type("Cluster", (), {"actives": lambda _, vbuckets: [away, here]})()
    own = CollectionManifest()

    class Some(NodeConnections):
        async def connect(self, address: NodeAddress) -> Connection:
            if address == away:
                raise AwayError("away:11210: Connection refused")
            return cast("Connection", address)

    async def manifest_of(connection: Connection) -> CollectionManifest:
        await asyncio.sleep(0)
        return manifest

    monkeypatch.setattr(nodes_module, "manifest_of", manifest_of)
    nodes = Some(cast("BucketCluster", cluster), own, cast("ConnectionListener", None), window=0, flags=0)
    await nodes.learn_manifest([0, 1])
    assert own.uid == 7

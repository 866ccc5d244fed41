"""Nodes of the test server, and the map that tells clients which of them has what."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.couchbase.vbuckets import History

if TYPE_CHECKING:
    from support.couchbase.session import Session


@dataclass(eq=False)
class Node:
    """A data node. `serves` is false for one without the bucket, `member` for one that is in no map."""

    index: int
    port: int = 0
    serves: bool = True
    member: bool = True
    listening: asyncio.Server | None = None
    sessions: list[Session] = field(default_factory=list)


def cluster_map(nodes: Sequence[Node], asked: Node, vbuckets: Iterable[History], *, is_tls: bool) -> dict[str, Any]:
    """Where vbuckets are, as one of the nodes tells it; without what it says of the bucket."""
    service = "kvSSL" if is_tls else "kv"
    members = [one for one in nodes if one.member]
    indexes = {one.index: index for index, one in enumerate(members)}
    return {
        "nodeLocator": "vbucket", "clusterUUID": "c1" * 16,
        "nodes": [{} for _ in members],
        "nodesExt": [
            {
                "services": {service: one.port, "mgmt": 8091 + one.index}, "hostname": "127.0.0.1",
                "thisNode": one is asked,
            }
            for one in members
        ],
        "vBucketServerMap": {
            "hashAlgorithm": "CRC", "numReplicas": 1,
            "serverList": [f"127.0.0.1:{one.port}" for one in members],
            "vBucketMap": [[indexes.get(one.node, -1), indexes.get(one.replica, -1)] for one in vbuckets],
        },
    }  # fmt: skip

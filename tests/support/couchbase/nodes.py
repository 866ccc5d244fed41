"""Nodes of the test server, and the map that tells clients the vbuckets of each."""

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
    """A data node. `serves` is false for a node without the bucket, `member` for a node that is in no map."""

    index: int
    port: int = 0
    serves: bool = True
    member: bool = True
    listening: asyncio.Server | None = None
    sessions: list[Session] = field(default_factory=list)


def cluster_map(nodes: Sequence[Node], node: Node, vbuckets: Iterable[History], *, is_tls: bool) -> dict[str, Any]:
    """The location of vbuckets as one of the nodes reports it; without the fields about the bucket."""
    service = "kvSSL" if is_tls else "kv"
    members = [node for node in nodes if node.member]
    indexes = {member.index: index for index, member in enumerate(members)}
    return {
        "nodeLocator": "vbucket", "clusterUUID": "c1" * 16,
        "nodes": [{} for _ in members],
        "nodesExt": [
            {
                "services": {service: member.port, "mgmt": 8091 + member.index}, "hostname": "127.0.0.1",
                "thisNode": member is node,
            }
            for member in members
        ],
        "vBucketServerMap": {
            "hashAlgorithm": "CRC", "numReplicas": 1,
            "serverList": [f"127.0.0.1:{member.port}" for member in members],
            "vBucketMap": [[indexes.get(vbucket.node, -1), indexes.get(vbucket.replica, -1)] for vbucket in vbuckets],
        },
    }  # fmt: skip

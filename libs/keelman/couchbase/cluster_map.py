"""Cluster maps: the nodes of each vbucket of a bucket. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from keelman.couchbase.errors import CouchbaseError
from keelman.couchbase.seeds import Seed


class NodeAddress(NamedTuple):
    """The address of a node's key-value service."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ClusterMap:
    """A map of one bucket. `vbuckets` has the indexes of the nodes with a vbucket's active and replica copies, -1 for
    none; `nodes` has None for a node that the chosen network does not reach."""

    epoch: int
    revision: int
    bucket: str
    cluster_uuid: str
    nodes: Sequence[NodeAddress | None]
    vbuckets: Sequence[Sequence[int]]
    capabilities: frozenset[str] = field(default_factory=frozenset)
    uuid: str = ""
    """The bucket's uuid: a bucket that is created again under the same name has a different one."""

    def is_newer_than(self, other: ClusterMap | None) -> bool:
        """Returns whether this map replaces the other."""
        return other is None or (self.epoch, self.revision) > (other.epoch, other.revision)

    def active(self, vbucket: int) -> NodeAddress | None:
        """Returns the node with the active copy; None while there is none."""
        indexes = self._indexes(vbucket)
        return self._node(indexes[0]) if indexes else None

    def copies(self, vbucket: int) -> list[NodeAddress]:
        """Returns the nodes that have a copy, the active one first; none for a vbucket that the map does not have."""
        nodes = [self._node(index) for index in self._indexes(vbucket)]
        return [node for node in nodes if node is not None]

    def _indexes(self, vbucket: int) -> Sequence[int]:
        return self.vbuckets[vbucket] if vbucket < len(self.vbuckets) else ()

    def _node(self, index: int) -> NodeAddress | None:
        return self.nodes[index] if 0 <= index < len(self.nodes) else None


def is_bucket_map(text: bytes) -> bool:
    """Returns whether the text is a map of a bucket, not the cluster's own map, which names no vbuckets."""
    return isinstance(_json(text).get("nodeLocator"), str)


def parse_map(text: bytes, node_address: NodeAddress, seeds: Sequence[Seed], *, tls: bool, network: str) -> ClusterMap:
    """Returns the map that the node `node_address` sent. Raises CouchbaseError for a bucket that has no vbuckets, and
    for text that is not a map."""
    tree = _json(text)
    locator = tree.get("nodeLocator")
    name = str(tree.get("name", ""))
    if locator != "vbucket":
        raise CouchbaseError(
            f"bucket {name!r} is of the kind {locator!r}: only buckets with vbuckets have changes to read"
        )
    try:
        extended = tree["nodesExt"]
        service = "kvSSL" if tls else "kv"
        external = _uses_external(extended, seeds, node_address, service, network)
        nodes = [_address(node, node_address, service, external=external) for node in extended if _serves(node)]
        return ClusterMap(
            epoch=int(tree.get("revEpoch", 0)),
            revision=int(tree["rev"]),
            bucket=name,
            cluster_uuid=str(tree.get("clusterUUID", "")),
            nodes=nodes,
            vbuckets=[tuple(row) for row in tree.get("vBucketServerMap", {}).get("vBucketMap", [])],
            capabilities=frozenset(tree.get("bucketCapabilities", [])),
            uuid=str(tree.get("uuid", "")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CouchbaseError(f"{node_address} gave an invalid cluster map: {error!r}") from None


def _json(text: bytes) -> Mapping[str, Any]:
    try:
        tree = json.loads(text)
    except ValueError:
        tree = None
    return tree if isinstance(tree, dict) else {}


def _serves(node: Mapping[str, Any]) -> bool:
    services = node.get("services", {})
    return "kv" in services or "kvSSL" in services


def _address(node: Mapping[str, Any], node_address: NodeAddress, service: str, *, external: bool) -> NodeAddress | None:
    host = str(node.get("hostname") or node_address.host).replace("$HOST", node_address.host)
    port = node.get("services", {}).get(service)
    if external:
        other = node.get("alternateAddresses", {}).get("external")
        if other is None:
            return None
        host = str(other.get("hostname") or host)
        port = other["ports"].get(service) if other.get("ports") else port
    return None if port is None else NodeAddress(host, int(port))


def _uses_external(
    extended: Sequence[Mapping[str, Any]], seeds: Sequence[Seed], node_address: NodeAddress, service: str, network: str
) -> bool:
    """Returns whether to use the external network: `network` names it or, with `auto`, a seed is one of its
    addresses."""
    if network != "auto":
        return network == "external"
    for external in (False, True):
        for node in extended:
            address = _address(node, node_address, service, external=external) if _serves(node) else None
            if address is not None and any(
                seed.host == address.host and seed.port in (None, address.port) for seed in seeds
            ):
                return external
    return False

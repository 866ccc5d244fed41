"""The nodes of this API by hostname: created here or registered only by their agents, except those deleted here.
Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keelman.api.node.v1.node_pb2 import NODE_STATE_OFFLINE, Node
from keelman.gateway.ohara.state.stored import StoredDocument
from keelman.gateway.ohara.wire.keys import DEFAULT_GROUP, ObjectKey
from keelman.gateway.ohara.wire.wording import not_stored

HIDDEN = "deleted"
"""The field in a node's document that marks a node deleted here while its agent was registered."""
_HOSTNAME = re.compile(r"[a-zA-Z0-9.\-]{1,63}")


def is_hostname(text: str) -> bool:
    """Tells whether a text may be the name of a node."""
    return bool(_HOSTNAME.fullmatch(text))


def node_key(hostname: str) -> ObjectKey:
    """Returns the key of a node. Hostnames that differ only in case are equal."""
    return ObjectKey(DEFAULT_GROUP, hostname)


def own_node(hostname: str) -> str:
    """Returns the name of a node in the state service."""
    return hostname.lower()


@dataclass(frozen=True, slots=True)
class NodeHost:
    """A node with this API's document of it: `document` is None for a node that only its agent registered."""

    hostname: str
    node: Node
    document: StoredDocument | None = None


class Hosts:
    """The nodes by their names in the state service."""

    def __init__(self, nodes: Iterable[Node], documents: Iterable[StoredDocument]) -> None:
        stored: Mapping[str, StoredDocument] = {document.key.name: document for document in documents}
        self.all: dict[str, NodeHost] = {}
        self.offline: set[str] = set()
        for node in nodes:
            if node.status.state == NODE_STATE_OFFLINE:
                self.offline.add(node.name)
            document = stored.get(node.name)
            if is_hostname(node.name) and not (document is not None and HIDDEN in document.content):
                hostname = node.name if document is None else document.content["hostname"]
                self.all[node.name] = NodeHost(hostname, node, document)

    def get(self, hostname: str) -> NodeHost | None:
        """Returns one node; None if it does not exist."""
        return self.all.get(own_node(hostname))

    def shown(self, node: str) -> str:
        """Returns the hostname of a node of ours."""
        host = self.all.get(node)
        return node if host is None else host.hostname

    def check(self, hostnames: Iterable[str]) -> None:
        """Raises OharaError for hostnames without a node."""
        unknown = [node_key(name) for name in hostnames if self.get(name) is None]
        if unknown:
            raise not_stored("node", unknown)

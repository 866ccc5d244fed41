"""The nodes as this API knows them: by hostname, made here or come with their agents alone, less those deleted here.
Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keelman.api.node.v1.node_pb2 import NODE_STATE_OFFLINE, Node
from keelman.gateway.ohara.state.stored import StoredDocument
from keelman.gateway.ohara.wire.keys import DEFAULT_GROUP, ObjectKey
from keelman.gateway.ohara.wire.wording import not_stored

LEGAL_HOSTNAME = r"[a-zA-Z0-9.\-]{1,63}$"
HIDDEN = "deleted"
"""A node's document with this in it: the node was deleted here while its agent was there."""
_HOSTNAME = re.compile(r"[a-zA-Z0-9.\-]{1,63}")


def is_hostname(text: str) -> bool:
    """Whether a text may be the name of a node."""
    return bool(_HOSTNAME.fullmatch(text))


def node_key(hostname: str) -> ObjectKey:
    """The key of a node. Hostnames that differ in case alone are one."""
    return ObjectKey(DEFAULT_GROUP, hostname)


def own_node(hostname: str) -> str:
    """The name that a node has in the state service."""
    return hostname.lower()


@dataclass(frozen=True, slots=True)
class Host:
    """A node with what this API keeps of it: `document` is None for one that came with its agent alone."""

    hostname: str
    node: Node
    document: StoredDocument | None = None


class Hosts:
    """The nodes by the names that the state service has for them."""

    def __init__(self, nodes: Iterable[Node], documents: Iterable[StoredDocument]) -> None:
        kept: Mapping[str, StoredDocument] = {one.key.name: one for one in documents}
        self.all: dict[str, Host] = {}
        self.offline: set[str] = set()
        for node in nodes:
            if node.status.state == NODE_STATE_OFFLINE:
                self.offline.add(node.name)
            document = kept.get(node.name)
            if is_hostname(node.name) and not (document is not None and HIDDEN in document.content):
                hostname = node.name if document is None else document.content["hostname"]
                self.all[node.name] = Host(hostname, node, document)

    def get(self, hostname: str) -> Host | None:
        """One node; None when there is none."""
        return self.all.get(own_node(hostname))

    def shown(self, node: str) -> str:
        """The hostname of a node of ours."""
        host = self.all.get(node)
        return node if host is None else host.hostname

    def check(self, hostnames: Iterable[str]) -> None:
        """Raises OharaError for hostnames that are no node's."""
        unknown = [node_key(name) for name in hostnames if self.get(name) is None]
        if unknown:
            raise not_stored("node", unknown)

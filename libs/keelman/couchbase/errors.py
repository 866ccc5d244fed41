"""The errors that a client of a Couchbase cluster raises."""

from __future__ import annotations


class CouchbaseError(Exception):
    """The cluster or its configuration does not allow the request; a retry fails until someone changes something."""


class ProtocolError(CouchbaseError):
    """The received bytes do not follow the protocol: the connection is closed."""


class RefusedError(CouchbaseError):
    """A server refused a request. `status` is the protocol's number."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class AwayError(Exception):
    """A node does not answer, or has ended the connection: the client tries it again."""


class UnservedError(AwayError):
    """A node answers, but refuses the request for now."""


class NotReadyError(AwayError):
    """A node answers, but cannot serve a vbucket now: the vbucket is being moved, or read from disk. `cluster_map` is
    the map in the node's answer; empty if it has none."""

    def __init__(self, text: str, cluster_map: bytes = b"") -> None:
        super().__init__(text)
        self.cluster_map = cluster_map

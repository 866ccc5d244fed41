"""The errors that a client of a Couchbase cluster raises."""

from __future__ import annotations


class CouchbaseError(Exception):
    """The cluster cannot be used as asked; trying again does not help before somebody changes something."""


class ProtocolError(CouchbaseError):
    """The bytes received are not the protocol's: the connection is closed."""


class RefusedError(CouchbaseError):
    """A server refused a request. `status` is the protocol's number."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class AwayError(Exception):
    """A node does not answer, or ended the connection: it is tried again."""


class UnservedError(AwayError):
    """A node answers, and refuses now what it is asked for."""


class NotReadyError(AwayError):
    """A node answers, and cannot serve a vbucket now: that is moved, or read from disk. `cluster_map` is what it says
    of where to ask; empty where it does not."""

    def __init__(self, text: str, cluster_map: bytes = b"") -> None:
        super().__init__(text)
        self.cluster_map = cluster_map

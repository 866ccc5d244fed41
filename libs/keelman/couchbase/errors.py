"""What goes wrong between a client and a Couchbase cluster."""

from __future__ import annotations


class CouchbaseError(Exception):
    """The cluster cannot be used as asked; trying again does not help before somebody changes something."""


class ProtocolError(CouchbaseError):
    """What came is not the protocol: the connection is closed."""


class RefusedError(CouchbaseError):
    """A server refused a request. `status` is the protocol's number."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class AwayError(Exception):
    """A node does not answer, or ended the connection: it is tried again."""

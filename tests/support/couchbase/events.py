"""Events of scopes and collections in streams of the test server; `uid` is their manifest's number after the event."""

from __future__ import annotations

import struct

from support.couchbase.vbuckets import CREATED, DROPPED, SCOPE_CREATED, SCOPE_DROPPED, SYSTEM, Item


def scope_created(name: str, scope: int, uid: int) -> Item:
    """A scope has been created."""
    value = struct.pack(">QI", uid, scope)
    return Item(0, SYSTEM, name.encode(), value, collection=-1, event=SCOPE_CREATED, scope=scope)


def scope_dropped(scope: int, uid: int) -> Item:
    """The end of a scope, after its collections."""
    return Item(0, SYSTEM, b"", struct.pack(">QI", uid, scope), collection=-1, event=SCOPE_DROPPED, scope=scope)


def collection_created(name: str, collection: int, scope: int, uid: int) -> Item:
    """A collection has been created, whose documents are kept for good."""
    value = struct.pack(">QIII", uid, scope, collection, 0)
    return Item(0, SYSTEM, name.encode(), value, collection=collection, event=CREATED, version=1, scope=scope)


def collection_dropped(collection: int, scope: int, uid: int) -> Item:
    """The end of a collection."""
    value = struct.pack(">QII", uid, scope, collection)
    return Item(0, SYSTEM, b"", value, collection=collection, event=DROPPED, scope=scope)

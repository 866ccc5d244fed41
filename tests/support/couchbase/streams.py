"""A stream of the test server: the chosen changes, and how a client gets each."""

from __future__ import annotations

import json
import struct
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from support.couchbase.documents import uncompressed
from support.couchbase.frames import Sent, leb128
from support.couchbase.vbuckets import DELETION, EXPIRATION, MUTATION, SYSTEM, Collections, Filter, History, Item

XATTRS, NO_VALUE, DELETE_TIMES = 0x04, 0x08, 0x20


@dataclass(slots=True)
class Stream:
    """An open stream and its client's position in the vbucket."""

    opaque: int
    history: History
    at: int
    filter: Filter


def chosen_filter(  # noqa: PLR0911  a line a rule
    value: bytes, features: Collection[int], collections: Collections, *, has_noop: bool
) -> tuple[int, Filter]:
    """A status other than 0 if the request's value is illegal, and the requested filter."""
    everything = Filter()
    if not value:
        return 0, everything
    if 0x12 not in features:
        return 0x04, everything
    if not has_noop:
        return 0x83, everything
    request: dict[str, Any] = json.loads(value)
    if "scope" in request and "collections" in request:
        return 0x04, everything
    if "scope" in request:
        names = [name for name, at in collections.scopes.items() if at == int(request["scope"], 16)]
        if not names:
            return 0x8C, everything
        ids = {at for (scope, _), at in collections.collections.items() if scope == names[0]}
        return 0, Filter(int(request["scope"], 16), ids)
    if "collections" in request:
        ids = {int(collection, 16) for collection in request["collections"]}
        return (0, Filter(None, ids)) if ids <= collections.ids else (0x88, everything)
    return 0, everything


def item_message(
    item: Item, vbucket: int, opaque: int, features: Collection[int], flags: int, *, tells_expiry: bool
) -> Sent:
    """A change in the form for a client with these features and these flags of its connection."""
    if item.kind == SYSTEM:
        extras = struct.pack(">QIB", item.seqno, item.event, item.version)
        return Sent(SYSTEM, vbucket, opaque, extras, item.key, item.value)
    key = (leb128(item.collection) if 0x12 in features else b"") + item.key
    value, datatype = item.value, item.datatype
    if datatype & 2 and 0x0A not in features:
        value, datatype = uncompressed(value), datatype & ~2
    if datatype & 4 and not flags & XATTRS:
        value, datatype = uncompressed(value) if datatype & 2 else value, datatype & ~6
        value = value[4 + struct.unpack_from(">I", value)[0] :]
    if item.kind == MUTATION:
        if flags & NO_VALUE:
            value, datatype = b"", 0
        extras = struct.pack(">QQIIIHB", item.seqno, item.revision, item.flags, item.expiry, 0, 0, 0)
        return Sent(MUTATION, vbucket, opaque, extras, key, value, datatype, item.cas)
    if item.kind == EXPIRATION and flags & DELETE_TIMES and tells_expiry:
        extras = struct.pack(">QQI", item.seqno, item.revision, item.expiry)
        return Sent(EXPIRATION, vbucket, opaque, extras, key, cas=item.cas)
    if flags & DELETE_TIMES:
        extras = struct.pack(">QQIB", item.seqno, item.revision, item.expiry, 0)
        return Sent(DELETION, vbucket, opaque, extras, key, cas=item.cas)
    extras = struct.pack(">QQH", item.seqno, item.revision, 0)
    return Sent(DELETION, vbucket, opaque, extras, key, cas=item.cas)

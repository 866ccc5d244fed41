"""Decodes the messages of a stream into events."""

from __future__ import annotations

from struct import Struct, error

import cramjam

from keelman.couchbase.errors import ProtocolError
from keelman.couchbase.frames import HEADER_BYTES, REQUEST, SNAPPY_TYPE, XATTR_TYPE, Frame, Opcode
from keelman.couchbase.manifest import (
    COLLECTION_CREATED,
    COLLECTION_DROPPED,
    DEFAULT_COLLECTION,
    SCOPE_CREATED,
    SCOPE_DROPPED,
    Collection,
    CollectionManifest,
    dropped_collection,
    split_key,
)
from keelman.couchbase.vbucket import Event, HistoryPlace, Vbucket

_MUTATION = Struct(">QQIIIHB")
_MUTATION_FRAME = Struct(">BBHBBHIIQQQIIIHB")
"""A frame's header and a mutation's extras."""
_DELETION = Struct(">QQH")
_DELETION_TIMED = Struct(">QQIB")
_EXPIRATION = Struct(">QQI")
_SYSTEM = Struct(">QIB")
_MARKER = Struct(">QQI")
_NUMBER = Struct(">Q")
_LENGTH = Struct(">I")
_IS_MUTATION = int(Opcode.MUTATION)
_made = Event._make
_new = tuple.__new__  # half the time of Event._make
NAMING = frozenset((COLLECTION_CREATED, COLLECTION_DROPPED, SCOPE_CREATED, SCOPE_DROPPED))
FLAT_BUFFERS = 2
"""System events from this version on have another form, which the client never requests."""
_LONGEST_SHORT_ID = 0x7F
"""A collection id up to this value is a single byte before the key."""
MOVED = 0
"""The kind of an event that only moves its vbucket's offset."""


class Decoder:
    """Decodes the messages of one connection. `vbuckets` has those whose streams are open on it; events of others are
    ignored.

    `collections` tells whether keys begin with their collection's id. A new id is looked up in `manifest`.
    """

    def __init__(self, manifest: CollectionManifest, *, collections: bool) -> None:
        self.vbuckets: dict[int, Vbucket] = {}
        self.left: list[int] = []
        """Vbuckets that are no longer followed because a collection that their streams requested was dropped."""
        self._manifest = manifest
        self._collections = collections

    def skim(self, buffer: bytes, at: int, events: list[Event]) -> int:
        """Adds the events of consecutive mutations, which are most of a server's messages, from a position on. Returns
        the position of the first frame that `decode` must handle or that is incomplete."""
        vbuckets, collections, prefixed = self.vbuckets, self._manifest.selected, self._collections
        unpack, add = _MUTATION_FRAME.unpack_from, events.append
        end = len(buffer)
        last = end - _MUTATION_FRAME.size
        while at <= last:
            (magic, opcode, key_length, extras_length, datatype, number, body, _, cas, seqno, revision, flags, expiry,
             lock_time, meta, _) = unpack(buffer, at)  # fmt: skip
            if opcode != _IS_MUTATION or magic != REQUEST or extras_length != _MUTATION.size:
                break
            stop = at + HEADER_BYTES + body
            key_at = at + _MUTATION_FRAME.size
            value_at = key_at + key_length
            vbucket = vbuckets.get(number)
            if stop > end or vbucket is None or value_at + meta > stop or not key_length:
                break
            collection: Collection | None = DEFAULT_COLLECTION
            if prefixed:
                if buffer[key_at] > _LONGEST_SHORT_ID or (collection := collections.get(buffer[key_at])) is None:
                    break
                key_at += 1
            place = vbucket.advance(seqno)
            add(_new(Event, (_IS_MUTATION, number, seqno, place, collection, buffer[key_at:value_at],
                             buffer[value_at : stop - meta], datatype, cas, revision, flags, expiry, lock_time,
                             stop - at)))  # fmt: skip
            at = stop
        return at

    def decode(self, frame: Frame, events: list[Event]) -> bool:
        """Adds a frame's event. Returns whether the frame had one. Raises ProtocolError for a frame of another form."""
        vbucket = self.vbuckets.get(frame.status)
        if vbucket is None:
            return False
        try:
            return self._decode(frame, vbucket, events)
        except error:
            raise ProtocolError(
                f"opcode {frame.opcode:#04x} came with {len(frame.extras)} bytes of extras, which no form of it has"
            ) from None

    def _decode(self, frame: Frame, vbucket: Vbucket, events: list[Event]) -> bool:
        _, opcode, datatype, number, _, cas, extras, key, value, _ = frame
        flags = expiry = lock_time = meta = 0
        if opcode == _IS_MUTATION:
            seqno, revision, flags, expiry, lock_time, meta, _ = _MUTATION.unpack(extras)
        elif opcode == Opcode.DELETION and len(extras) == _DELETION_TIMED.size:
            seqno, revision, _, _ = _DELETION_TIMED.unpack(extras)
        elif opcode == Opcode.DELETION:
            seqno, revision, meta = _DELETION.unpack(extras)
        elif opcode == Opcode.EXPIRATION:
            seqno, revision, _ = _EXPIRATION.unpack(extras)
        else:
            return self._of_the_stream(frame, vbucket, events)
        place = vbucket.advance(seqno)
        collection: Collection | None = DEFAULT_COLLECTION
        if self._collections:
            at, key = split_key(key)
            collection = self._manifest.selected.get(at)
        if collection is None:  # the collection was dropped since, or is not selected
            events.append(_moved(frame, seqno, place))
            return True
        if meta:
            value = value[: len(value) - meta]
        events.append(
            _made((opcode, number, seqno, place, collection, key, value, datatype, cas, revision, flags, expiry,
                   lock_time, frame.size))
        )  # fmt: skip
        return True

    def _of_the_stream(self, frame: Frame, vbucket: Vbucket, events: list[Event]) -> bool:
        """Handles a frame of the stream that is not a document's. Returns whether it added an event."""
        opcode, extras = frame.opcode, frame.extras
        if opcode == Opcode.SNAPSHOT_MARKER:
            start, end, _ = _MARKER.unpack_from(extras if len(extras) >= _MARKER.size else frame.value)
            vbucket.announced(start, end)
            return False
        if opcode == Opcode.SEQNO_ADVANCED:
            (seqno,) = _NUMBER.unpack(extras)
            events.append(_moved(frame, seqno, vbucket.skipped_to(seqno)))
            return True
        if opcode == Opcode.SYSTEM_EVENT:
            seqno, event, version = _SYSTEM.unpack(extras)
            uid = vbucket.place.manifest_uid
            if event in NAMING and version < FLAT_BUFFERS:
                uid = self._manifest.apply(event, frame.key, frame.value)
            events.append(_moved(frame, seqno, vbucket.collections_changed(seqno, uid)))
            if event == COLLECTION_DROPPED and dropped_collection(frame.value) in vbucket.asked:
                del self.vbuckets[vbucket.number]
                self.left.append(vbucket.number)
            return True
        return False


def _moved(frame: Frame, seqno: int, place: HistoryPlace) -> Event:
    return Event(MOVED, frame.vbucket, seqno, place, None, b"", b"", 0, 0, 0, 0, 0, 0, frame.size)


def document(event: Event) -> bytes:
    """Returns the document of a change, decompressed and without the extended attributes before it.

    Raises ProtocolError for a value that does not fit its datatype.
    """
    value = event.value
    if not event.datatype & (SNAPPY_TYPE | XATTR_TYPE) or not value:
        return value
    if event.datatype & SNAPPY_TYPE:
        try:
            value = bytes(cramjam.snappy.decompress_raw(value))
        except cramjam.DecompressionError:
            raise ProtocolError(f"the value of {event.key!r} is no Snappy block") from None
    if event.datatype & XATTR_TYPE:
        if len(value) < _LENGTH.size or (length := _LENGTH.unpack_from(value)[0]) > len(value) - _LENGTH.size:
            raise ProtocolError(f"the extended attributes of {event.key!r} are longer than its value")
        value = value[_LENGTH.size + length :]
    return value

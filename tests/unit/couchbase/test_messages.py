"""A stream's messages as events: the fast path for mutations returns the same events as the general path."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keelman.couchbase.errors import ProtocolError
from keelman.couchbase.frames import Frame, FrameBuffer, Opcode, encoded
from keelman.couchbase.manifest import Collection, CollectionManifest, Selection
from keelman.couchbase.messages import MOVED, Decoder
from keelman.couchbase.vbucket import Event, Vbucket


def mutation(number: int, seqno: int, key: bytes, value: bytes = b"{}", *, meta: bytes = b"") -> bytes:
    extras = struct.pack(">QQIIIHB", seqno, 7, 2 << 24, 5, 6, len(meta), 0)
    return encoded(
        Opcode.MUTATION, status=number, cas=2**63 + 1, datatype=1, extras=extras, key=key, value=value + meta
    )


def marker(number: int, start: int, end: int) -> bytes:
    return encoded(Opcode.SNAPSHOT_MARKER, status=number, extras=struct.pack(">QQI", start, end, 1))


STREAM = [
    marker(1, 0, 9),
    mutation(1, 1, b"\0one"),
    mutation(1, 2, b"\x08two", b"{}", meta=b"meta"),
    mutation(2, 1, b"\0not followed"),
    mutation(1, 3, b"\x09dropped"),
    mutation(1, 4, b"\x81\x01a long id"),
    encoded(Opcode.DELETION, status=1, extras=struct.pack(">QQH", 5, 8, 0), key=b"\0gone"),
    mutation(1, 6, b"\0last"),
    encoded(Opcode.SEQNO_ADVANCED, status=1, extras=struct.pack(">Q", 9)),
    marker(1, 10, 11),
    mutation(1, 10, b"\0next", b""),
]


def events(
    pieces: list[bytes], *, short: bool, selection: Selection | None = None, asked: frozenset[int] = frozenset()
) -> tuple[list[Event], list[Frame], Vbucket]:
    manifest = CollectionManifest(
        collections={0: Collection("_default", "_default"), 8: Collection("s", "c"), 129: Collection("s", "d")},
        selection=selection or Selection(),
    )
    decoder, vbucket = Decoder(manifest, collections=True), Vbucket(1, asked=asked)
    decoder.vbuckets[1] = vbucket
    buffer, taken = FrameBuffer(), list[Event]()
    others = [
        frame
        for piece in pieces
        for frame in buffer.feed(piece, (lambda data, at: decoder.skim(data, at, taken)) if short else None)
        if not decoder.decode(frame, taken)
    ]
    return taken, others, vbucket


@given(st.lists(st.integers(0, len(b"".join(STREAM))), max_size=8))
def test_the_short_way_gives_the_same_however_it_is_cut(cuts: list[int]) -> None:
    whole = b"".join(STREAM)
    ends = [*sorted(cuts), len(whole)]
    pieces = [whole[at:end] for at, end in zip([0, *ends], ends, strict=False)]
    actual_events = events(pieces, short=True)
    assert actual_events == events([whole], short=False)
    assert [(event.seqno, event.key) for event in actual_events[0]] == [
        (1, b"one"), (2, b"two"), (3, b""), (4, b"a long id"), (5, b"gone"), (6, b"last"), (9, b""), (10, b"next"),
    ]  # fmt: skip
    assert actual_events[0][1].value == b"{}"
    assert actual_events[0][-1].place[1:3] == (10, 11)
    assert sum(event.size for event in actual_events[0]) + sum(event.size for event in actual_events[1]) == len(whole)


LATER_MARKERS = [(0, struct.pack(">QQIQQ", 3, 8, 1, 8, 0)), (2, struct.pack(">QQIQQQQ", 3, 8, 1, 8, 0, 0, 0))]


@pytest.mark.parametrize(("version", "value"), LATER_MARKERS)
def test_later_forms_of_markers(version: int, value: bytes) -> None:
    later = encoded(Opcode.SNAPSHOT_MARKER, status=1, extras=bytes([version]), value=value)
    ((event,), _, vbucket) = events([later, mutation(1, 4, b"\0doc")], short=True)
    assert event.place[1:3] == (3, 8)
    assert vbucket.announced_to == 8


def test_both_forms_of_deletions_and_expirations() -> None:
    timed = encoded(Opcode.DELETION, status=1, extras=struct.pack(">QQIB", 2, 9, 77, 0), key=b"\0timed")
    short = encoded(Opcode.DELETION, status=1, extras=struct.pack(">QQH", 3, 9, 2), key=b"\0short", value=b"xy")
    ended = encoded(Opcode.EXPIRATION, status=1, extras=struct.pack(">QQI", 4, 9, 77), key=b"\0ended")
    taken, _, _ = events([timed + short + ended], short=True)
    assert [(event.kind, event.seqno, event.revision, event.key, event.value) for event in taken] == [
        (Opcode.DELETION, 2, 9, b"timed", b""),
        (Opcode.DELETION, 3, 9, b"short", b""),
        (Opcode.EXPIRATION, 4, 9, b"ended", b""),
    ]


def test_events_that_name_no_collection_move_the_offset() -> None:
    values = [
        encoded(Opcode.SYSTEM_EVENT, status=1, extras=struct.pack(">QIB", seqno, kind, version), value=b"\0" * 12)
        for seqno, kind, version in ((1, 2, 0), (2, 0, 2), (3, 9, 0))
    ]
    taken, _, _ = events(values, short=True)
    assert [(event.kind, event.seqno) for event in taken] == [(MOVED, 1), (MOVED, 2), (MOVED, 3)]


def test_extras_of_no_known_form() -> None:
    with pytest.raises(ProtocolError, match=r"0x58 came with 5 bytes"):
        events([encoded(Opcode.DELETION, status=1, extras=bytes(5), key=b"\0k")], short=True)
    with pytest.raises(ProtocolError, match="no collection id"):
        events([mutation(1, 1, b"\x80\x80\x80\x80\x80\x80")], short=True)


def test_unknown_opcodes_are_counted_and_passed_over() -> None:
    taken, others, _ = events([encoded(0x77, status=1, extras=b"abc") + mutation(1, 1, b"\0doc")], short=True)
    assert [event.seqno for event in taken] == [1]
    assert [other.size for other in others] == [27]


@pytest.mark.parametrize("short", [True, False])
def test_what_is_not_asked_for_moves_the_offset(short: bool) -> None:
    mutations = [mutation(1, n, prefix + b"doc") for n, prefix in enumerate((b"\0", b"\x08", b"\x81\x01"), start=1)]
    taken, _, _ = events(mutations, short=short, selection=Selection("", [Collection("s", "c"), Collection("s", "e")]))
    assert [(event.kind, event.seqno) for event in taken] == [(MOVED, 1), (Opcode.MUTATION, 2), (MOVED, 3)]


def dropped(collection: int) -> bytes:
    value = struct.pack(">QII", 9, 8, collection)
    return encoded(Opcode.SYSTEM_EVENT, status=1, extras=struct.pack(">QIB", 2, 1, 0), value=value)


@pytest.mark.parametrize(("collection", "seqnos"), [(8, [1, 2]), (77, [1, 2, 3])])
def test_a_stream_is_left_where_a_collection_is_dropped_that_it_was_asked_for(
    collection: int, seqnos: list[int]
) -> None:
    """Later messages are counted, and will be requested again."""
    values = [mutation(1, 1, b"\x08doc"), dropped(collection), mutation(1, 3, b"\x81\x01doc")]
    taken, others, vbucket = events([b"".join(values)], short=True, asked=frozenset((8, 129)))
    assert [event.seqno for event in taken] == seqnos
    assert vbucket.seqno == seqnos[-1]
    assert sum(event.size for event in taken) + sum(event.size for event in others) == len(b"".join(values))

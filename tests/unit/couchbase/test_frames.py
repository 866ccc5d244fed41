"""Frames, byte by byte: recorded ones, and every way to cut them."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keelman.couchbase.errors import ProtocolError
from keelman.couchbase.frames import FRAMED_RESPONSE, HEADER, RESPONSE, FrameBuffer, Opcode, encoded
from keelman.couchbase.vbucket import Position, Vbucket

RECORDED = bytes.fromhex(
    "8053000030000000" "0000003b80000008" "0000000000000000" "0000009000000000" "0000000000000000" "ffffffffffffffff"
    "0000000000000000" "0000000000000000" "0000000000000000" "7b22756964223a2230227d"
)  # fmt: skip
"""A stream request of the official Java client: vbucket 0 from its beginning."""


def test_a_stream_request_is_the_recorded_one() -> None:
    vbucket = Vbucket(0)
    vbucket.start(Position(), [])
    extras = vbucket.request(ignore_purged=True)
    assert encoded(Opcode.STREAM_REQUEST, opaque=0x80000008, extras=extras, value=b'{"uid":"0"}') == RECORDED


FRAMES = [
    encoded(Opcode.MUTATION, status=7, cas=2**63 + 5, extras=bytes(31), key=b"\0doc", value=b"{}", datatype=1),
    encoded(Opcode.DCP_NOOP, opaque=1),
    RECORDED,
]


@given(st.lists(st.integers(0, len(b"".join(FRAMES))), max_size=8))
def test_frames_are_the_same_however_they_are_cut(cuts: list[int]) -> None:
    whole = b"".join(FRAMES)
    buffer, frames, at = FrameBuffer(), [], 0
    for cut in [*sorted(cuts), len(whole)]:
        frames += buffer.feed(whole[at:cut])
        at = cut
    assert [(frame.opcode, frame.status, frame.cas, frame.key, frame.value) for frame in frames] == [
        (Opcode.MUTATION, 7, 2**63 + 5, b"\0doc", b"{}"),
        (Opcode.DCP_NOOP, 0, 0, b"", b""),
        (Opcode.STREAM_REQUEST, 0, 0, b"", b'{"uid":"0"}'),
    ]
    assert sum(frame.size for frame in frames) == len(whole)


def test_framing_extras_are_passed_over() -> None:
    body = b"abc" + b"EX" + b"key" + b"value"
    raw = HEADER.pack(FRAMED_RESPONSE, Opcode.HELLO, (3 << 8) | 3, 2, 0, 0, len(body), 9, 0) + body
    (frame,) = FrameBuffer().feed(raw)
    assert (frame.magic, frame.extras, frame.key, frame.value) == (RESPONSE, b"EX", b"key", b"value")
    assert frame.size == len(raw), "they count for the flow control"


@pytest.mark.parametrize(
    "raw",
    [
        b"\x15\x03\x03\x00\x02\x02\x46" + bytes(17),
        b"HTTP/1.1 400 Bad Request\r\n",
        HEADER.pack(0x81, 0x1F, 0, 0, 0, 0, 25 << 20, 0, 0),
        struct.pack(">BBHBBHIIQ", 0x80, 0x57, 9, 31, 0, 0, 31, 0, 0) + bytes(31),
    ],
)
def test_what_is_no_frame_is_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(FrameBuffer().feed(raw))

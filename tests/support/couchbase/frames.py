"""Frames of the data service in the test server: the client's requests, and the frames sent to it."""

from __future__ import annotations

import struct
from typing import NamedTuple

HEADER = struct.Struct(">BBHBBHIIQ")
DURATION, STREAM_ID = struct.pack(">BH", 0x02, 7), struct.pack(">BH", 0x22, 1)
"""Framing extras: how long an answer took, and the stream's number."""


class Asked(NamedTuple):
    """A request."""

    opcode: int
    vbucket: int
    opaque: int
    extras: bytes
    key: bytes
    value: bytes


class Sent(NamedTuple):
    """A frame that the server sends. `status` is the vbucket in frames that are no answers."""

    opcode: int
    status: int
    opaque: int
    extras: bytes = b""
    key: bytes = b""
    value: bytes = b""
    datatype: int = 0
    cas: int = 0


def frame_of(magic: int, sent: Sent, *, is_framed: bool) -> bytes:
    """The bytes of a frame, with framing extras for clients with stream numbers."""
    framing, key_length = b"", len(sent.key)
    if is_framed and magic in (0x80, 0x81) and sent.opcode != 0x5C:
        framing = DURATION if magic == 0x81 else STREAM_ID
        magic, key_length = {0x80: 0x08, 0x81: 0x18}[magic], len(framing) << 8 | key_length
    body = len(framing) + len(sent.extras) + len(sent.key) + len(sent.value)
    lengths = key_length, len(sent.extras)
    header = HEADER.pack(magic, sent.opcode, *lengths, sent.datatype, sent.status, body, sent.opaque, sent.cas)
    return header + framing + sent.extras + sent.key + sent.value


def failover_log(branches: list[tuple[int, int]]) -> bytes:
    """The branches of a vbucket, the latest first."""
    return b"".join(struct.pack(">QQ", *branch) for branch in branches)


def leb128(number: int) -> bytes:
    """A collection's id in the encoding of its prefix of a key."""
    actual_bytearray = bytearray()
    while True:
        low, number = number & 0x7F, number >> 7
        actual_bytearray.append(low | (0x80 if number else 0))
        if not number:
            return bytes(actual_bytearray)

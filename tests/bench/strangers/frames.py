"""Just enough of HTTP/2 to make calls of gRPC from constant bytes: a client that costs less than the server it loads.

Header fields are literals that are never indexed, and the server is told to index none: its trailers are plain text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM = ACK = 1
END_HEADERS = 4
HEADER_TABLE_SIZE, INITIAL_WINDOW = 1, 4
HEAD_BYTES = 9
LARGEST_WINDOW = 2**31 - 1
FIRST_WINDOW = 65_535


class Frame(NamedTuple):
    """One frame."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def ends_call(self) -> bool:
        """Whether it is the last of an answered call: its trailers."""
        return self.kind == HEADERS and bool(self.flags & END_STREAM)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """The bytes of a frame."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


PREFACE = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + frame(SETTINGS, 0, 0, struct.pack("!HIHI", HEADER_TABLE_SIZE, 0, INITIAL_WINDOW, LARGEST_WINDOW))
    + frame(WINDOW, 0, 0, (LARGEST_WINDOW - FIRST_WINDOW).to_bytes(4))
)
"""What a client sends first."""


def head_of_call(method: str, token: str | None = None) -> bytes:
    """The header block of a call of /package.Service/Method."""
    fields = {":method": "POST", ":scheme": "http", ":path": method, ":authority": "gateway", "te": "trailers"}
    fields["content-type"] = "application/grpc"
    if token is not None:
        fields["authorization"] = f"Bearer {token}"
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())


def call(block: bytes, stream: int, request: bytes | None) -> bytes:
    """The frames of a whole call; without a request the client sends its head alone, and ends."""
    if request is None:
        return frame(HEADERS, END_HEADERS | END_STREAM, stream, block)
    return frame(HEADERS, END_HEADERS, stream, block) + frame(
        DATA, END_STREAM, stream, b"\0" + len(request).to_bytes(4) + request
    )


def answer_to(received: Frame) -> bytes:
    """The bytes that a client owes the server for a frame; empty for most."""
    if received.kind in (SETTINGS, PING) and not received.flags & ACK:
        return frame(received.kind, ACK, 0, received.payload if received.kind == PING else b"")
    return b""


class Reader:
    """Splits what a server sends into frames."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are whole."""
        data, at = self._rest + data, 0
        while len(data) - at >= HEAD_BYTES:
            end = at + HEAD_BYTES + int.from_bytes(data[at : at + 3])
            if end > len(data):
                break
            yield Frame(data[at + 3], data[at + 4], int.from_bytes(data[at + 5 : at + 9]), data[at + HEAD_BYTES : end])
            at = end
        self._rest = data[at:]


def _text(text: str) -> bytes:
    """A string as HPACK has it, not compressed (RFC 7541, 5.1 and 5.2)."""
    content = text.encode()
    size = len(content)
    if size < 127:
        return bytes((size,)) + content
    digits, size = [127], size - 127
    while size >= 128:
        digits.append(size % 128 + 128)
        size //= 128
    return bytes((*digits, size)) + content

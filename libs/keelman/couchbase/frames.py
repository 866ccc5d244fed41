"""Frames of Couchbase's key-value protocol, byte by byte: a header of 24 bytes, then extras, key and value.

Numbers are big-endian and unsigned. Source: kv_engine's docs/BinaryProtocol.md and its DCP pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from keelman.couchbase.errors import ProtocolError

HEADER = Struct(">BBHBBHIIQ")
HEADER_BYTES = 24
MAX_BODY_BYTES = 24 << 20
"""A document has 20 MiB at most; a larger body is no frame."""

REQUEST, RESPONSE = 0x80, 0x81
SERVER_REQUEST, CLIENT_RESPONSE = 0x82, 0x83
FRAMED_REQUEST, FRAMED_RESPONSE = 0x08, 0x18
"""Like REQUEST and RESPONSE, with framing extras, which are skipped."""
_MAGICS = frozenset((REQUEST, RESPONSE, SERVER_REQUEST, CLIENT_RESPONSE, FRAMED_REQUEST, FRAMED_RESPONSE))


class Opcode(IntEnum):
    """The operation that a frame requests or announces."""

    CLUSTER_MAP_CHANGE = 0x01  # only with SERVER_REQUEST
    NOOP = 0x0A
    VERSION = 0x0B
    HELLO = 0x1F
    SASL_LIST = 0x20
    SASL_AUTH = 0x21
    SASL_STEP = 0x22
    ALL_SEQNOS = 0x48
    DCP_OPEN = 0x50
    CLOSE_STREAM = 0x52
    STREAM_REQUEST = 0x53
    FAILOVER_LOG = 0x54
    STREAM_END = 0x55
    SNAPSHOT_MARKER = 0x56
    MUTATION = 0x57
    DELETION = 0x58
    EXPIRATION = 0x59
    DCP_NOOP = 0x5C
    BUFFER_ACK = 0x5D
    CONTROL = 0x5E
    SYSTEM_EVENT = 0x5F
    SEQNO_ADVANCED = 0x64
    OSO_SNAPSHOT = 0x65
    SELECT_BUCKET = 0x89
    OBSERVE_SEQNO = 0x91
    CLUSTER_MAP = 0xB5
    MANIFEST = 0xBA


class ResponseStatus(IntEnum):
    """The result of a request."""

    SUCCESS = 0x00
    KEY_NOT_FOUND = 0x01
    KEY_EXISTS = 0x02
    INVALID = 0x04
    NOT_MY_VBUCKET = 0x07
    NO_BUCKET = 0x08
    LOCKED = 0x09
    CONFIG_ONLY = 0x0D
    AUTH_STALE = 0x1F
    AUTH_ERROR = 0x20
    AUTH_CONTINUE = 0x21
    RANGE_ERROR = 0x22
    ROLLBACK = 0x23
    NO_ACCESS = 0x24
    NOT_INITIALIZED = 0x25
    UNKNOWN_COMMAND = 0x81
    OUT_OF_MEMORY = 0x82
    NOT_SUPPORTED = 0x83
    INTERNAL = 0x84
    BUSY = 0x85
    TEMPORARY_FAILURE = 0x86
    UNKNOWN_COLLECTION = 0x88
    UNKNOWN_SCOPE = 0x8C
    STREAM_ID_INVALID = 0x8D


PASSING = frozenset(
    (
        ResponseStatus.OUT_OF_MEMORY,
        ResponseStatus.BUSY,
        ResponseStatus.TEMPORARY_FAILURE,
        ResponseStatus.NOT_INITIALIZED,
        0x0C,
        0x30,
        0x31,
        0x32,
        0x33,
    )
)
"""Statuses after which the client retries."""


class Feature(IntEnum):
    """A feature that HELLO requests."""

    DATATYPE = 0x01
    XATTR = 0x06
    XERROR = 0x07
    SELECT_BUCKET = 0x08
    SNAPPY = 0x0A
    JSON = 0x0B
    DUPLEX = 0x0C
    CLUSTER_MAP_PUSH = 0x0D
    COLLECTIONS = 0x12


JSON_TYPE, SNAPPY_TYPE, XATTR_TYPE = 1, 2, 4
"""Bits of a frame's datatype."""


class Frame(NamedTuple):
    """One frame. `status` is the vbucket in a request; `framing` is the length of the framing extras."""

    magic: int
    opcode: int
    datatype: int
    status: int
    opaque: int
    cas: int
    extras: bytes
    key: bytes
    value: bytes
    framing: int = 0

    @property
    def vbucket(self) -> int:
        """The vbucket of a request."""
        return self.status

    @property
    def size(self) -> int:
        """The frame's bytes, header included."""
        return HEADER_BYTES + self.framing + len(self.extras) + len(self.key) + len(self.value)


def encoded(
    opcode: int,
    *,
    magic: int = REQUEST,
    status: int = 0,
    opaque: int = 0,
    cas: int = 0,
    datatype: int = 0,
    extras: bytes = b"",
    key: bytes = b"",
    value: bytes = b"",
) -> bytes:
    """Returns a frame's bytes. `status` is the vbucket in a request."""
    body = len(extras) + len(key) + len(value)
    header = HEADER.pack(magic, opcode, len(key), len(extras), datatype, status, body, opaque, cas)
    return b"".join((header, extras, key, value))


def frame_at(buffer: bytes, at: int) -> tuple[Frame, int] | None:
    """Returns the frame that begins at a position, and the position of the next; None if the frame is incomplete.
    Raises ProtocolError for bytes that are not a frame."""
    if len(buffer) - at < HEADER_BYTES:
        return None
    magic, opcode, key_length, extras_length, datatype, status, body, opaque, cas = HEADER.unpack_from(buffer, at)
    if body > MAX_BODY_BYTES or magic not in _MAGICS:
        raise ProtocolError(
            f"the answer is not Couchbase's protocol: it begins with {buffer[at : at + HEADER_BYTES].hex(' ')}"
        )
    begin = at + HEADER_BYTES
    stop, framing = begin + body, 0
    if stop > len(buffer):
        return None
    if magic in (FRAMED_REQUEST, FRAMED_RESPONSE):
        framing, key_length = key_length >> 8, key_length & 0xFF
        begin += framing
        magic = REQUEST if magic == FRAMED_REQUEST else RESPONSE
    key_at = begin + extras_length
    value_at = key_at + key_length
    if value_at > stop:
        raise ProtocolError(f"a frame's extras and key are longer than its body: opcode {opcode:#04x}")
    parts = buffer[begin:key_at], buffer[key_at:value_at], buffer[value_at:stop]
    return Frame(magic, opcode, datatype, status, opaque, cas, *parts, framing), stop


class FrameBuffer:
    """Reassembles frames from received bytes, however they are cut."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes, skim: Callable[[bytes, int], int] | None = None) -> Iterator[Frame]:
        """Yields the frames that are complete now, in order. Raises ProtocolError for bytes that are not a frame.

        Before each frame, `skim` gets the bytes and a position, may consume frames itself, and returns the position
        where it stopped.
        """
        buffer, at = self._rest + data if self._rest else data, 0
        self._rest = b""
        while True:
            if skim is not None:
                at = skim(buffer, at)
            match = frame_at(buffer, at)
            if match is None:
                break
            frame, at = match
            yield frame
        self._rest = buffer[at:]

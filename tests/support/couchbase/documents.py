"""Values of documents as the test server stores them: JSON or bytes, with attributes before them, compressed or not."""

from __future__ import annotations

import json
import struct
from typing import Any

import cramjam

JSON_TYPE, SNAPPY_TYPE, XATTR_TYPE = 1, 2, 4


def stored_value(document: Any, *, xattrs: dict[str, Any] | None = None, snappy: bool = False) -> tuple[bytes, int]:
    """The value and its datatype."""
    value, datatype = document, 0
    if not isinstance(document, bytes):
        value, datatype = json.dumps(document).encode(), JSON_TYPE
    if xattrs:
        pair = b"_sync\0" + json.dumps(xattrs).encode() + b"\0"
        value = struct.pack(">II", len(pair) + 4, len(pair)) + pair + value
        datatype |= XATTR_TYPE
    if snappy:
        value, datatype = bytes(cramjam.snappy.compress_raw(value)), datatype | SNAPPY_TYPE
    return value, datatype


def uncompressed(value: bytes) -> bytes:
    """The uncompressed value."""
    return bytes(cramjam.snappy.decompress_raw(value))

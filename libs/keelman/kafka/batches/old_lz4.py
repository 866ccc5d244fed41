"""Decompresses the LZ4 frames of Kafka 0.8 and 0.9, whose header checksum covers too many bytes.

Java's reader does not check it in messages of magic 0.
https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md
"""

from __future__ import annotations

import struct

import cramjam

_ATTRIBUTES_AT = 17  # after offset, length, checksum and magic
_CODEC_BITS, _LZ4 = 0x07, 3
_INT = struct.Struct(">i")
_BLOCK = struct.Struct("<I")
_RAW = 1 << 31
"""The bit of a block's length that marks it as uncompressed."""


def is_old_lz4(message: bytes) -> bool:
    """Whether a message of magic 0 contains others in LZ4."""
    return message[_ATTRIBUTES_AT] & _CODEC_BITS == _LZ4


def unwrapped(message: bytes) -> bytes:
    """Returns the set of messages within such a message. Raises ValueError, struct.error or cramjam's own errors."""
    (key,) = _INT.unpack_from(message, _ATTRIBUTES_AT + 1)
    at = _ATTRIBUTES_AT + 5 + max(key, 0)
    (size,) = _INT.unpack_from(message, at)
    frame = message[at + 4 : at + 4 + size]
    flags, most = frame[4], 1 << (8 + 2 * (frame[5] >> 4 & 0x07))
    has_size, has_block_sums, linked = flags >> 3 & 1, flags >> 4 & 1, not flags >> 5 & 1
    if linked:
        raise ValueError("a frame of LZ4 whose blocks depend on each other")
    block = memoryview(bytearray(most))
    at, unpacked = 7 + 8 * has_size, bytearray()
    while True:
        (length,) = _BLOCK.unpack_from(frame, at)
        if not length:
            return bytes(unpacked)
        data = frame[at + 4 : at + 4 + (length & ~_RAW)]
        unpacked += data if length & _RAW else block[: cramjam.lz4.decompress_block_into(data, block)]
        at += 4 + len(data) + 4 * has_block_sums

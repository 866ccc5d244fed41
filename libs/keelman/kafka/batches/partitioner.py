"""Assigns a whole column of keys to partitions as Java's default partitioner does: murmur2.

Source: `Utils.murmur2` and `BuiltInPartitioner.partitionForKey` of the Java client,
https://github.com/apache/kafka/blob/4.3/clients/src/main/java/org/apache/kafka/common/utils/Utils.java
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from functools import lru_cache

_M = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_FEW = 48
"""For at most so many keys, one after the other is as fast as all at once."""
_LONG = 256
"""Keys over so many bytes are hashed one by one, since all others would wait for the longest."""


def partitions_for(keys: Sequence[bytes], count: int) -> list[int]:
    """Returns the partition of each key in a topic of `count` partitions (at least 1), in the order of the keys.

    A slot has numpy loaded (pyarrow brings it) and uses it; another process does without it rather than load it.
    """
    if len(keys) <= _FEW or "numpy" not in sys.modules:
        return [(murmur2(key) & _POSITIVE) % count for key in keys]
    return _of_many(keys, count)


@lru_cache(maxsize=1024)
def partition_for(key: bytes, count: int) -> int:
    """Returns the partition of one key that is used again and again."""
    return (murmur2(key) & _POSITIVE) % count


def murmur2(data: bytes) -> int:
    """Returns Kafka's 32-bit murmur2 of the bytes, unsigned."""
    length = len(data)
    h = _SEED ^ length
    for word in _words(length >> 2).unpack_from(data):
        k = (word * _M) & _MASK
        h = ((h * _M) ^ ((k ^ (k >> 24)) * _M)) & _MASK
    if length & 3:
        h = ((h ^ int.from_bytes(data[length & ~3 :], "little")) * _M) & _MASK
    h = ((h ^ (h >> 13)) * _M) & _MASK
    return h ^ (h >> 15)


@lru_cache(maxsize=256)
def _words(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}I")


def _of_many(keys: Sequence[bytes], count: int) -> list[int]:
    """Returns the partitions, hashing word by word for all keys together."""
    import numpy as np  # noqa: PLC0415  (only where it is loaded already)

    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    shortest, longest = int(lengths.min()), int(lengths.max())
    if longest > _LONG:
        long = [at for at, key in enumerate(keys) if len(key) > _LONG]
        short = [key if len(key) <= _LONG else b"" for key in keys]
        partitions = _of_many(short, count)
        for at in long:
            partitions[at] = (murmur2(keys[at]) & _POSITIVE) % count
        return partitions
    starts = np.cumsum(lengths) - lengths
    # A word may begin at any byte, and the word after the last key is read too.
    data = b"".join((*keys, b"\0\0\0\0"))
    words = np.ndarray(len(data) - 3, "<u4", data, strides=(1,))
    m = np.uint32(_M)
    h = lengths.astype(np.uint32) ^ np.uint32(_SEED)
    for end in range(4, longest + 1, 4):
        who = slice(None) if end <= shortest else np.flatnonzero(lengths >= end)
        k = words[starts[who] + (end - 4)] * m
        h[who] = (h[who] * m) ^ ((k ^ (k >> np.uint32(24))) * m)
    who = np.flatnonzero(lengths & 3)
    over = (lengths[who] & 3).astype(np.uint32)
    tail = words[starts[who] + (lengths[who] & ~3)] & ((np.uint32(1) << (over * np.uint32(8))) - np.uint32(1))
    h[who] = (h[who] ^ tail) * m
    h = (h ^ (h >> np.uint32(13))) * m
    h ^= h >> np.uint32(15)
    return ((h & np.uint32(_POSITIVE)) % np.uint32(count)).tolist()  # type: ignore[no-any-return]

"""Which partition Java's default partitioner gives the records of a whole column of keys: murmur2.

Source: org.apache.kafka.clients.producer.internals.BuiltInPartitioner and org.apache.kafka.common.utils.Utils.murmur2,
https://github.com/apache/kafka/blob/4.3/clients/src/main/java/org/apache/kafka/common/utils/Utils.java
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

_M = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


def partitions_for(keys: Sequence[bytes], count: int) -> list[int]:
    """The partition of each keyed record in a topic of `count` partitions."""
    return [(murmur2(key) & 0x7FFFFFFF) % count for key in keys]


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 of the bytes, unsigned."""
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

"""The primitive types of Kafka's flexible requests and answers: compact strings and arrays, tagged fields.

https://kafka.apache.org/protocol.html#protocol_types
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
NO_TAGS = b"\0"
_SHORT = [bytes((value,)) for value in range(0x80)]


def varint(value: int) -> bytes:
    """Encodes an unsigned variable-length number."""
    if 0 <= value < len(_SHORT):
        return _SHORT[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@lru_cache(maxsize=1024)  # a client sends the same few names again and again
def compact(text: str | None) -> bytes:
    """Encodes a compact string: its length plus one, 0 for none, then UTF-8."""
    if text is None:
        return b"\0"
    data = text.encode()
    return varint(len(data) + 1) + data


class Fields:
    """Reads the fields of an answer one after the other. Raises struct.error or IndexError if it is cut off."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int16(self) -> int:
        """Reads two bytes."""
        return self._number(_INT16)

    def int32(self) -> int:
        """Reads four bytes."""
        return self._number(_INT32)

    def int64(self) -> int:
        """Reads eight bytes."""
        return self._number(_INT64)

    def several(self, form: struct.Struct) -> tuple[Any, ...]:
        """Reads several fields of fixed lengths at once."""
        values = form.unpack_from(self._data, self._at)
        self._at += form.size
        return values

    def varint(self) -> int:
        """Reads an unsigned variable-length number."""
        value = self._data[self._at]
        if value < 0x80:
            self._at += 1
            return value
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def count(self) -> int:
        """Reads the number of items of a compact array; 0 for none."""
        count = self.varint()
        return count - 1 if count else 0

    def raw(self, count: int) -> bytes:
        """Reads `count` bytes."""
        data = self._data[self._at : self._at + count]
        self._at += count
        return data

    def text(self) -> str:
        """Reads a compact string; empty for none."""
        count = self.count()
        return self.raw(count).decode() if count else ""

    def tags(self) -> dict[int, bytes]:
        """Reads tagged fields by their tags."""
        tags: dict[int, bytes] = {}
        for _ in range(self.varint()):
            tag = self.varint()
            tags[tag] = self.raw(self.varint())
        return tags

    def of_partitions(self, read_partition: Callable[[str], T]) -> list[T]:
        """Reads an array of topics, each with an array of partitions, with `read_partition`, which gets the topic's
        name."""
        partitions = []
        for _ in range(self.count()):
            topic = self.text()
            for _ in range(self.count()):
                partitions.append(read_partition(topic))
                self.tags()
            self.tags()
        return partitions

    def _number(self, form: struct.Struct) -> int:
        (value,) = form.unpack_from(self._data, self._at)
        self._at += form.size
        return int(value)

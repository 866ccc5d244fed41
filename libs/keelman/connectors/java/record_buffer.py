"""Memory that Python fills and Java reads: whole columns of a batch cross the border by being copied once."""

from __future__ import annotations

from typing import Any

from keelman.connectors.java.jvm import java_class

FIRST_BYTES = 1 << 20
ALIGNMENT = 8


class RecordBuffer:
    """A direct buffer that is filled from its beginning for each batch; it grows to the largest one."""

    def __init__(self, size: int = FIRST_BYTES) -> None:
        self._order = java_class("java.nio.ByteOrder").nativeOrder()
        self._allocate(size)

    def _allocate(self, size: int) -> None:
        self._buffer = java_class("java.nio.ByteBuffer").allocateDirect(size)
        self._view = memoryview(self._buffer).cast("B")
        self._used = 0

    def clear(self, size: int) -> None:
        """Begins again, with room for so many bytes in all; what was read from it before must be done with."""
        self._used = 0
        if size > len(self._view):
            self._allocate(size)

    def put(self, data: bytes | memoryview) -> Any:
        """These bytes as a Java ByteBuffer of the machine's byte order."""
        begin = self._used
        end = begin + len(data)
        self._view[begin:end] = data
        self._used = aligned(end)
        self._buffer.limit(end).position(begin)
        found = self._buffer.slice().order(self._order)
        self._buffer.clear()
        return found


def aligned(size: int) -> int:
    """The next place where a number may stand."""
    return -(-size // ALIGNMENT) * ALIGNMENT

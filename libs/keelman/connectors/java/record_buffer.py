"""Memory that Python fills and Java reads: whole columns of a batch cross the border by being copied once."""

from __future__ import annotations

from typing import Any

from keelman.connectors.java.jvm import java_class

FIRST_BYTES, MOST_SPARE_BYTES = 1 << 14, 1 << 20


class ColumnBuffer:
    """A direct buffer that is filled from its beginning for each batch, and grows with the largest one."""

    def __init__(self, numbers: str = "") -> None:
        """Of `numbers`, Int or Long in the machine's byte order; of bytes where it is empty."""
        self._numbers = numbers
        self._allocate(FIRST_BYTES)

    def _allocate(self, size: int) -> None:
        order = java_class("java.nio.ByteOrder").nativeOrder()
        buffer = java_class("java.nio.ByteBuffer").allocateDirect(size).order(order)
        self._view = memoryview(buffer).cast("B")
        self._java = getattr(buffer, f"as{self._numbers}Buffer")() if self._numbers else buffer

    def put(self, data: bytes) -> Any:
        """These bytes as a Java buffer that is to be read from its beginning, until the next is put."""
        if len(data) > len(self._view):
            self._allocate(len(data) + min(len(data), MOST_SPARE_BYTES))
        self._view[: len(data)] = data
        self._java.clear()
        return self._java

"""Lines of a block that was read, as Java's reader finds their ends."""

from __future__ import annotations

from itertools import accumulate

from keelman.connect.java.text import valid_utf8


def line_end(block: bytes) -> int:
    """The index behind the first byte that ends a line, 0 without one; a \\r that is the last byte ends nothing yet."""
    ends = [i + 1 for i in (block.find(b"\n"), block.find(b"\r", 0, len(block) - 1)) if i >= 0]
    return min(ends, default=0)


def split_lines(block: bytes) -> tuple[list[bytes], int]:
    """The ended lines of a block as valid UTF-8, and how many bytes they take with their ends.

    A \\r that is the block's last byte ends nothing yet: a \\n may follow it.
    """
    if b"\r" not in block:
        taken = block.rfind(b"\n") + 1
        ended = valid_utf8(block[: taken - 1]) if taken else b""
        return (ended.split(b"\n") if taken else []), taken
    taken = max(block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1)) + 1
    return valid_utf8(block[:taken]).splitlines(), taken


def first_lines(block: bytes, most: int) -> tuple[list[bytes], int]:
    """The first lines of a block that has more of them, and how many bytes they take with their ends."""
    taken = sum(map(len, block.splitlines(keepends=True)[:most]))
    return valid_utf8(block[:taken]).splitlines(), taken


class LineEnds:
    """The ends of a block's lines in a file, by the block's begin; counted at the first use."""

    def __init__(self, begin: int, block: bytes) -> None:
        self._begin = begin
        self._block = block
        self._ends: list[int] = []

    def behind(self, index: int) -> int:
        """The first byte behind a line and its end."""
        if not self._ends:
            self._ends = list(accumulate(map(len, self._block.splitlines(keepends=True)), initial=self._begin))
        return self._ends[index + 1]

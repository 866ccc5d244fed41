"""Remembers which dead letters of a partition are replayed: all below an offset, and ranges beyond it. Pure.

The offset is a consumer group's committed one and the ranges its metadata, so that both are committed together with the
records that were sent. Between the ranges are letters that failed again or that no replay has selected yet.
"""

from __future__ import annotations

from collections.abc import Iterable

COUNTS = ("sent", "failed", "lost", "dropped", "filtered")
"""The counters of a replay's letters."""
MAX_EXAMPLES = 5
"""The most examples of letters that stay."""
MARK = "replayed "
MAX_TEXT = 4_000
"""Brokers keep 4,096 bytes of metadata by default (offset.metadata.max.bytes)."""


class Replayed:
    """The replayed offsets from `begin` on."""

    def __init__(self, begin: int, ranges: Iterable[tuple[int, int]] = ()) -> None:
        """`ranges` have their first offset and the one after their last."""
        self.begin = begin
        self._ranges: list[tuple[int, int]] = []
        for first, end in ranges:
            self.add(first, end)

    @classmethod
    def read(cls, begin: int, metadata: str | None) -> Replayed:
        """Parses committed metadata; ignores metadata of other writers."""
        if not metadata or not metadata.startswith(MARK):
            return cls(begin)
        ranges, at = [], begin
        try:
            for part in metadata.removeprefix(MARK).split():
                gap, _, count = part.partition("+")
                first = at + int(gap)
                at = first + int(count)
                ranges.append((first, at))
        except ValueError:
            return cls(begin)
        return cls(begin, ranges)

    def text(self) -> str:
        """Returns the metadata's text; raises OverflowError when it is too long."""
        parts, at = [], self.begin
        for first, end in self._ranges:
            parts.append(f"{first - at}+{end - first}")
            at = end
        text = MARK + " ".join(parts) if parts else ""
        if len(text) > MAX_TEXT:
            raise OverflowError(f"{len(self._ranges)} ranges")
        return text

    def __contains__(self, offset: int) -> bool:
        return offset < self.begin or any(first <= offset < end for first, end in self._ranges)

    def add(self, first: int, end: int) -> None:
        """Adds a range of replayed offsets."""
        first = max(first, self.begin)
        if first >= end:
            return
        rest = []
        for span in self._ranges:
            if span[1] < first or span[0] > end:
                rest.append(span)
            else:
                first, end = min(first, span[0]), max(end, span[1])
        self._ranges = sorted([*rest, (first, end)])
        if self._ranges[0][0] == self.begin:
            self.begin = self._ranges.pop(0)[1]

    def copy(self) -> Replayed:
        """Returns an equal copy."""
        return Replayed(self.begin, self._ranges)

"""Writes to a file that were announced before they began, by which a torn tail is known again. Pure.

A killed process leaves a write complete, absent, or torn at a page: the kernel looks for signals between two pages.
An announcement therefore holds a few bytes before each page's end, and the first and the last bytes of the write. They
cost no pass over the data.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

PAGE_BYTES = 4096
SAMPLE_BYTES = 8
EDGE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Announcement:
    """One write: where it begins, how long it is, the checksums of its first and of its last bytes, and the bytes
    before the end of each page, those of one place in the page together."""

    begin: int
    length: int
    first: int
    last: int
    samples: bytes = b""

    @classmethod
    def of(cls, data: bytes, begin: int) -> Announcement:
        """The announcement of these bytes, to be written at a position."""
        first, length, samples = _first_boundary(begin), len(data), b""
        if first < length:
            places = range(SAMPLE_BYTES, 0, -1)
            samples = b"".join(data[first - back : length - back : PAGE_BYTES] for back in places)
        return cls(begin, length, zlib.crc32(data[:EDGE_BYTES]), zlib.crc32(data[-EDGE_BYTES:]), samples)

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.begin + self.length

    def line(self) -> bytes:
        """Returns the announcement's line in a journal."""
        text = b"%d %d %d %d %s" % (self.begin, self.length, self.first, self.last, base64.b64encode(self.samples))
        return b"%s %08x\n" % (text, zlib.crc32(text))

    def found(self, read: Callable[[int, int], bytes], size: int) -> int:
        """Returns how many of its bytes a file of this size holds in their place: all, some whole pages, or none.
        `read` returns a number of bytes from a position on."""
        edge = min(EDGE_BYTES, self.length)
        if zlib.crc32(read(edge, self.begin)) != self.first:
            return 0
        boundaries, matching = self._boundaries(), self._matching_pages(read, size)
        if size >= self.end and matching == len(boundaries) and zlib.crc32(read(edge, self.end - edge)) == self.last:
            return self.length
        return boundaries[matching - 1] if matching else 0

    def _boundaries(self) -> range:
        return range(_first_boundary(self.begin), self.length, PAGE_BYTES)

    def _matching_pages(self, read: Callable[[int, int], bytes], size: int) -> int:
        boundaries, count = self._boundaries(), 0
        for boundary in boundaries:
            if self.begin + boundary > size:
                break
            sample = self.samples[count :: len(boundaries)]
            if read(SAMPLE_BYTES, self.begin + boundary - SAMPLE_BYTES) != sample:
                break
            count += 1
        return count


def parse_announcements(lines: bytes) -> Sequence[Announcement]:
    """All whole ones; a process that was killed may have left half of the last one."""
    announcements = []
    for line in lines.splitlines():
        text, _, check = line.rpartition(b" ")
        try:
            if int(check, 16) != zlib.crc32(text):
                continue
            *numbers, samples = text.split(b" ")
            begin, length, first, last = map(int, numbers)
            announcements.append(Announcement(begin, length, first, last, base64.b64decode(samples, validate=True)))
        except (ValueError, binascii.Error):
            continue
    return announcements


def _first_boundary(begin: int) -> int:
    """The first page's end in a write that begins there, as a distance, behind at least one sample."""
    first = PAGE_BYTES - begin % PAGE_BYTES
    return first if first >= SAMPLE_BYTES else first + PAGE_BYTES

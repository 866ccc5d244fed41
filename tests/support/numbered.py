"""Makes numbered records, which carry task, sequence, length and checksum, so that any damage shows.

One compact line of printable ASCII without its end, the same in a file, a topic or a mirrored topic:
`<task> <sequence> <length> <crc32> <padding>`, for instance `0 17 40 5d3aa1b2 mfqk…`.
"""

from __future__ import annotations

import random
import string
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_LETTERS = "".join(random.Random(1).choices(string.ascii_lowercase, k=1 << 16)).encode()


class Number(NamedTuple):
    """The task that wrote a record and the record's number in that task, from 0."""

    task: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.task}/{self.sequence}"


@dataclass(frozen=True, slots=True)
class Stream:
    """One task's records, the same for the same seed: `count` of them, `shortest` to `longest` bytes long each."""

    task: int
    count: int
    shortest: int = 100
    longest: int = 100
    seed: int = 0

    def __iter__(self) -> Iterator[bytes]:
        lengths = random.Random(f"{self.seed}/{self.task}")
        for sequence in range(self.count):
            yield line(Number(self.task, sequence), lengths.randint(self.shortest, self.longest))

    def text(self) -> bytes:
        """All records as the lines of a file."""
        return b"".join(item + b"\n" for item in self)


def line(number: Number, length: int) -> bytes:
    """One record, `length` bytes or as long as its head."""
    head = b"%d %d %d " % (number.task, number.sequence, length)
    padding = max(1, length - len(head) - 9)
    at = (number.sequence * 127 + number.task) % (len(_LETTERS) - padding)
    body = _LETTERS[at : at + padding]
    return b"%s%08x %s" % (head, zlib.crc32(head + body), body)


def parsed(record: bytes | None) -> Number | None:
    """The number of a whole record; None for a torn one: wrong length, wrong checksum, or no numbered record at all."""
    fields = [] if record is None else record.split(b" ")
    if len(fields) != 5 or record is None:
        return None
    try:
        task, sequence, length, checksum = (*map(int, fields[:3]), int(fields[3], 16))
    except ValueError:
        return None
    number = Number(task, sequence)
    head = b"%d %d %d " % (task, sequence, length)
    whole = max(length, len(head) + 10) == len(record) and zlib.crc32(head + fields[4]) == checksum
    return number if whole else None

"""The notes of a sink whose data Spark writes, kept with its group's offsets: which write is under way. Pure.

Before each write the group's offsets get a note of the writer, the number of the write and its end in that partition;
after it they move to that end. Partitions without records in it get the note as well. So a write that was interrupted,
or whose offsets were not committed, is repeated with the same records and the same number, and a data set that has the
number already takes nothing twice. Offsets that a person sets have no such note: the sink continues from them. Kafka
stores up to `offset.metadata.max.bytes` (4096) bytes of note with each offset.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keelman.connect.records import TopicPartition

_NOTE = re.compile(r"keelman\.write=([0-9a-f]{32}),([0-9]{1,18}),([0-9]{1,18});")


@dataclass(frozen=True, slots=True)
class WriteNote:
    """The last write that a partition was part of: its writer (32 hexadecimal digits), its number from 1, and the
    offset after its last record."""

    writer: str
    version: int
    end: int

    @property
    def text(self) -> str:
        """The note as the group keeps it."""
        return f"keelman.write={self.writer},{self.version},{self.end};"


def read_note(text: str) -> WriteNote | None:
    """Returns the note that the group keeps with an offset; None for any other text."""
    match = _NOTE.match(text)
    return None if match is None else WriteNote(match[1], int(match[2]), int(match[3]))


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What the notes tell at the start of a copy run. `writer` and `version` are those of the last write, empty and 0
    before the first; `ends` are the partitions whose offsets have not moved to that write's end yet, with this end."""

    writer: str
    version: int
    ends: Mapping[TopicPartition, int]


def unfinished(kept: Iterable[tuple[TopicPartition, int, str]]) -> Unfinished:
    """Returns the last write by the partitions' committed offsets and notes."""
    noted = [(where, offset, note) for where, offset, text in kept if (note := read_note(text)) is not None]
    if not noted:
        return Unfinished("", 0, {})
    _, _, last = max(noted, key=lambda entry: (entry[2].version, entry[2].writer))
    mine = [entry for entry in noted if (entry[2].writer, entry[2].version) == (last.writer, last.version)]
    return Unfinished(last.writer, last.version, {w: note.end for w, offset, note in mine if offset < note.end})

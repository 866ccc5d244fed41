"""Decides what a sink whose data Spark writes has written next. Pure, but for the names of new writers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from keelman.connect.records import TopicPartition
from keelman.engine.sink.write_notes import Unfinished, WriteNote, read_note, unfinished
from keelman.kafka.groups.offsets import Committed

NO_OFFSET = Committed(-1)


class Stretch(NamedTuple):
    """Offsets of one partition, from `begin` to before `end`."""

    where: TopicPartition
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Write:
    """One write: its stretches, and its writer and number, empty and 0 where it is at least once. `again`: the group's
    notes tell of it already. `others` are the group's offsets of further partitions: they get the number too, so that
    no offset that a person sets hides it."""

    stretches: tuple[Stretch, ...] = ()
    writer: str = ""
    version: int = 0
    again: bool = False
    others: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def begun(self) -> dict[tuple[str, int], Committed]:
        """The group's offsets before it, with its notes."""
        return self._offsets({s.where: s.begin for s in self.stretches})

    @property
    def ended(self) -> dict[tuple[str, int], Committed]:
        """The group's offsets after it."""
        return self._offsets({s.where: s.end for s in self.stretches})

    def _offsets(self, offsets: Mapping[TopicPartition, int]) -> dict[tuple[str, int], Committed]:
        ends = {**self.others, **{s.where: s.end for s in self.stretches}}
        every = {**self.others, **offsets}
        return {(*w,): Committed(every[w], self._note(ends[w])) for w in every}

    def _note(self, end: int) -> str:
        return WriteNote(self.writer, self.version, end).text if self.writer else ""


class Writes:
    """The writes of one copy run."""

    def __init__(self, most: int, *, once: bool, new_writer: Callable[[], str] = lambda: uuid.uuid4().hex) -> None:
        """`most` is the number of offsets in one write; `once`: writes have numbers."""
        self._most, self._once, self._new_writer = most, once, new_writer
        self._first: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}  # of this copy run's writes
        self._last: tuple[str, int] = ("", 0)  # writer and number of the last of them
        self.lag: int | None = None
        """Records behind the group's offsets; None before the first look."""
        self.repairs: dict[tuple[str, int], Committed] = {}
        """The offsets that the group had to have at the last look: a copy run before this one that was held up has
        committed earlier ones after ours. To be committed at once."""

    def next(
        self,
        kept: Mapping[tuple[str, int], Committed],
        begins: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        *,
        latest: bool,
    ) -> Write:
        """Returns the write that is unfinished, else one behind the group's offsets; one without stretches when there
        is nothing to write.

        `kept` are the group's offsets, `begins` and `ends` the present bounds of all partitions. `latest`: a partition
        without an offset begins at its end, as it is seen first.
        """
        read = {where: kept.get((*where,), NO_OFFSET) for where in ends}
        repaired = {where: self._repaired(where, entry) for where, entry in read.items()}
        self.repairs = {(*where,): entry for where, entry in repaired.items() if entry is not None}
        entries = {where: repaired[where] or entry for where, entry in read.items()}
        positions: dict[TopicPartition, int] = {}
        for where, entry in entries.items():
            # A partition without an offset begins at its first known begin or end; so does a truncated partition.
            first = self._first.setdefault(where, ends[where] if latest else begins[where])
            positions[where] = max(entry.offset if 0 <= entry.offset <= ends[where] else first, begins[where])
        self.lag = sum(max(0, ends[where] - position) for where, position in positions.items())
        if not self._once:
            return Write(self._behind(positions, ends))
        last = unfinished((where, positions[where], entry.note) for where, entry in entries.items())
        offsets = {where: entry.offset for where, entry in entries.items() if entry.offset >= 0}
        if again := _still_there(last, positions, ends):
            return Write(again, last.writer, last.version, again=True, others=offsets)
        writer, version = last.writer or self._last[0] or self._new_writer(), last.version
        if writer == self._last[0]:
            version = max(version, self._last[1])
        return Write(self._behind(positions, ends), writer, version + 1, others=offsets)

    def done(self, write: Write) -> None:
        """Takes note that a write and its offsets are there."""
        self.lag = max(0, (self.lag or 0) - sum(s.end - s.begin for s in write.stretches))
        if write.writer:
            self._last = write.writer, write.version
            self._ends |= {stretch.where: stretch.end for stretch in write.stretches}

    def _repaired(self, where: TopicPartition, entry: Committed) -> Committed | None:
        (writer, version), note = self._last, read_note(entry.note)
        if note is None or note.writer != writer or note.version >= version:
            return None
        offset = self._ends.get(where, entry.offset)
        return Committed(offset, WriteNote(writer, version, offset).text)

    def _behind(
        self, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> tuple[Stretch, ...]:
        stretches, left = [], self._most
        for where, begin in positions.items():
            end = min(ends[where], begin + left)
            if end > begin:
                stretches.append(Stretch(where, begin, end))
                left -= end - begin
        return tuple(stretches)


def _still_there(
    last: Unfinished, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> tuple[Stretch, ...]:
    """Returns the stretches of an unfinished write as far as their records are still in the log: their topic may have
    been deleted or created again, and brokers may have removed the oldest records."""
    stretches = []
    for where, end in last.ends.items():
        begin, last_end = positions[where], min(end, ends[where])
        if begin < last_end:
            stretches.append(Stretch(where, begin, last_end))
    return tuple(stretches)

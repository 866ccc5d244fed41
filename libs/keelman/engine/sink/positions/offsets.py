"""Decides at which offset a sink continues in a partition, by its writer's offset and the group's. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from keelman.connect.plugin import KeptOffset

# The note that REST stores with an offset that it sets: the time in ms since 1970. The client library reads such a note
# up to its first zero byte, whatever length the broker reports.
_NOTE = re.compile(r"keelman\.altered=([0-9]{1,18});")
NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """The group's offset for a partition: the committed offset, None without one; the time when it was set or reset
    through REST, in ms since 1970, 0 if it was not; and the leader epoch of the last record before the offset, if that
    was committed with it."""

    offset: int | None
    altered_ms: int = 0
    leader_epoch: int = NO_EPOCH

    @property
    def shown(self) -> int | None:
        """The value that `KeptOffset.mirrored` holds for it. The value of an offset set through REST differs from every
        offset that a sink commits, and from every earlier one set through REST."""
        return -self.altered_ms if self.altered_ms else self.offset


@dataclass(frozen=True, slots=True)
class SourceLog:
    """The present state of the source partition: its end, the id of its topic, empty when not known, and the end in it
    of the leader epoch of the last copied record, None when not known. The last copied record is that of the kept
    offset, or without one that of the group's offset."""

    end: int | None = None
    topic_id: str = ""
    epoch_end: int | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """The offset to read next, None if `auto.offset.reset` decides; and the reason, when it is unusual."""

    offset: int | None
    reason: str = ""
    from_beginning: bool = False
    """Without an offset: reads from the beginning, regardless of the configuration and the group's offset."""
    truncated: int = 0
    """The number of copied records that are gone from the log's end."""


def start_of(kept_offset: KeptOffset | None, group: GroupOffset, log: SourceLog) -> Start:
    """Decides for one partition.

    The kept offset counts, since it moved together with the data, except where

    - the topic was deleted and created again, as its id shows: reads from the beginning, or from an offset that was set
      for the new topic;
    - the group's offset is none that this sink could have committed: a person set it, and the group's offset wins. A
      missing offset proves nothing, for brokers forget a group's offsets in time (offsets.retention.minutes);
    - the log has lost its end: the sink continues where the records it has read and the present log diverge.
    """
    if kept_offset is None:
        return Start(None) if group.offset is None else _in_log(group.offset, log.epoch_end)
    moved = group.shown is not None and group.shown != kept_offset.offset and group.shown not in kept_offset.mirrored
    if _another_topic(kept_offset, log):
        reason = f"kept offset {kept_offset.offset} is of a topic that was deleted; another one of its name was created"
        its_own = moved and group.offset is not None and (log.end is None or group.offset <= log.end)
        return Start(group.offset if its_own else None, reason, from_beginning=not its_own)
    if moved:
        shown = "none" if group.offset is None else str(group.offset)
        return Start(group.offset, f"the group's offset was moved to {shown} from {kept_offset.offset}: the group wins")
    # A new leader may for a moment report an end, its high watermark, that lies before records already read.
    return _in_log(kept_offset.offset, log.end if log.epoch_end is None else log.epoch_end)


def _in_log(copied_to: int, end: int | None) -> Start:
    """Returns the start in a log that was copied up to an offset and now ends at `end`, None when not known."""
    if end is None or end >= copied_to:
        return Start(copied_to)
    return Start(
        end,
        f"the log was truncated to {end} while records up to {copied_to} were copied: "
        "the records that replaced the lost ones are copied after them",
        truncated=copied_to - end,
    )


def _another_topic(kept_offset: KeptOffset, log: SourceLog) -> bool:
    if kept_offset.topic_id and log.topic_id:
        return kept_offset.topic_id != log.topic_id
    return (
        log.end is not None and kept_offset.offset > log.end
    )  # without ids: the sign that was used before ids existed


def is_ours(old: KeptOffset, shown: int | None, *, shared: bool) -> bool:
    """Returns whether an offset that was kept before offsets had readers is ours, by our group's offset.

    It is ours if the group shows the same offset, or one mirrored with it. That is uncertain if the group shows none,
    or if another reader keeps offsets of the same partition there (`shared`): then the group's offset counts, which can
    repeat records and loses none.
    """
    return not shared and shown is not None and (shown == old.offset or shown in old.mirrored)


def altered_note(altered_ms: int) -> str:
    """Returns the note that REST stores in the group with an offset that it sets."""
    return f"keelman.altered={altered_ms};\0"


def altered_ms(note: str | None) -> int:
    """Returns the time when a committed offset was set through REST; 0 for any other offset."""
    match = _NOTE.match(note or "")
    return 0 if match is None else int(match[1])


class Mirror:
    """The offsets that the group may show for one partition: the last acknowledged offset, and any sent since."""

    def __init__(self, group_offset: int | None) -> None:
        """`group_offset` is the group's offset at the assignment."""
        self.candidates: tuple[int | None, ...] = (group_offset,)

    def sent(self, offset: int) -> None:
        """Notes that a commit of this offset was sent."""
        if offset not in self.candidates:
            self.candidates = (*self.candidates, offset)

    def acknowledged(self, offset: int) -> None:
        """Notes that the group took this offset; commits go in order, so the group cannot show an older one any
        more."""
        if offset in self.candidates:
            self.candidates = self.candidates[self.candidates.index(offset) :]

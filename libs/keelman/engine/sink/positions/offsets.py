"""Decides where a sink goes on in a partition, by its writer's offset and the group's. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from keelman.connect.plugin import KeptOffset

# What REST notes with an offset that it sets: when, in ms since 1970. The client library reads such a note up to its
# first zero byte, however long the broker says that it is.
_NOTE = re.compile(r"keelman\.altered=([0-9]{1,18});")
NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """The group's offset for a partition: the committed one, None when there is none; when it was set or reset through
    REST, in ms since 1970, 0 for one that was not; and the leader epoch of the last record before the offset, where it
    was committed with it."""

    offset: int | None
    altered_ms: int = 0
    leader_epoch: int = NO_EPOCH

    @property
    def shown(self) -> int | None:
        """What `KeptOffset.mirrored` holds of it. What was set through REST differs from all that a sink commits, and
        from all that was set before."""
        return -self.altered_ms if self.altered_ms else self.offset


@dataclass(frozen=True, slots=True)
class Log:
    """The partition that is read, as it is now: its end, the id of its topic, empty when not known, and where the
    leader epoch of the last record that was copied ends in it, None when not known. Of what is kept, and where nothing
    is, of what the group shows."""

    end: int | None = None
    topic_id: str = ""
    epoch_end: int | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """The offset to read next, None for where `auto.offset.reset` says; and why, when it is unusual."""

    offset: int | None
    reason: str = ""
    from_beginning: bool = False
    """Where there is no offset: the beginning, whatever is configured and whatever the group shows."""
    truncated: int = 0
    """How many records that were copied are gone from the log's end."""


def start_of(kept: KeptOffset | None, group: GroupOffset, log: Log) -> Start:
    """Decides for one partition.

    The kept offset stands, since it moved together with the data. It does not where

    - the topic was deleted and created again, as its id shows: all is read, or what was set for the new one;
    - the group's offset is none of those that this sink could have put there: somebody set it, and the group wins. No
      offset at all is no such sign, for brokers forget a group's offsets in time (offsets.retention.minutes);
    - the log has lost its end: the sink goes on where what it had read and what is there now part.
    """
    if kept is None:
        return Start(None) if group.offset is None else _in_log(group.offset, log.epoch_end)
    moved = group.shown is not None and group.shown != kept.offset and group.shown not in kept.mirrored
    if _another_topic(kept, log):
        reason = f"kept offset {kept.offset} is of a topic that was deleted; another one of its name was created"
        its_own = moved and group.offset is not None and (log.end is None or group.offset <= log.end)
        return Start(group.offset if its_own else None, reason, from_beginning=not its_own)
    if moved:
        shown = "none" if group.offset is None else str(group.offset)
        return Start(group.offset, f"the group's offset was moved to {shown} from {kept.offset}: the group wins")
    # A new leader may report an end, its high watermark, for a moment that lies before what was read already.
    return _in_log(kept.offset, log.end if log.epoch_end is None else log.epoch_end)


def _in_log(copied_to: int, end: int | None) -> Start:
    """Where everything up to an offset was copied of a log of which so much, None when not known, is still there."""
    if end is None or end >= copied_to:
        return Start(copied_to)
    return Start(
        end,
        f"the log was truncated to {end} while records up to {copied_to} were copied: "
        "what was written in place of those that are gone is copied behind them",
        truncated=copied_to - end,
    )


def _another_topic(kept: KeptOffset, log: Log) -> bool:
    if kept.topic_id and log.topic_id:
        return kept.topic_id != log.topic_id
    return log.end is not None and kept.offset > log.end  # ids are not known: what was taken for it before them


def is_ours(old: KeptOffset, shown: int | None, *, shared: bool) -> bool:
    """Whether an offset that was kept before offsets had readers is ours, by what our group shows.

    It is where the group shows it, or what went with it. It is not known to be where the group shows nothing, or where
    somebody else keeps offsets of the same partition there (`shared`): then the group's offset counts, which can
    repeat records and loses none.
    """
    return not shared and shown is not None and (shown == old.offset or shown in old.mirrored)


def altered_note(altered_ms: int) -> str:
    """What REST notes in the group with an offset that it sets."""
    return f"keelman.altered={altered_ms};\0"


def altered_ms(note: str | None) -> int:
    """When a committed offset was set through REST; 0 for any other."""
    found = _NOTE.match(note or "")
    return 0 if found is None else int(found[1])


class Mirror:
    """The offsets that the group may show for one partition: the one last known to be committed, and any sent since."""

    def __init__(self, known: int | None) -> None:
        """`known` is what the group shows at the assignment."""
        self.candidates: tuple[int | None, ...] = (known,)

    def sent(self, offset: int) -> None:
        """A commit of this offset is on its way."""
        if offset not in self.candidates:
            self.candidates = (*self.candidates, offset)

    def acknowledged(self, offset: int) -> None:
        """The group took this offset; commits go in order, so nothing older can show any more."""
        if offset in self.candidates:
            self.candidates = self.candidates[self.candidates.index(offset) :]

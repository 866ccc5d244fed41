"""Where a sink goes on in a partition: the pure decision between what its writer kept and what the group shows."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.connect.plugin import KeptOffset


@dataclass(frozen=True, slots=True)
class Start:
    """The offset to read next, None for the group's own or, without one, the beginning; and why, when it is unusual."""

    offset: int | None
    reason: str = ""


def start_of(kept: KeptOffset | None, group: int | None, log_end: int | None) -> Start:
    """Decides for one partition.

    `group` is the group's committed offset, None when it has none; `log_end` the partition's end, None when not known.

    The kept offset stands, since it moved together with the data. Two things show that it must not: the group's offset
    is none of those that this sink could have put there, so an operator moved it; or the log ends before it, so the
    topic was deleted and made anew.
    """
    if kept is None:
        return Start(group)
    if log_end is not None and kept.offset > log_end:
        return Start(
            group if group is not None and group <= log_end else None,
            f"kept offset {kept.offset} is beyond the log's end {log_end}: the topic was made anew",
        )
    if group != kept.offset and group not in kept.mirrored:
        shown = "none" if group is None else str(group)
        return Start(
            group,
            f"the group's offset was moved to {shown} from {kept.offset}: the group wins",
        )
    return Start(kept.offset)


class Mirror:
    """What the group may show for one partition: the offset last known to be committed, and any sent since."""

    def __init__(self, known: int | None) -> None:
        """`known` is the group's committed offset at the assignment."""
        self.candidates: tuple[int | None, ...] = (known,)

    def sent(self, offset: int) -> None:
        """A commit of this offset is on its way."""
        if offset not in self.candidates:
            self.candidates = (*self.candidates, offset)

    def acknowledged(self, offset: int) -> None:
        """The group took this offset; commits go in order, so nothing older can show any more."""
        if offset in self.candidates:
            self.candidates = self.candidates[self.candidates.index(offset) :]

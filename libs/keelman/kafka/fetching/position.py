"""A consumer's position in a partition, checked against the leader's log after a new epoch: KIP-320.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-320
"""

from __future__ import annotations

from dataclasses import dataclass, field

from keelman.kafka.fetching.offset_requests import EpochEnd
from keelman.kafka.leaders.metadata import NO_EPOCH

EARLIEST, LATEST = -2, -1
"""Positions that only a leader can resolve: the beginning and the end of a log."""
MAX_EPOCHS = 32


@dataclass(slots=True)
class FetchPosition:
    """The next offset to read, EARLIEST or LATEST.

    `epochs` are the leader epochs of the records read so far, each with the first offset read in it, the newest last;
    empty when unknown, and then nothing is checked. `topic_id` is the id of the topic that was read, if known.
    """

    offset: int
    topic_id: str = ""
    epochs: list[tuple[int, int]] = field(default_factory=list)
    checked: int = NO_EPOCH
    """The leader epoch in which the leader's log was last found to contain the records read so far."""
    missing: bool = False
    """A leader has reported that its log has no such offset."""

    @property
    def epoch(self) -> int:
        """The epoch of the last batch that was read, -1 when not known."""
        return self.epochs[-1][0] if self.epochs else NO_EPOCH

    def doubtful(self, led_in: int) -> bool:
        """Whether the position must be checked with a leader of this epoch before anything is fetched from it."""
        return self.offset < 0 or self.missing or bool(self.epochs and self.checked != led_in != NO_EPOCH)

    def advance(self, offset: int, epochs: list[tuple[int, int]], led_in: int) -> None:
        """Records that all before `offset` is read; `epochs` are the batches' in order, `led_in` the leader's."""
        self.offset, self.checked = offset, led_in
        for epoch, begins in epochs:
            if epoch not in (NO_EPOCH, self.epoch):
                self.epochs.append((epoch, begins))
        del self.epochs[:-MAX_EPOCHS]

    def cut(self, offset: int) -> None:
        """Goes back to an offset up to which the log has the records that were read."""
        self.offset = offset
        self.epochs = [(epoch, begins) for epoch, begins in self.epochs if begins < offset]
        self.missing = False

    def restart(self, topic_id: str, offset: int = EARLIEST) -> None:
        """Begins a recreated topic of this name, or applies the reset policy: nothing of it has been read."""
        self.offset, self.topic_id, self.epochs, self.missing = offset, topic_id, [], False


def diverges_at(position: FetchPosition, end: EpochEnd) -> int | None:
    """Returns the first offset that was read and is another record, or none, in the leader's log; None if none differs.

    `end` is the leader's answer about the position's epoch. Without an epoch in it the leader does not know.
    """
    if end.epoch < 0 or end.offset < 0:
        return None
    # Records read in epochs that this leader's log does not have are not in it.
    unknown = min((begins for epoch, begins in position.epochs if epoch > end.epoch), default=position.offset)
    at = min(end.offset, unknown)
    return at if at < position.offset else None


def made_anew(position: FetchPosition, topic_id: str) -> bool:
    """Whether the topic that has the name now is not the one that was read."""
    return bool(position.topic_id and topic_id and position.topic_id != topic_id)


def goes_on_at(position: FetchPosition, begin: int, end: int, topic_id: str) -> int | None:
    """Returns where to read on after a leader's log, from `begin` to `end`, lacked the offset; None: reset by policy.

    If the position is past the end of the same topic's log, the log has lost its tail: new records are appended at its
    end. If it is before the beginning, retention has deleted records. If the topic's id is not known, the topic may be
    another one of the same name.
    """
    if begin <= position.offset <= end:
        return position.offset
    if position.offset > end and position.topic_id and position.topic_id == topic_id:
        return max(begin, end)
    return None

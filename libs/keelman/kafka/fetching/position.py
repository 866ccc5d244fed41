"""A consumer's position in a partition, checked against the leader's log after a new epoch: KIP-320.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-320
"""

from __future__ import annotations

from dataclasses import dataclass, field

from keelman.kafka.fetching.leader_epochs import NO_EPOCH, EpochEnd

EARLIEST, LATEST = -2, -1
"""Positions that a leader is asked for: where a log begins, and where it ends."""
MAX_EPOCHS = 32


@dataclass(slots=True)
class Position:
    """The next offset to read, EARLIEST or LATEST.

    `epochs` are the leaders' epochs of what was read, each with the first offset that was read of it, the newest last:
    none when nothing is known, and then nothing is checked. `topic_id` is that of the topic that was read, if known.
    """

    offset: int
    topic_id: str = ""
    epochs: list[tuple[int, int]] = field(default_factory=list)
    checked: int = NO_EPOCH
    """The leader's epoch in which its log was found to have what was read."""
    missing: bool = False
    """A leader has said that its log has no such offset."""

    @property
    def epoch(self) -> int:
        """That of the last batch that was read, -1 when not known."""
        return self.epochs[-1][0] if self.epochs else NO_EPOCH

    def doubtful(self, led_in: int) -> bool:
        """Whether a leader of this epoch is to be asked about it before anything is fetched from there."""
        return self.offset < 0 or self.missing or bool(self.epochs and self.checked != led_in != NO_EPOCH)

    def advance(self, offset: int, epochs: list[tuple[int, int]], led_in: int) -> None:
        """All before `offset` is read; `epochs` are those of the batches, in order, `led_in` that of who had them."""
        self.offset, self.checked = offset, led_in
        for epoch, begins in epochs:
            if epoch not in (NO_EPOCH, self.epoch):
                self.epochs.append((epoch, begins))
        del self.epochs[:-MAX_EPOCHS]

    def cut(self, offset: int) -> None:
        """Goes back to an offset up to which the log is the one that was read."""
        self.offset = offset
        self.epochs = [(epoch, begins) for epoch, begins in self.epochs if begins < offset]
        self.missing = False

    def restart(self, topic_id: str, offset: int = EARLIEST) -> None:
        """Begins with another topic of this name, or by the reset policy: nothing of it is read."""
        self.offset, self.topic_id, self.epochs, self.missing = offset, topic_id, [], False


def diverges_at(position: Position, end: EpochEnd) -> int | None:
    """The first offset that was read and is another record, or none, in the leader's log; None when all is as it was.

    `end` is the leader's answer about the position's epoch. Without an epoch in it the leader cannot say.
    """
    if end.epoch < 0 or end.offset < 0:
        return None
    # Of what was read in epochs that this leader's log does not have, nothing is in it.
    unknown = min((begins for epoch, begins in position.epochs if epoch > end.epoch), default=position.offset)
    at = min(end.offset, unknown)
    return at if at < position.offset else None


def made_anew(position: Position, topic_id: str) -> bool:
    """Whether the topic that goes by the name now is not the one that was read."""
    return bool(position.topic_id and topic_id and position.topic_id != topic_id)


def goes_on_at(position: Position, begin: int, end: int, topic_id: str) -> int | None:
    """Where to read on after a leader had no such offset, whose log begins and ends there; None: by the reset policy.

    Behind the end of a log that is the one that was read, its tail is lost: what is written from now on comes at its
    end. Before its beginning, records were deleted in time; and of a position whose topic is not known nobody can say
    that it is not another of its name.
    """
    if begin <= position.offset <= end:
        return position.offset
    if position.offset > end and position.topic_id and position.topic_id == topic_id:
        return max(begin, end)
    return None

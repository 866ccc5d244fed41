"""Keeps how far a source has read, sent and committed, and what of it is left."""

from __future__ import annotations

from keelman.connect import contract
from keelman.connect.plugin import Reader
from keelman.connect.records import SourceBatch


class ReadPosition:
    """The position of one run of one source task; its thread alone uses it.

    A reader goes on from what it has read, the next run from what is committed: what is between the two is still left.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._unsent: int | None = 0
        self._sent = 0

    def read(self, batch: SourceBatch) -> None:
        """A batch was read: it is sent next, or given up, and then it is the last one."""
        self._unsent = self._taken(batch)

    def sent(self, written: int) -> None:
        """It has gone to the producer, as so many bytes of keys and values."""
        self._sent += written if self._unsent is None else self._unsent
        self._unsent = 0

    def given_back(self) -> None:
        """The reader has taken it back: it is left again."""
        self._unsent = 0

    def committed(self) -> int:
        """What was sent is committed: how much it took of what the reader had left."""
        sent, self._sent = self._sent, 0
        return sent

    def lag(self) -> int | None:
        """What is left behind the committed positions; None when the reader does not know what it has left."""
        left = contract.LEFT.of(self._reader.left)
        return None if left is None else left + self._sent + (self._unsent or 0)

    def _taken(self, batch: SourceBatch) -> int | None:
        """What it has taken of the lag; None for as many bytes as will be written."""
        if batch.passed is not None:
            return batch.passed
        if self._reader.lag_unit == "bytes":
            return None
        return sum(one.records for one in batch.packed) or len(batch.values.values)

"""Tracks how far a source has read, sent and committed, and its lag."""

from __future__ import annotations

from keelman.connect import contract
from keelman.connect.plugin import Reader
from keelman.connect.records import SourceBatch


class ReadPosition:
    """The position of one run of one source task; its thread alone uses it.

    The reader continues behind the last read record, the next run behind the last commit: records between count as lag.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._unsent: int | None = 0
        self._sent = 0

    def read(self, batch: SourceBatch) -> None:
        """Notes a read batch: it will be sent next, or given up, and then it is the last one."""
        self._unsent = self._taken(batch)

    def sent(self, written: int) -> None:
        """Notes that the batch was sent, as `written` bytes of keys and values."""
        self._sent += written if self._unsent is None else self._unsent
        self._unsent = 0

    def given_back(self) -> None:
        """Notes that the reader has taken the batch back: the reader counts it as left again."""
        self._unsent = 0

    def committed(self) -> int:
        """Notes a commit. Returns the amount by which it reduced the lag."""
        sent, self._sent = self._sent, 0
        return sent

    def lag(self) -> int | None:
        """Returns the lag behind the committed positions; None when the reader does not know its own."""
        left = contract.LEFT.of(self._reader.left)
        return None if left is None else left + self._sent + (self._unsent or 0)

    def _taken(self, batch: SourceBatch) -> int | None:
        """Returns the batch's share of the lag; None for the number of bytes that will be written."""
        if batch.passed is not None:
            return batch.passed
        if self._reader.lag_unit == "bytes":
            return None
        return sum(packed.records for packed in batch.packed) or len(batch.values.values)

"""How far a source's reader has come, in the unit of its own lag: bytes of a file, records of topics."""

from __future__ import annotations

from keelman.connect.plugin import Reader
from keelman.connect.records import SourceBatch


class Passage:
    """Of one run of one source task; its thread alone uses it.

    A reader goes on from what it has read, the next run from what is committed: what is between the two is still left.
    """

    _reader: Reader

    def __init__(self) -> None:
        self._read = self._sent = 0

    def open(self, reader: Reader) -> None:
        """Whose it is."""
        self._reader = reader

    def read(self, batch: SourceBatch) -> None:
        """A batch was read, be it sent or given up."""
        self._read += self._taken(batch, 0)

    def sent(self, batch: SourceBatch, written: int) -> None:
        """It has gone to the producer, as so many bytes of keys and values."""
        taken = self._taken(batch, written)
        self._sent += taken
        self._read += taken - self._taken(batch, 0)

    def committed(self) -> int:
        """What was sent is committed: how much it took of what the reader had left."""
        sent, self._sent = self._sent, 0
        self._read -= sent
        return sent

    def lag(self) -> int | None:
        """What is left behind the committed positions; None when the reader does not know what it has left."""
        left = self._reader.left()
        return None if left is None else left + self._read

    def _taken(self, batch: SourceBatch, written: int) -> int:
        if batch.passed is not None:
            return batch.passed
        if self._reader.lag_unit == "bytes":
            return written
        return sum(one.records for one in batch.packed) or len(batch.values.values)

"""How far a source's reader has come, in the unit of its own lag: bytes of a file, records of topics."""

from __future__ import annotations

from keelman.connect.plugin import Reader
from keelman.connect.records import SourceBatch


class Passage:
    """Of one run of one source task; its thread alone uses it."""

    _reader: Reader

    def __init__(self) -> None:
        self._sent = 0

    def open(self, reader: Reader) -> None:
        """Whose it is."""
        self._reader = reader

    def sent(self, batch: SourceBatch, written: int) -> None:
        """A batch has gone to the producer, as so many bytes of keys and values."""
        self._sent += self._taken(batch, written)

    def committed(self) -> int:
        """What was sent is committed: how much it took of what the reader had left."""
        sent, self._sent = self._sent, 0
        return sent

    def _taken(self, batch: SourceBatch, written: int) -> int:
        if batch.passed is not None:
            return batch.passed
        if self._reader.lag_unit == "bytes":
            return written
        return sum(one.records for one in batch.packed) or len(batch.values.values)

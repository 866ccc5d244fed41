"""Counts the records that a source has sent since its last commit, and commits or aborts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

from keelman.connect import contract
from keelman.connect.offsets import CommittedOffsets, identity, parse_value
from keelman.connect.plugin import Reader
from keelman.connect.records import Offset, Partition, RawOffset, SourceBatch
from keelman.engine.producing.producer import RunProducer
from keelman.engine.producing.transactions import TransactionalProducer
from keelman.engine.progress import Progress
from keelman.engine.source.boundary import Act, Boundary
from keelman.engine.source.read_position import ReadPosition
from keelman.engine.source.worker_offsets import WorkerOffsets

Pending: TypeAlias = tuple[Partition, Offset | None] | RawOffset


@dataclass(slots=True)
class SourceCommits:
    """Commits one run of one source task; its thread alone uses it. Its methods raise what the producer raises."""

    offset_topic: str
    _: KW_ONLY
    reader: Reader
    producer: RunProducer
    committed: CommittedOffsets
    boundary: Boundary
    position: ReadPosition
    progress: Progress
    worker_offsets: WorkerOffsets | None = None
    """The second place for the offsets, for a connector with its own offset topic."""
    pending: dict[str, Pending] = field(default_factory=dict)
    """The offsets to commit, by their partition's identity; an empty identity marks records that wait without
    offsets."""
    open: bool = False
    """Whether a transaction is open: a batch is being sent, or was sent, since the last commit."""
    torn: bool = False
    """Whether a batch that must be committed with the last one has yet to come."""
    _gave_up: bool = False
    _records: int = 0
    _bytes: int = 0

    def write_again(self) -> None:
        """Adds the task's committed offsets to its first transaction once more.

        An aborted transaction of a predecessor may have left newer offset records behind; a Java worker that reads
        uncommitted would continue from those. After this the last record of every key is committed. If the first
        transaction may stay open for long, or be aborted by its connector, the offsets get a separate transaction.
        """
        if not isinstance(self.producer, TransactionalProducer):
            return
        for partition in contract.PARTITIONS.of(self.reader.partitions):
            stored = self.committed.stored(partition)
            if stored is not None:
                self.pending[identity(partition)] = stored
        if self.pending and self.boundary.kind != "poll":
            self._commit()

    def begin(self) -> None:
        """Notes that a batch is about to be sent."""
        self.boundary.begun()
        self.open = True

    def add(self, batch: SourceBatch, records: int, size: int) -> None:
        """Notes a sent batch: its good records, and their bytes."""
        self._records += records
        self._bytes += size
        self.position.sent(size)
        pending = self.pending
        for partition, offset in batch.offsets:
            pending[identity(partition)] = (partition, offset)
        for raw in batch.raw_offsets:
            pending[self.committed.raw_identity(raw.key)] = raw
        self.torn = batch.more
        if not batch.offsets and not batch.raw_offsets:
            pending.setdefault("", ({}, None))

    def give_up(self) -> None:
        """Notes that the last read batch is not sent: the reader must not take it for committed."""
        self._gave_up = True

    def end(self, batch: SourceBatch | None) -> None:
        """Ends the transaction after this read if the boundary requires it; `batch` is None when the read found
        nothing."""
        if self.torn:
            return
        act = self.boundary.after(batch)
        self._end("commit" if act is None and self.producer.full else act)

    def end_at_rest(self) -> None:
        """Ends the transaction before a rest, without a read, if the boundary requires it."""
        if not self.torn:
            self._end(self.boundary.after(None))

    def end_last(self) -> None:
        """Ends a drained run's last transaction. Aborts records that the boundary leaves open, or that are only a part
        of a commit, so that they are read again; without transactions the records stay, and their offsets are not
        committed."""
        act = self.boundary.at_end if self.open else "commit"
        if self.torn or act == "abort":
            self._abort()
        else:
            self._commit()

    @property
    def finished(self) -> bool:
        """Whether the source has ended and all its records are committed."""
        return not self.pending and not self._gave_up and contract.FINISHED.of(self.reader.finished)

    def _end(self, act: Act | None) -> None:
        """Ends the transaction. If its connector aborts it, the records are gone and their offsets are committed, as in
        Connect: the task does not see them again."""
        if act == "abort":
            self._abort()
        if act is not None:
            self._commit()

    def _abort(self) -> None:
        if isinstance(self.producer, TransactionalProducer):
            self.producer.abandon()
        self.open, self._records, self._bytes = False, 0, 0

    def _commit(self) -> None:
        pending = {name: entry for name, entry in self.pending.items() if name}
        offsets = [self._record(name, entry) for name, entry in pending.items()]
        self.producer.committed = False
        if self.worker_offsets is not None:
            self.worker_offsets.before_commit(offsets)
        try:
            self.producer.commit(self.offset_topic, offsets)
        finally:
            if self.producer.committed:
                self._settle(pending)
                if self.worker_offsets is not None:
                    self.worker_offsets.after_commit(offsets)
                if not self._gave_up:  # else the reader would take the given up batch for committed, too
                    contract.COMMITTED.of(self.reader.committed)

    def _record(self, name: str, pending: Pending) -> tuple[bytes, bytes | None]:
        return (
            self.committed.raw_record(pending)
            if isinstance(pending, RawOffset)
            else self.committed.record(*pending, name)
        )

    def _settle(self, pending: Mapping[str, Pending]) -> None:
        offsets = {}
        for name, entry in pending.items():
            if isinstance(entry, RawOffset):
                self.committed.note_raw(entry)
                offsets[name] = _text(parse_value(entry.value))
            else:
                self.committed.note(*entry)
                offsets[name] = _text(entry[1])
        self.progress.commit(self._records, self._bytes, offsets, passed=self.position.committed())
        self.boundary.committed()
        self.pending, self.open, self._records, self._bytes = {}, False, 0, 0


def _text(offset: Mapping[str, Any] | None) -> str:
    return "null" if offset is None else identity(offset)

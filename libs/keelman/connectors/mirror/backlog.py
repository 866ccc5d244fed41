"""Holds a mirror's fetched batches until they are passed on: as whole batches where possible, else as records."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from keelman.connect.records import PackedRecords, TopicPartition
from keelman.kafka.batches.record_batch import BatchHeader, CorruptBatch, RecordColumns, decode
from keelman.kafka.fetching.fetched import Fetched

# So many loose records, or one batch of them, stay in the processor's caches until they are packed again.
LOOSE_RECORDS = 2_000
# A broker takes one batch of a partition at a time, and each is work for both sides: many batches that are smaller than
# this on average cost less when they are taken apart and packed together. Compressed batches must be compressed again.
SMALL_BYTES = 12_288
SMALL_COMPRESSED_BYTES = 3_072
FEW_BATCHES = 2


@dataclass(slots=True)
class PartitionRun:
    """One partition's records in a portion, from `first` to `last`; `index` is the place of the last record or batch in
    the portion.

    `epoch` is the last record's leader epoch, -1 when not known, `topic_id` its topic's id, empty when not known.
    """

    first: int
    last: int
    index: int
    skipped: bool
    epoch: int = -1
    topic_id: str = ""


@dataclass(slots=True)
class Portion:
    """Records of one topic: either `packed`, or columns; and each partition's run of records in it."""

    topic: str
    packed: list[PackedRecords] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    timestamps_ms: list[int | None] = field(default_factory=list)
    headers: list[Any] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    runs: dict[TopicPartition, PartitionRun] = field(default_factory=dict)
    records: int = 0
    size: int = 0
    """The approximate size of the records in bytes."""


@dataclass(slots=True)
class _Piece:
    one: TopicPartition
    header: BatchHeader
    data: memoryview
    begins: int
    small: bool
    topic_id: str
    columns: RecordColumns | None = None
    at: int = 0

    @property
    def record_bytes(self) -> float:
        """The approximate bytes of one record."""
        return self.header.size / max(1, self.header.records)

    @property
    def least_bytes(self) -> float:
        """The bytes of the smallest part that can be taken of it."""
        return self.record_bytes if self.columns is not None or self.small else self.header.size


@dataclass(slots=True)
class _Mark:
    """The end of a fetch: once all before it is passed on, `next` is the partition's next position."""

    one: TopicPartition
    begins: int
    next: int
    end: int


class Backlog:
    """The backlog of one reader, whose thread alone uses it."""

    def __init__(
        self, whole: Callable[[BatchHeader], bool], reached: Callable[[TopicPartition, int, int], None]
    ) -> None:
        """`whole` tells whether a batch may be passed on unchanged; `reached` is called with partition, position and
        end when all records of a fetch are taken."""
        self._whole = whole
        self._reached = reached
        self._items: deque[_Piece | _Mark] = deque()
        self._last: dict[TopicPartition, int] = {}

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, fetched: Fetched) -> None:
        """Appends a fetch."""
        partition = TopicPartition(fetched.topic, fetched.partition)
        small = _small(fetched.batches)
        topic_id = fetched.topic_id
        self._items.extend(
            _Piece(partition, header, data, fetched.position, small, topic_id) for header, data in fetched.batches
        )
        self._items.append(_Mark(partition, fetched.position, fetched.next, fetched.end))

    def drop(self, topic: str) -> dict[TopicPartition, int]:
        """Drops all batches of a topic. Returns by partition the first position that was dropped."""
        dropped = [item for item in self._items if item.one.topic == topic]
        self._items = deque(item for item in self._items if item.one.topic != topic)
        self._last = {partition: last for partition, last in self._last.items() if partition.topic != topic}
        return {item.one: item.begins for item in reversed(dropped)}

    def take(self, most: int | None, most_bytes: int | None = None) -> Portion | None:
        """Returns the next records of one topic in one form, at most `most`; None when the backlog is empty.

        A batch without room waits for the next portion; a batch that alone has more than `most` records is taken apart,
        a batch that alone has more than `most_bytes` is not. Raises CorruptBatch.
        """
        portion: Portion | None = None
        while self._items:
            item = self._items[0]
            if isinstance(item, _Mark):
                self._items.popleft()
                self._reached(item.one, item.next, item.end)
                continue
            if portion is None or not portion.records:
                portion = Portion(item.one.topic)
            if portion.size and most_bytes is not None and portion.size + item.least_bytes > most_bytes:
                break
            if item.one.topic != portion.topic or not self._put(item, portion, most, most_bytes):
                break
        return portion if portion is not None and portion.records else None

    def _put(self, piece: _Piece, portion: Portion, most: int | None, most_bytes: int | None) -> bool:
        """Takes as much of the piece as has room. Returns whether more may follow it."""
        header = piece.header
        whole = (
            piece.columns is None
            and not piece.small
            and header.base_offset >= piece.begins
            and (most is None or header.records <= most)
            and self._whole(header)
        )
        if whole:
            if portion.values or (most is not None and portion.records + header.records > most):
                return False
            portion.packed.append(PackedRecords(piece.data, piece.one.partition, header.records))
            portion.size += header.size
            self._note(portion, piece, header.base_offset, header.last_offset, header.records)
            self._items.popleft()
            return True
        room = (most or LOOSE_RECORDS) - portion.records
        if portion.packed or room <= 0:
            return False
        columns = piece.columns
        if columns is None:
            try:
                columns = piece.columns = decode(header, piece.data)
            except CorruptBatch as error:
                text = f"partition {piece.one.partition} of topic {piece.one.topic}: {error.message}"
                raise CorruptBatch(text) from error
            piece.at = bisect_left(columns.offsets, piece.begins)
        begin, end = piece.at, len(columns.offsets)
        if most_bytes is not None:
            room = min(room, max(1, int((most_bytes - portion.size) / piece.record_bytes)))
        if most is not None or most_bytes is not None:
            end = min(end, begin + room)
        portion.size += round((end - begin) * piece.record_bytes)
        if end > begin:
            _extend(portion, columns, begin, end, piece.one.partition)
            self._note(portion, piece, columns.offsets[begin], columns.offsets[end - 1], end - begin)
        piece.at = end
        if end == len(columns.offsets):
            self._items.popleft()
        return True

    def _note(self, portion: Portion, piece: _Piece, first: int, last: int, count: int) -> None:
        partition = piece.one
        before = self._last.get(partition, first - 1)
        skipped = first != before + 1 or last - first != count - 1
        run = portion.runs.get(partition)
        portion.records += count
        index = (len(portion.packed) or len(portion.values)) - 1
        epoch = piece.header.leader_epoch if piece.header.magic >= 2 else -1
        if run is not None:
            first, skipped = run.first, skipped or run.skipped
        portion.runs[partition] = PartitionRun(first, last, index, skipped, epoch, piece.topic_id)
        self._last[partition] = last


def _small(batches: Sequence[tuple[BatchHeader, memoryview]]) -> bool:
    if len(batches) <= FEW_BATCHES:
        return False
    least = SMALL_COMPRESSED_BYTES if batches[0][0].codec else SMALL_BYTES
    return sum(header.size for header, _ in batches) < least * len(batches)


def _extend(portion: Portion, columns: RecordColumns, begin: int, end: int, partition: int) -> None:
    portion.values += columns.values[begin:end]
    portion.keys += columns.keys[begin:end]
    portion.headers += columns.headers[begin:end]
    portion.offsets += columns.offsets[begin:end]
    portion.partitions += [partition] * (end - begin)
    stamps = columns.timestamps_ms[begin:end]
    portion.timestamps_ms += [None if stamp == -1 else stamp for stamp in stamps] if -1 in stamps else stamps

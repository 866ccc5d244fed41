"""Converts batches in pieces: where a large one holds a bad record, all pieces but its own are still converted
whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from keelman.connect.columns import taken
from keelman.connect.records import Column, Offset, Origin, Partition, SinkBatch, SourceBatch

Position = Callable[[int], tuple[Partition, Offset | None]]

PIECE = 100
"""Records of a piece."""


def ranges(records: int) -> Iterator[tuple[int, int]]:
    """The first record of each piece, and the one behind its last."""
    for begin in range(0, records, PIECE):
        yield begin, min(begin + PIECE, records)


def source_pieces(batch: SourceBatch) -> Iterator[SourceBatch]:
    """A batch in its pieces, in order; those have the offsets of the whole."""
    for begin, end in ranges(len(batch.values.values)):
        delivered = batch.delivered
        yield replace(
            batch,
            values=_cut(batch.values, begin, end),
            keys=None if batch.keys is None else _cut(batch.keys, begin, end),
            partitions=_some(batch.partitions, begin, end),
            timestamps_ms=_some(batch.timestamps_ms, begin, end),
            headers=_some(batch.headers, begin, end),
            delivered=delivered and {at - begin: offset for at, offset in delivered.items() if begin <= at < end},
            position=None if batch.position is None else partial(_later, batch.position, begin),
        )


def chosen(batch: SourceBatch, at: Sequence[int]) -> SourceBatch:
    """Those records of a batch with these indices, which are in order; its offsets are those of the whole."""
    places = {index: place for place, index in enumerate(at)}
    position = batch.position
    return replace(
        batch,
        values=_picked(batch.values, at),
        keys=None if batch.keys is None else _picked(batch.keys, at),
        partitions=None if batch.partitions is None else taken(batch.partitions, at),
        timestamps_ms=None if batch.timestamps_ms is None else taken(batch.timestamps_ms, at),
        headers=None if batch.headers is None else taken(batch.headers, at),
        delivered=batch.delivered and {places[n]: offset for n, offset in batch.delivered.items() if n in places},
        position=None if position is None else lambda place: position(at[place]),
        failed={},
    )


def origin_piece(origin: Origin, begin: int, end: int) -> Origin:
    """Where some of the records came from."""
    return Origin(
        origin.topics[begin:end],
        origin.partitions[begin:end],
        origin.offsets[begin:end],
        origin.timestamps_ms[begin:end],
        origin.headers[begin:end],
    )


def joined(parts: Sequence[SinkBatch]) -> SinkBatch:
    """Pieces of a sink's batch as one; all have keys and origins, or none has."""
    keys = [part.keys for part in parts if part.keys is not None]
    origins = [part.origin for part in parts if part.origin is not None]
    return SinkBatch(
        _joined([part.values for part in parts]),
        _joined(keys) if keys else None,
        Origin(
            [topic for origin in origins for topic in origin.topics],
            [partition for origin in origins for partition in origin.partitions],
            [offset for origin in origins for offset in origin.offsets],
            [timestamp for origin in origins for timestamp in origin.timestamps_ms],
            [headers for origin in origins for headers in origin.headers],
        ),
    )


def _later(position: Position, by: int, index: int) -> tuple[Partition, Offset | None]:
    return position(by + index)


def _joined(columns: Sequence[Column]) -> Column:
    texts = [column.texts() for column in columns]
    schemas = [column.schema_of(n) for column in texts for n in range(len(column.values))]
    return Column([value for column in texts for value in column.values], schemas=schemas)


def _cut(column: Column, begin: int, end: int) -> Column:
    schemas = None if column.schemas is None else column.schemas[begin:end]
    return Column(column.values[begin:end], column.schema, schemas, column.utf8)


def _picked(column: Column, at: Sequence[int]) -> Column:
    schemas = None if column.schemas is None else taken(column.schemas, at)
    return Column(taken(column.values, at), column.schema, schemas, column.utf8)


def _some(column: Any, begin: int, end: int) -> Any:
    return None if column is None else column[begin:end]

"""Takes packed record batches apart that their topic does not take as they are."""

from __future__ import annotations

from dataclasses import replace

from keelman.connect.records import Column, Headers, SourceBatch
from keelman.kafka.batches.record_batch import decode, read_header


def unpacked(batch: SourceBatch) -> SourceBatch:
    """The batch with its records in columns. Raises CorruptBatch."""
    values: list[bytes | None] = []
    keys: list[bytes | None] = []
    times: list[int | None] = []
    headers: list[Headers] = []
    partitions: list[int | None] = []
    delivered = {}
    for index, packed in enumerate(batch.packed):
        columns = decode(read_header(packed.data), packed.data)
        values += columns.values
        keys += columns.keys
        times += [None if stamp == -1 else stamp for stamp in columns.timestamps_ms]
        headers += map(tuple, columns.headers)
        partitions += [packed.partition] * len(columns.values)
        if notify := (batch.delivered or {}).get(index):
            delivered[len(values) - 1] = notify
    return replace(
        batch,
        packed=(),
        values=Column(values),
        keys=Column(keys),
        timestamps_ms=times,
        headers=headers if any(headers) else None,
        partitions=partitions,
        delivered=delivered,
    )

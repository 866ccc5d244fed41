"""Runs a connector's converters and transforms as one function for whole batches, a column at a time.

Records of one shape stay together on the way and get their order back at the end. Errors here do not tell which record
is bad: the caller then converts the records one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from keelman.connect.batch_splitting import column_of, data_of, places_of
from keelman.connect.columns import ColumnBatch, Data, Nulls, StructColumn, taken
from keelman.connect.converters.converter import Converter
from keelman.connect.java.text import is_utf8
from keelman.connect.record import Header
from keelman.connect.records import Column, Headers, Origin, Repeated, SinkBatch, SourceBatch
from keelman.connect.schema import OPTIONAL_BYTES
from keelman.connect.transforms.chain import Chain

Payloads = list[bytes | None]
Sent = tuple[SourceBatch, Payloads, Payloads | None]


class Fused:
    """The fused steps of one task; its thread alone uses them."""

    def __init__(self, steps: Chain, values: Converter, keys: Converter, headers: Converter) -> None:
        self._steps, self._values, self._keys, self._headers = steps, values, keys, headers
        self._carries = not steps.of_headers and headers.reads_anything
        """Whether headers can stay in their Kafka form."""

    def source(self, batch: SourceBatch) -> Iterator[Sent]:
        """Yields a batch for each topic, with its values and keys as payloads. Raises the errors of the steps."""
        count = len(batch.values.values)
        if not count:
            return
        whole = ColumnBatch(
            batch.topic,
            range(count),
            _typed(batch, batch.values),
            Nulls() if batch.keys is None else _typed(batch, batch.keys),
            batch.partitions,
            batch.timestamps_ms,
            self._opened(batch.headers),
            loose=True,
        )
        topics: dict[str, list[ColumnBatch]] = {}
        for part in self._steps.fused(whole):
            topics.setdefault(part.topic, []).append(part)
        for topic, parts in sorted(topics.items(), key=lambda entry: min(part.origins[0] for part in entry[1])):
            yield self._sent(batch, topic, InterleavedBatches(parts))

    def sink(self, values: Payloads, keys: Payloads, origin: Origin, *, raw: bool) -> tuple[SinkBatch, list[int]]:
        """Returns the writer's batch, with `raw` of payloads, and its records' places in the input. Raises the
        errors of the steps."""
        topics: dict[str, Sequence[int]] = {}
        if origin.topics and origin.topics.count(origin.topics[0]) == len(values):
            topics[origin.topics[0]] = range(len(values))
        else:
            topics.update(places_of(origin.topics))
        batches: list[ColumnBatch] = []
        for topic, places in topics.items():
            columns_left: list[Any] = [
                values,
                keys,
                origin.partitions,
                origin.timestamps_ms,
                origin.offsets,
                origin.headers,
            ]
            if len(topics) > 1:
                columns_left = [taken(column, places) for column in columns_left]
            value, key, partitions, times, offsets, headers = columns_left
            valued = _valid(self._values.of_topic(topic).to_columns(value))
            keyed = _valid(self._keys.of_topic(topic).to_columns(key))
            opened = self._opened(headers)
            batch = ColumnBatch(topic, places, valued, keyed, partitions, times, opened, offsets, loose=True)
            batches += self._steps.fused(batch)
        parts = InterleavedBatches(batches)
        if raw:
            columns = [
                Column(parts.ordered(lambda batch: _payloads(self._values, batch, batch.value)), OPTIONAL_BYTES),
                Column(parts.ordered(lambda batch: _payloads(self._keys, batch, batch.key)), OPTIONAL_BYTES),
            ]
        else:
            columns = [parts.column(lambda batch: batch.value), parts.column(lambda batch: batch.key)]
        new_origin = Origin(
            parts.ordered(lambda batch: [batch.topic] * batch.count),
            parts.ordered(lambda batch: batch.partitions or [0] * batch.count),
            parts.ordered(lambda batch: batch.offsets or [0] * batch.count),
            parts.ordered(lambda batch: batch.timestamps_ms or [None] * batch.count),
            [headers or None for headers in self._closed(parts, origin.headers)],
        )
        return SinkBatch(columns[0], columns[1], new_origin), parts.origins

    def _sent(self, batch: SourceBatch, topic: str, parts: InterleavedBatches) -> Sent:
        values = parts.ordered(lambda part: _payloads(self._values, part, part.value, raw=batch.raw))
        keys = parts.ordered(lambda part: _payloads(self._keys, part, part.key, raw=batch.raw))
        headers = self._closed(parts, batch.headers)
        sent_batch = replace(
            batch,
            topic=topic,
            values=Column(values),
            keys=Column(keys),
            partitions=parts.some(lambda part: part.partitions),
            timestamps_ms=parts.some(lambda part: part.timestamps_ms),
            headers=headers if any(headers) else None,
            delivered=moved(batch, parts.origins),
        )
        return sent_batch, values, None if keys.count(None) == len(keys) else keys

    def _opened(self, headers: Sequence[Headers | None] | None) -> list[list[Header]] | None:
        if headers is None or self._carries or not any(headers):
            return None
        return [[self._header(name, raw) for name, raw in header or ()] for header in headers]

    def _header(self, name: str, raw: bytes | None) -> Header:
        """Returns a header; converts its value only if a step may read it."""
        if self._steps.of_header_values:
            column = self._headers.to_connect([raw]).texts()
            return Header(name, column.schema_of(0), column.values[0], raw)
        if not self._headers.reads_anything:
            self._headers.to_connect([raw])
        return Header(name, None, None, raw)

    def _closed(self, parts: InterleavedBatches, headers_of_batch: Sequence[Headers | None] | None) -> list[Headers]:
        if self._carries:
            return (
                [() for _ in parts.origins]
                if headers_of_batch is None
                else [headers_of_batch[origin] or () for origin in parts.origins]
            )
        if all(batch.headers is None for batch in parts.batches):
            return [() for _ in parts.origins]
        by_identity: dict[int, Headers] = {}  # many records may share one list object

        def closed(headers: list[Header]) -> Headers:
            raw_headers = by_identity.get(id(headers))
            if raw_headers is None:
                raw_headers = by_identity[id(headers)] = tuple(map(self.raw_header, headers))
            return raw_headers

        return [closed(headers) for headers in parts.ordered(lambda batch: batch.headers or [[]] * batch.count)]

    def raw_header(self, header: Header) -> tuple[str, bytes | None]:
        """Returns a header in its Kafka form. Raises the converter's errors."""
        if header.raw is not None:
            return header.name, header.raw
        return header.name, self._headers.from_connect(Column([header.value], header.schema))[0]


class InterleavedBatches:
    """Batches whose records were interleaved, and get their common order back."""

    def __init__(self, batches: list[ColumnBatch]) -> None:
        self.batches = batches
        origins = list(chain.from_iterable(batch.origins for batch in batches))
        self.origins = sorted(origins)
        """The values of all records, in order."""
        order = sorted(range(len(origins)), key=origins.__getitem__) if self.origins != origins else None
        self._order = order

    def ordered(self, of: Any) -> list[Any]:
        """Returns the values that `of` takes from each batch, a value a record, in the records' order."""
        if len(self.batches) == 1:
            values = of(self.batches[0])
            return values if isinstance(values, list) else list(values)
        whole = list(chain.from_iterable(map(of, self.batches)))
        return whole if self._order is None else taken(whole, self._order)

    def some(self, of: Any) -> Sequence[Any] | None:
        """Returns the values of a column that only some records have; None if no record has one."""
        columns = [of(batch) for batch in self.batches]
        if all(column is None for column in columns):
            return None
        if all(isinstance(column, Repeated) and column.value == columns[0].value for column in columns):
            return Repeated(columns[0].value, len(self.origins))
        values = self.ordered(lambda batch: of(batch) or [None] * batch.count)
        return None if values.count(None) == len(values) else values

    def column(self, of: Any) -> Column:
        """Returns the keys or values, each with its schema."""
        if len(self.batches) == 1:
            return column_of(of(self.batches[0]), self.batches[0].count)
        values = self.ordered(lambda batch: data_of(of(batch), batch.count)[1])
        return Column(values, schemas=self.ordered(lambda batch: data_of(of(batch), batch.count)[0]))


def _payloads(converter: Converter, batch: ColumnBatch, data: Data, *, raw: bool = False) -> Payloads:
    """Converts data to payloads. With `raw` bytes stay unchanged."""
    if raw and _is_bytes(data):
        return column_of(data, batch.count).values
    converter = converter.of_topic(batch.topic)
    if isinstance(data, StructColumn):
        payloads = converter.from_structs(data, batch.count)
        if payloads is not None:
            return list(payloads)
    if isinstance(data, Nulls):
        return converter.from_connect(Column([None], data.schema)) * batch.count
    return converter.from_connect(column_of(data, batch.count))


def _is_bytes(data: Data) -> bool:
    if isinstance(data, Column):
        return not data.utf8 and all(value is None or isinstance(value, bytes) for value in data.values)
    return isinstance(data, Nulls)


def _typed(batch: SourceBatch, column: Column) -> Column | StructColumn:
    return Column(column.values, OPTIONAL_BYTES) if batch.raw else _valid(column)


def _valid(column: Column | StructColumn) -> Column | StructColumn:
    """Returns a column whose strings stay in UTF-8 if they are valid."""
    if not isinstance(column, Column) or not column.utf8:
        return column
    whole = b"\n".join(value for value in column.values if value is not None)
    return column if is_utf8(whole) else column.texts()


def moved(batch: SourceBatch, origins: list[int]) -> Mapping[int, Any] | None:
    """Returns the batch's callbacks by the records' new places."""
    if not batch.delivered:
        return None
    return {at: batch.delivered[origin] for at, origin in enumerate(origins) if origin in batch.delivered}

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
        """Yields a batch for each topic, with its values and keys as payloads. Raises what the steps raise."""
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
        for one in self._steps.fused(whole):
            topics.setdefault(one.topic, []).append(one)
        for topic, parts in sorted(topics.items(), key=lambda found: min(part.origins[0] for part in found[1])):
            yield self._sent(batch, topic, Parts(parts))

    def sink(self, values: Payloads, keys: Payloads, origin: Origin, *, raw: bool) -> tuple[SinkBatch, list[int]]:
        """Returns the writer's batch, with `raw` of payloads, and its records' places in the input. Raises what the
        steps raise."""
        topics: dict[str, Sequence[int]] = {}
        if origin.topics and origin.topics.count(origin.topics[0]) == len(values):
            topics[origin.topics[0]] = range(len(values))
        else:
            topics.update(places_of(origin.topics))
        found: list[ColumnBatch] = []
        for topic, places in topics.items():
            given: list[Any] = [values, keys, origin.partitions, origin.timestamps_ms, origin.offsets, origin.headers]
            if len(topics) > 1:
                given = [taken(one, places) for one in given]
            value, key, partitions, times, offsets, headers = given
            valued = _valid(self._values.of_topic(topic).to_columns(value))
            keyed = _valid(self._keys.of_topic(topic).to_columns(key))
            opened = self._opened(headers)
            batch = ColumnBatch(topic, places, valued, keyed, partitions, times, opened, offsets, loose=True)
            found += self._steps.fused(batch)
        parts = Parts(found)
        if raw:
            columns = [
                Column(parts.ordered(lambda one: _payloads(self._values, one, one.value)), OPTIONAL_BYTES),
                Column(parts.ordered(lambda one: _payloads(self._keys, one, one.key)), OPTIONAL_BYTES),
            ]
        else:
            columns = [parts.column(lambda one: one.value), parts.column(lambda one: one.key)]
        made = Origin(
            parts.ordered(lambda one: [one.topic] * one.count),
            parts.ordered(lambda one: one.partitions or [0] * one.count),
            parts.ordered(lambda one: one.offsets or [0] * one.count),
            parts.ordered(lambda one: one.timestamps_ms or [None] * one.count),
            [one or None for one in self._closed(parts, origin.headers)],
        )
        return SinkBatch(columns[0], columns[1], made), parts.origins

    def _sent(self, batch: SourceBatch, topic: str, parts: Parts) -> Sent:
        values = parts.ordered(lambda one: _payloads(self._values, one, one.value, raw=batch.raw))
        keys = parts.ordered(lambda one: _payloads(self._keys, one, one.key, raw=batch.raw))
        headers = self._closed(parts, batch.headers)
        made = replace(
            batch,
            topic=topic,
            values=Column(values),
            keys=Column(keys),
            partitions=parts.some(lambda one: one.partitions),
            timestamps_ms=parts.some(lambda one: one.timestamps_ms),
            headers=headers if any(headers) else None,
            delivered=moved(batch, parts.origins),
        )
        return made, values, None if keys.count(None) == len(keys) else keys

    def _opened(self, headers: Sequence[Headers | None] | None) -> list[list[Header]] | None:
        if headers is None or self._carries or not any(headers):
            return None
        return [[self._header(name, raw) for name, raw in one or ()] for one in headers]

    def _header(self, name: str, raw: bytes | None) -> Header:
        """Returns a header; converts its value only if a step may read it."""
        if self._steps.of_header_values:
            column = self._headers.to_connect([raw]).texts()
            return Header(name, column.schema_of(0), column.values[0], raw)
        if not self._headers.reads_anything:
            self._headers.to_connect([raw])
        return Header(name, None, None, raw)

    def _closed(self, parts: Parts, given: Sequence[Headers | None] | None) -> list[Headers]:
        if self._carries:
            return [() for _ in parts.origins] if given is None else [given[origin] or () for origin in parts.origins]
        if all(one.headers is None for one in parts.batches):
            return [() for _ in parts.origins]
        known: dict[int, Headers] = {}  # many records may share one list object

        def closed(headers: list[Header]) -> Headers:
            found = known.get(id(headers))
            if found is None:
                found = known[id(headers)] = tuple(map(self.raw_header, headers))
            return found

        return [closed(one) for one in parts.ordered(lambda one: one.headers or [[]] * one.count)]

    def raw_header(self, header: Header) -> tuple[str, bytes | None]:
        """Returns a header in its Kafka form. Raises what the converter raises."""
        if header.raw is not None:
            return header.name, header.raw
        return header.name, self._headers.from_connect(Column([header.value], header.schema))[0]


class Parts:
    """Batches whose records were interleaved, and get their common order back."""

    def __init__(self, batches: list[ColumnBatch]) -> None:
        self.batches = batches
        origins = list(chain.from_iterable(one.origins for one in batches))
        self.origins = sorted(origins)
        """The values of all records, in order."""
        order = sorted(range(len(origins)), key=origins.__getitem__) if self.origins != origins else None
        self._order = order

    def ordered(self, of: Any) -> list[Any]:
        """Returns the values that `of` takes from each batch, a value a record, in the records' order."""
        if len(self.batches) == 1:
            found = of(self.batches[0])
            return found if isinstance(found, list) else list(found)
        whole = list(chain.from_iterable(map(of, self.batches)))
        return whole if self._order is None else taken(whole, self._order)

    def some(self, of: Any) -> Sequence[Any] | None:
        """Returns the values of a column that only some records have; None if no record has one."""
        columns = [of(one) for one in self.batches]
        if all(one is None for one in columns):
            return None
        if all(isinstance(one, Repeated) and one.value == columns[0].value for one in columns):
            return Repeated(columns[0].value, len(self.origins))
        found = self.ordered(lambda one: of(one) or [None] * one.count)
        return None if found.count(None) == len(found) else found

    def column(self, of: Any) -> Column:
        """Returns the keys or values, each with its schema."""
        if len(self.batches) == 1:
            return column_of(of(self.batches[0]), self.batches[0].count)
        values = self.ordered(lambda one: data_of(of(one), one.count)[1])
        return Column(values, schemas=self.ordered(lambda one: data_of(of(one), one.count)[0]))


def _payloads(converter: Converter, batch: ColumnBatch, data: Data, *, raw: bool = False) -> Payloads:
    """Converts data to payloads. With `raw` bytes stay unchanged."""
    if raw and _is_bytes(data):
        return column_of(data, batch.count).values
    converter = converter.of_topic(batch.topic)
    if isinstance(data, StructColumn):
        made = converter.from_structs(data, batch.count)
        if made is not None:
            return list(made)
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
    whole = b"\n".join(one for one in column.values if one is not None)
    return column if is_utf8(whole) else column.texts()


def moved(batch: SourceBatch, origins: list[int]) -> Mapping[int, Any] | None:
    """Returns the batch's callbacks by the records' new places."""
    if not batch.delivered:
        return None
    return {at: batch.delivered[origin] for at, origin in enumerate(origins) if origin in batch.delivered}

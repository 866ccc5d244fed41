"""Splits batches of any records into batches of one shape, and converts batches to records and back."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from keelman.connect.columns import ColumnBatch, Data, Nulls, StructColumn
from keelman.connect.record import Record
from keelman.connect.records import Column
from keelman.connect.schema import Schema, Struct


def shaped(batch: ColumnBatch) -> list[ColumnBatch]:
    """Returns the records of each shape, in order."""
    if not batch.loose:
        return [batch]
    batches = []
    for of_value in _split(batch, batch.value):
        value = _tight(of_value.value)
        for part in _split(of_value, of_value.key):
            part.value = value if part.count == of_value.count else _tight(part.value)
            part.key, part.loose = _tight(part.key), False
            batches.append(part)
    return batches


def by_topic(batch: ColumnBatch, topics: Sequence[str]) -> list[ColumnBatch]:
    """Returns the records of each topic."""
    if topics.count(topics[0]) == len(topics):
        return [replace(batch, topic=topics[0])]
    return [replace(batch.take(places), topic=topic) for topic, places in places_of(topics).items()]


def places_of(shapes: Iterable[Any]) -> dict[Any, list[int]]:
    """Returns the places of each shape."""
    places: dict[Any, list[int]] = {}
    for place, shape in enumerate(shapes):
        places.setdefault(shape, []).append(place)
    return places


def records_of(batch: ColumnBatch) -> list[Record]:
    """Returns the single records."""
    count, nothing = batch.count, [None] * batch.count
    key_schemas, keys = data_of(batch.key, count)
    schemas, values = data_of(batch.value, count)
    return [
        Record(batch.topic, *fields)
        for fields in zip(
            batch.partitions or nothing,
            key_schemas,
            keys,
            schemas,
            values,
            batch.timestamps_ms or nothing,
            batch.headers or [[] for _ in nothing],
            batch.offsets or nothing,
            strict=True,
        )
    ]


def batch_of(records: Sequence[Record], origins: Sequence[int]) -> list[ColumnBatch]:
    """Returns the records by topic, loose; `origins` are theirs."""
    if not records:
        return []
    some_offset = records[0].offset is not None
    batch = ColumnBatch(
        records[0].topic,
        origins,
        Column([record.value for record in records], schemas=[record.value_schema for record in records]),
        Column([record.key for record in records], schemas=[record.key_schema for record in records]),
        _unless_null([record.partition for record in records]),
        _unless_null([record.timestamp_ms for record in records]),
        [record.headers for record in records] if any(record.headers for record in records) else None,
        [record.offset or 0 for record in records] if some_offset else None,
        loose=True,
    )
    return by_topic(batch, [record.topic for record in records])


def data_of(data: Data, count: int) -> tuple[Sequence[Schema | None], list[Any]]:
    """Returns the schemas and the values, one by one."""
    if isinstance(data, Column):
        column = data.texts()
        return column.schemas or [column.schema] * count, column.values
    values = [None] * count if isinstance(data, Nulls) else data.rows(count)
    return [data.schema] * count, values


def column_of(data: Data, count: int) -> Column:
    """Returns the data as a column of any values."""
    if isinstance(data, Column):
        return data
    return Column([None] * count if isinstance(data, Nulls) else data.rows(count), data.schema)


def _unless_null(values: list[Any]) -> list[Any] | None:
    return None if values.count(None) == len(values) else values


def _split(batch: ColumnBatch, data: Data) -> list[ColumnBatch]:
    shapes = _shapes(data) if isinstance(data, Column) else None
    if shapes is None:
        return [replace(batch)]
    places = places_of(shapes)
    return [batch.take(rows) for rows in places.values()] if len(places) > 1 else [replace(batch)]


def _shapes(column: Column) -> list[Hashable] | None:
    """Returns a mark for each value, equal for values of one shape; None if all have the same shape."""
    values = column.values
    kinds = set(map(type, values))
    schemas = column.schemas
    if schemas is not None and len({id(schema) for schema in schemas}) == 1:
        schemas = None
    if schemas is None and len(kinds) < 2 and not kinds & {Struct, dict}:
        return None
    plain = schemas is None and not kinds & {Struct, dict}
    if plain and type(None) not in kinds:
        return None
    marks = list(map(_mark, values))
    return marks if schemas is None else list(zip(map(id, schemas), marks, strict=True))


def _mark(value: Any) -> Hashable:
    if type(value) is dict:
        return tuple(value)
    return id(value.schema) if type(value) is Struct else value is None


def _tight(data: Data) -> Data:
    """Returns data of one shape in its tightest form."""
    if not isinstance(data, Column) or not data.values:
        return data
    first, schema = data.values[0], data.schema_of(0)
    if first is None:
        return Nulls(schema)
    if type(first) is Struct and schema is not None and schema.type == "struct":
        if first.schema is schema or first.schema == schema:
            return StructColumn(schema, rows=data.values)
    elif type(first) is dict and schema is None and all(type(key) is str for key in first):
        return StructColumn(None, rows=data.values)
    return replace(data, schema=schema, schemas=None)


def merged(parts: Iterable[tuple[Sequence[int], Sequence[Any]]], count: int) -> list[Any]:
    """Returns all values, placing each part's values at their places."""
    all_values: list[Any] = [None] * count
    for places, values in parts:
        for place, value in zip(places, values, strict=True):
            all_values[place] = value
    return all_values

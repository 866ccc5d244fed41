"""Holds batches of records of one shape as columns, so that chains need not touch each record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from keelman.connect.record import Header
from keelman.connect.records import Column, Repeated
from keelman.connect.schema import Schema, Struct


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value in every record."""

    value: Any


NULL = Constant(None)


@dataclass(frozen=True, slots=True)
class Nulls:
    """Null in every record, under a schema or without one."""

    schema: Schema | None = None


class StructColumn:
    """Structs of one schema, or without one maps with the same keys in the same order, none of them null.

    Made of columns, or of the structs and maps themselves: those are split only when their fields are needed.
    """

    __slots__ = ("_fields", "_rows", "schema")

    def __init__(
        self,
        schema: Schema | None,
        fields: Mapping[str, Column | Constant] | None = None,
        *,
        rows: list[Any] | None = None,
    ) -> None:
        """Creates a column; with a schema, `fields` has the fields of the schema, in its order."""
        self.schema, self._fields, self._rows = schema, fields, rows

    @property
    def names(self) -> Sequence[str]:
        """The names of the fields or keys, in order."""
        if self.schema is not None:
            return [field.name for field in self.schema.fields]
        return list(self._rows[0] if self._fields is None and self._rows else self._fields or ())

    @property
    def fields(self) -> Mapping[str, Column | Constant]:
        """A column for each field."""
        if self._fields is None:
            self._fields = {**apart(self.names, self._maps())}
        return self._fields

    def field(self, name: str, *, defaults: bool = False) -> Column | Constant:
        """Returns one column, perhaps with its schema's default in place of null; all null for a missing field."""
        if self._fields is None:
            column: Column | Constant = Column([row.get(name) for row in self._maps()])
        else:
            column = self._fields.get(name, NULL)
        stands = _defaults(self.schema).get(name) if defaults and self.schema is not None else None
        return column if stands is None else _filled(column, stands)

    def columns(self, *, defaults: bool) -> Mapping[str, Column | Constant]:
        """Returns a column for each field, perhaps with the schemas' defaults in place of null."""
        stands = _defaults(self.schema) if defaults and self.schema is not None else {}
        if not stands:
            return self.fields
        return {n: field if n not in stands else _filled(field, stands[n]) for n, field in self.fields.items()}

    def rows(self, count: int) -> list[Any]:
        """Returns the structs or maps."""
        if self._rows is None:
            fields = self.fields
            columns = [values_of(field, count) for field in fields.values()]
            maps = [dict(zip(fields, row, strict=True)) for row in zip(*columns, strict=True)] if columns else None
            if maps is None:
                maps = [{} for _ in range(count)]
            schema = self.schema
            self._rows = maps if schema is None else [Struct(schema, row) for row in maps]
        return self._rows

    def take(self, places: Sequence[int]) -> StructColumn:
        """Returns the structs at some places alone."""
        if self._rows is not None:
            return StructColumn(self.schema, rows=taken(self._rows, places))
        return StructColumn(self.schema, {name: _part(field, places) for name, field in self.fields.items()})

    def _maps(self) -> list[Mapping[str, Any]]:
        rows = self._rows or []
        return rows if self.schema is None else [row.values for row in rows]


Data = Column | StructColumn | Nulls


@dataclass(slots=True)
class ColumnBatch:
    """Records for one topic, and their places in the batch that they come from. Headers are lists that never
    change.

    A Column, as a key or value, may hold anything while `loose`, else neither nulls nor structs nor maps with texts as
    keys. `offsets` are those of a sink's records.
    """

    topic: str
    origins: Sequence[int]
    value: Data
    key: Data = Nulls()
    partitions: Sequence[int | None] | None = None
    timestamps_ms: Sequence[int | None] | None = None
    headers: Sequence[list[Header]] | None = None
    offsets: Sequence[int] | None = None
    loose: bool = False

    @property
    def count(self) -> int:
        """The number of its records."""
        return len(self.origins)

    def take(self, places: Sequence[int]) -> ColumnBatch:
        """Returns the records at some places alone."""
        if len(places) == self.count:
            return replace(self)

        def of(values: Any) -> Any:
            return None if values is None else taken(values, places)

        return ColumnBatch(
            self.topic,
            taken(self.origins, places),
            _part(self.value, places),
            _part(self.key, places),
            of(self.partitions),
            of(self.timestamps_ms),
            of(self.headers),
            of(self.offsets),
            self.loose,
        )


def taken(values: Sequence[Any], places: Sequence[int]) -> list[Any]:
    """Returns the items at some places."""
    if isinstance(values, Repeated):
        return [values.value] * len(places)
    return list(itemgetter(*places)(values)) if len(places) > 1 else [values[place] for place in places]


def values_of(column: Column | Constant, count: int) -> list[Any]:
    """Returns the values one by one, strings as str."""
    return [column.value] * count if isinstance(column, Constant) else column.texts().values


def mapped(column: Column | Constant, change: Callable[[list[Any]], Iterable[Any]]) -> Column | Constant:
    """Returns a column of the values that `change` makes, called with one value if all are the same."""
    if isinstance(column, Constant):
        (value,) = change([column.value])
        return Constant(value)
    return Column(list(change(column.texts().values)))


def _part(column: Any, places: Sequence[int]) -> Any:
    if isinstance(column, StructColumn):
        return column.take(places)
    if not isinstance(column, Column):
        return column
    schemas = None if column.schemas is None else taken(column.schemas, places)
    return Column(taken(column.values, places), column.schema, schemas, column.utf8)


def apart(names: Sequence[str], maps: list[Any]) -> dict[str, Column]:
    """Returns a column for each name, with the values of the maps' keys."""
    try:
        return {name: Column(list(map(itemgetter(name), maps))) for name in names}
    except KeyError:
        return {name: Column([row.get(name) for row in maps]) for name in names}


def _defaults(schema: Schema) -> dict[str, Any]:
    return {field.name: field.schema.default for field in schema.fields if field.schema.default is not None}


def _filled(column: Column | Constant, default: Any) -> Column | Constant:
    return mapped(column, lambda values: [default if value is None else value for value in values])

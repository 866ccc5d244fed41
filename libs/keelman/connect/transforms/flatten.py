"""Flatten: brings the fields of nested structs and maps to the top level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import NoneType
from typing import Any

from keelman.connect.columns import ColumnBatch, Constant, Nulls, StructColumn
from keelman.connect.config.definition import ConfigKey, Importance, Type
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import INTEGERS, Float32, java_class, type_of
from keelman.connect.record import Record
from keelman.connect.records import Column
from keelman.connect.schema import Field, Schema, Struct
from keelman.connect.transforms.base import OfSchemas, Transform, a_map, a_struct, got, with_fields


class Flatten(Transform):
    """Moves the fields of nested structs or maps to the top level, under names that show their path."""

    name = "Flatten"

    keys = (ConfigKey("delimiter", Type.STRING, ".", Importance.MEDIUM, "Separates the names of the path."),)

    def _set_up(self) -> None:
        self._delimiter: str = self.config["delimiter"]
        self._flat = OfSchemas(self._flattened)

    def apply(self, record: Record) -> Record:
        """Flattens a record. Raises DataError for a map within a struct."""
        schema, value = self.data(record)
        if value is None:
            return record
        if schema is None:
            flat: dict[str, Any] = {}
            self._maps(a_map(value, "flattening"), "", flat)
            return self.changed(record, None, flat)
        struct = a_struct(value, "flattening")
        flat_schema = self._flat(schema)
        values: dict[str, Any] = {}
        self._structs(struct, "", values)
        return self.changed(record, flat_schema, Struct(flat_schema, values))

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Flattens structs without nested nulls, and maps whose nested maps have the same keys."""
        column = self.column(batch)
        if not isinstance(column, StructColumn):
            return [batch] if isinstance(column, Nulls) else None
        flat_schema = None if column.schema is None else self._flat(column.schema)
        flat: dict[str, Column | Constant] = {}
        return self.columns_changed(batch, StructColumn(flat_schema, flat)) if self._columns(column, "", flat) else None

    def _columns(self, structs: StructColumn, way: str, flat: dict[str, Column | Constant]) -> bool:
        """Adds the columns under their new names; False if records must be flattened one by one."""
        schemas = {} if structs.schema is None else {field.name: field.schema for field in structs.schema.fields}
        for name, column in structs.columns(defaults=True).items():
            schema = schemas.get(name)
            if schema is not None and schema.type != "struct":
                flat[self._name(way, name)] = column
                continue
            values = [column.value] if isinstance(column, Constant) else column.values
            kinds: set[type] = {str} if isinstance(column, Column) and column.utf8 else set(map(type, values))
            if schema is None and kinds <= _LEAVES:
                flat[self._name(way, name)] = column
                continue
            inner = None if isinstance(column, Constant) else _inner(schema, values, kinds)
            if inner is None or not self._columns(inner, self._name(way, name), flat):
                return False
        return True

    def _flattened(self, schema: Schema) -> Schema:
        return with_fields(schema, tuple(self._fields(schema, "", optional=schema.optional, default=schema.default)))

    def _name(self, way: str, name: str) -> str:
        return f"{way}{self._delimiter}{name}" if way else name

    def _maps(self, mapping: Mapping[Any, Any], way: str, flat: dict[str, Any]) -> None:
        for key, value in mapping.items():
            if not isinstance(key, str):
                raise ClassCastError(java_class(key), "java.lang.String")
            name = self._name(way, key)
            kind = "string" if value is None else type_of(value)
            if kind is None:
                raise DataError(
                    f"Flatten transformation was passed a value of type class {java_class(value)} which is not "
                    "supported by Connect's data API"
                )
            if kind == "map":
                self._maps(value, name, flat)
            elif kind == "struct":
                text = f"Flatten transformation does not support {kind.upper()} for record without schemas"
                raise DataError(f"{text} (for field {name}).")
            else:
                flat[name] = value

    def _fields(self, schema: Schema, way: str, *, optional: bool, default: Any) -> list[Field]:
        fields: list[Field] = []
        for field in schema.fields:
            name = self._name(way, field.name)
            inner = field.schema
            may = optional or inner.optional
            stands = inner.default
            if stands is None and default is not None:
                stands = got(default, field, defaults=True)
            if inner.type == "struct":
                fields += self._fields(inner, name, optional=may, default=stands)
            elif inner.type == "map":
                raise DataError(
                    f"Flatten transformation does not support MAP for record with schemas (for field {name})."
                )
            else:
                same = inner.optional == may and inner.default == stands
                fields.append(Field(name, inner if same else replace(inner, optional=may, default=stands)))
        return fields

    def _structs(self, struct: Struct, way: str, values: dict[str, Any]) -> None:
        for field in struct.schema.fields:
            name, value = self._name(way, field.name), got(struct, field, defaults=True)
            if field.schema.type == "struct":
                if value is not None:
                    self._structs(value, name, values)
            else:
                values[name] = value


def _inner(schema: Schema | None, values: list[Any], kinds: set[type]) -> StructColumn | None:
    """Returns structs or maps of one shape as columns."""
    if schema is not None:
        alike = kinds == {Struct} and all(value.schema is schema for value in values)
    else:
        alike = kinds == {dict} and len(set(map(tuple, values))) == 1 and all(type(key) is str for key in values[0])
    return StructColumn(schema, rows=values) if alike else None


_LEAVES = {NoneType, str, bool, float, Float32, bytes, list, *(integer for integer, _ in INTEGERS.values())}


class ClassCastError(DataError):
    """Java's ClassCastException."""

    java_name = "java.lang.ClassCastException"

    def __init__(self, actual: str, expected: str) -> None:
        where = f"({actual} and {expected} are in module java.base of loader 'bootstrap')"
        super().__init__(f"class {actual} cannot be cast to class {expected} {where}")

"""MaskField: replaces values of fields by neutral values of the same type."""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from typing import Any

from keelman.connect.columns import NULL, ColumnBatch, Constant, StructColumn, mapped
from keelman.connect.config.definition import REQUIRED, ConfigKey, Importance, Type, non_empty
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import INTEGERS, Float32, Int32, cut, java_class, type_of
from keelman.connect.record import Record
from keelman.connect.records import Column
from keelman.connect.schema import Schema, Struct
from keelman.connect.times import EPOCH, TIMES
from keelman.connect.transforms.base import Transform, a_map, a_struct, got, null_default, some_names


class MaskField(Transform):
    """Replaces a field's value by a neutral value of the same type."""

    name = "MaskField"

    keys = (
        ConfigKey("fields", Type.LIST, REQUIRED, Importance.HIGH, "Fields to hide.", some_names),
        ConfigKey("replacement", Type.STRING, None, Importance.LOW, "Text or number to put there.", non_empty),
        null_default(),
    )

    def _set_up(self) -> None:
        self._fields = frozenset(self.config["fields"])
        self._replacement: str | None = self.config["replacement"]

    def apply(self, record: Record) -> Record:
        """Masks the fields. Raises DataError for a value of a type that cannot be hidden."""
        schema, value = self.data(record)
        if schema is None:
            mapping = dict(a_map(value, "mask fields"))
            for name in self._fields:
                mapping[name] = self._masked(None, mapping.get(name))
            return self.changed(record, None, mapping)
        struct = a_struct(value, "mask fields")
        values = {}
        for field in struct.schema.fields:
            inner = got(struct, field, defaults=self.defaults)
            values[field.name] = self._masked(field.schema, inner) if field.name in self._fields else inner
        return self.changed(record, struct.schema, Struct(struct.schema, values))

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Masks the columns: a column without nulls becomes a constant."""
        column = self.column(batch)
        if not isinstance(column, StructColumn):
            return None
        schema = column.schema
        fields = dict(column.columns(defaults=self.defaults))
        schemas = {} if schema is None else {field.name: field.schema for field in schema.fields}
        for name in self._fields if schema is None else [name for name in fields if name in self._fields]:
            fields[name] = self._hidden(schemas.get(name), fields.get(name, NULL))
        return self.columns_changed(batch, StructColumn(schema, fields))

    def _hidden(self, schema: Schema | None, column: Column | Constant) -> Column | Constant:
        if isinstance(column, Column):
            values = [""] if column.utf8 and None not in column.values else column.texts().values
            if len(set(map(type, values))) == 1:
                return Constant(self._masked(schema, values[0]))
        return mapped(column, lambda values: [self._masked(schema, value) for value in values])

    def _masked(self, schema: Schema | None, value: Any) -> Any:
        if value is None:
            return None
        kind = _kind(schema, value)
        if self._replacement is None:
            if kind in _NOTHING:
                return _NOTHING[kind]
            raise DataError(f"Cannot mask value of type: class {java_class(value)}")
        if kind == "string":
            return self._replacement
        if kind not in _NUMBERS:
            raise DataError(f"Cannot mask value of type class {_class_of(kind, value)} with custom replacement.")
        try:
            number = decimal.Decimal(self._replacement)
        except decimal.InvalidOperation:
            text = f"Unable to convert {self._replacement} (class java.lang.String) to a number"
            raise DataError(text) from None
        return _number(kind, number)


_NUMBERS = frozenset({*INTEGERS, "float", "double", "decimal"})
_NOTHING: Mapping[str, Any] = {
    "boolean": False,
    "int8": INTEGERS["int8"][0](0),
    "int16": INTEGERS["int16"][0](0),
    "int32": Int32(0),
    "int64": 0,
    "float": Float32(0),
    "double": 0.0,
    "decimal": decimal.Decimal(0),
    "date": EPOCH,
    "string": "",
    "array": [],
    "map": {},
}


def _kind(schema: Schema | None, value: Any) -> str:
    if isinstance(value, decimal.Decimal):
        return "decimal"
    if isinstance(value, TIMES):
        return "date"
    return schema.type if schema is not None else type_of(value) or ""


def _class_of(kind: str, value: Any) -> str:
    return java_class(INTEGERS[kind][0](value)) if kind in INTEGERS else java_class(value)


def _number(kind: str, number: decimal.Decimal) -> Any:
    if kind == "decimal":
        return number
    if kind in INTEGERS:
        integer, bits = INTEGERS[kind]
        return integer(cut(int(number), bits))
    return Float32(float(number)) if kind == "float" else float(number)

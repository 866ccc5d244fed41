"""Cast: converts values to other types, by Java's conversions."""

from __future__ import annotations

import base64
import decimal
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from keelman.connect.columns import NULL, ColumnBatch, Nulls, StructColumn, mapped
from keelman.connect.config.definition import REQUIRED, ConfigKey, Importance, Type
from keelman.connect.converters.logical import iso_text, number_of
from keelman.connect.errors import ConfigValueError, DataError
from keelman.connect.java.numbers import (
    INTEGERS,
    Float32,
    NumberFormatError,
    cut,
    java_class,
    parse_real,
    parse_whole,
    type_of,
)
from keelman.connect.java.text import java_text
from keelman.connect.record import Record
from keelman.connect.records import Column
from keelman.connect.schema import INTEGER_RANGES, Field, Schema, Struct, type_name
from keelman.connect.times import TIMES
from keelman.connect.transforms.base import OfSchemas, Transform, a_map, a_struct, got, null_default, with_fields
from keelman.connect.transforms.fields import renamings

_TYPES = {
    **{name: name for name in (*INTEGERS, "boolean", "string", "bytes", "array", "map", "struct")},
    "float32": "float",
    "float64": "double",
}
_OUTPUT = (*INTEGERS, "float", "double", "boolean", "string")
_INPUT = (*_OUTPUT, "bytes")
_TYPE = "org.apache.kafka.connect.data.Schema.Type"


def _spec(name: str, value: Any) -> None:
    _parsed(value)


class Cast(Transform):
    """Casts fields, or the whole key or value."""

    name = "Cast"

    keys = (
        ConfigKey(
            "spec", Type.LIST, REQUIRED, Importance.HIGH,
            "field:type, comma-separated, or one type for the whole value.", _spec,
        ),
        null_default(),
    )  # fmt: skip

    def _set_up(self) -> None:
        self._whole, self._casts = _parsed(self.config["spec"])
        self._schema = OfSchemas(self._cast_schema)

    def apply(self, record: Record) -> Record:
        """Casts a record; leaves null unchanged. Raises DataError for a value that cannot be cast."""
        schema, value = self.data(record)
        if value is None:
            return record
        if self._whole is not None:
            target_schema = None if schema is None else self._schema(schema)
            return self.changed(record, target_schema, cast(schema, value, self._whole))
        if schema is None:
            mapping = a_map(value, "type casting")
            casts = {name: cast(None, mapping.get(name), target) for name, target in self._casts.items()}
            return self.changed(record, None, {**mapping, **casts})
        struct = a_struct(value, "type casting")
        target_schema = self._schema(schema)
        values = {}
        for field in struct.schema.fields:
            inner, target = got(struct, field, defaults=self.defaults), self._casts.get(field.name)
            values[field.name] = inner if target is None else cast(field.schema, inner, target)
        return self.changed(record, target_schema, Struct(target_schema, values))

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Casts the columns of fields, or the whole column."""
        column = self.column(batch)
        if isinstance(column, Nulls):
            return [batch]
        schema = column.schema
        if isinstance(column, Column):
            if self._whole is None:
                return None
            values = cast_all(schema, self._whole, column.texts().values)
            return self.columns_changed(batch, Column(values, None if schema is None else self._schema(schema)))
        if self._whole is not None:
            return None
        fields = dict(column.columns(defaults=self.defaults))
        schemas = {} if schema is None else {field.name: field.schema for field in schema.fields}
        for name, target in self._casts.items():
            if schema is None or name in schemas:
                field_schema = schemas.get(name)
                fields[name] = mapped(fields.get(name, NULL), partial(cast_all, field_schema, target))
        return self.columns_changed(batch, StructColumn(None if schema is None else self._schema(schema), fields))

    def _cast_schema(self, schema: Schema) -> Schema:
        if self._whole is not None:
            default = None if schema.default is None else cast(schema, schema.default, self._whole)
            return replace(schema, type=self._whole, fields=(), key=None, value=None, default=default)
        new_schema = with_fields(schema, tuple(self._field(field) for field in schema.fields))
        return replace(new_schema, optional=schema.optional)

    def _field(self, field: Field) -> Field:
        target, inner = self._casts.get(field.name), field.schema
        if target is None:
            return field
        default = None if inner.default is None else cast(inner, inner.default, target)
        return Field(field.name, Schema(target, optional=inner.optional, default=default))


def _parsed(pairs: list[str]) -> tuple[str | None, dict[str, str]]:
    """Returns the type for the whole value, if given, and the types of fields. Raises ConfigValueError."""
    if not pairs:
        raise ConfigValueError("spec", pairs, whole="Must specify at least one field to cast.")
    whole, casts = None, {}
    for pair in pairs:
        words = pair.rstrip(":").split(":")
        if len(words) > 2:
            renamings([pair])
        target = _type(words[-1].strip())
        if len(words) == 1:
            whole = target
        else:
            casts[words[0]] = target
    if whole is not None and (casts or len(pairs) > 1):
        text = "Cast transformations that specify a type to cast the entire value to may only specify a single cast"
        raise ConfigValueError("spec", pairs, whole=f"{text} in their spec")
    return whole, casts


def _type(text: str) -> str:
    kind = _TYPES.get(text.lower())
    if kind is None:
        shown = f"java.lang.IllegalArgumentException: No enum constant {_TYPE}.{text.upper()}"
        raise ConfigValueError(f"Invalid type found in casting spec: {text}", shown)
    if kind not in _OUTPUT:
        raise ConfigValueError("spec", text, whole=_unsupported("to", kind, _OUTPUT))
    return kind


def _unsupported(direction: str, kind: str, legal: tuple[str, ...]) -> str:
    listed = ", ".join(type_name(kind) for kind in legal)
    return f"Cast transformation does not support casting {direction} {type_name(kind)}; supported types are [{listed}]"


def cast(schema: Schema | None, value: Any, target: str) -> Any:
    """Returns the value as another type. Raises DataError."""
    if value is None:
        return None
    kind = schema.type if schema is not None else type_of(value)
    if kind is None:
        raise DataError(
            f"Cast transformation was passed a value of type class {java_class(value)} which is not supported by "
            "Connect's data API"
        )
    if kind not in _INPUT:
        raise DataError(_unsupported("from", kind, _INPUT))
    if schema is not None and target != "string" and isinstance(value, TIMES):
        value = number_of(value, schema.name)
    try:
        return _MAKERS[target](value)
    except NumberFormatError:
        raise DataError(f"Value ({java_text(value)}) was out of range for requested data type") from None


def cast_all(schema: Schema | None, target: str, values: list[Any]) -> list[Any]:
    """Returns many values as another type. Raises DataError."""
    kinds = set(map(type, values))
    if schema is None or schema.name is None:
        if target == "string" and kinds in ({str}, {int}):
            return list(map(str, values))
        if target == "int64" and kinds == {int} and -_LONG <= min(values) <= max(values) < _LONG:
            return values
        if target == "double" and kinds <= {int, float}:
            return list(map(float, values))
    return [cast(schema, value, target) for value in values]


_LONG = INTEGER_RANGES["int64"]


def _whole(target: str) -> Callable[[Any], Any]:
    integer, bits = INTEGERS[target]

    def to(value: Any) -> Any:
        if isinstance(value, int | float):
            return integer(cut(value, bits))
        if isinstance(value, decimal.Decimal):
            return integer(_cut(value, bits))
        if isinstance(value, str):
            return integer(parse_whole(value, bits))
        raise _unexpected(value)

    return to


def _cut(value: decimal.Decimal, bits: int) -> int:
    """Returns its lowest bits: for a multiple of ten to the 64th they are zeros, without computing the number."""
    return 0 if int(value.as_tuple().exponent) >= 64 else cut(int(value), bits)


def _real(real: type[float]) -> Callable[[Any], Any]:
    def to(value: Any) -> Any:
        if isinstance(value, int | float | decimal.Decimal):
            return real(value)
        if isinstance(value, str):
            return real(parse_real(value))
        raise _unexpected(value)

    return to


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return cut(value, 64) != 0
    if isinstance(value, decimal.Decimal):
        return _cut(value, 64) != 0
    if isinstance(value, str):
        return value.lower() == "true"
    raise _unexpected(value)


def _string(value: Any) -> str:
    if isinstance(value, TIMES):
        return iso_text(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return java_text(value)


def _unexpected(value: Any) -> DataError:
    return DataError(f"Unexpected type in Cast transformation: class {java_class(value)}")


_MAKERS: Mapping[str, Callable[[Any], Any]] = {
    **{name: _whole(name) for name in INTEGERS},
    "float": _real(Float32),
    "double": _real(float),
    "boolean": _boolean,
    "string": _string,
}

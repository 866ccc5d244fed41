"""ExtractField and ValueToKey: replace the value by a field, and the key by fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.connect.columns import ColumnBatch, Constant, Nulls, StructColumn
from keelman.connect.config.definition import REQUIRED, ConfigKey, Importance, Type, one_of_any_case
from keelman.connect.errors import ConfigValueError, DataError
from keelman.connect.record import Record
from keelman.connect.records import Column
from keelman.connect.schema import Field, Schema, Struct
from keelman.connect.transforms import base


class FieldPath:
    """The path of a field: with version 2 a dot separates steps, and back-ticks quote a name that has dots."""

    def __init__(self, text: str, version: str) -> None:
        """Raises ConfigValueError."""
        self.text = text
        self.steps = _steps(text) if version.upper() == "V2" else [text]

    def field(self, schema: Schema) -> Field | None:
        """Returns the field in a schema; None if it is missing. Raises DataError if the path crosses a non-struct."""
        field: Field | None = None
        for step in self.steps:
            if field is not None:
                schema = field.schema
            if schema.type != "struct":
                raise DataError("Cannot look up fields on non-struct type")
            field = next((field for field in schema.fields if field.name == step), None)
            if field is None:
                return None
        return field

    def of_struct(self, struct: Struct, *, defaults: bool) -> Any:
        """Returns the field's value, None if its path ends before."""
        value: Any = struct
        for step in self.steps:
            if value is None:
                return None
            inner = base.a_struct(value, "nested field access")
            field = next(field for field in inner.schema.fields if field.name == step)
            value = base.got(inner, field, defaults=defaults)
        return value

    def of_map(self, mapping: Mapping[Any, Any]) -> Any:
        """Returns the field's value in nested maps."""
        for step in self.steps[:-1]:
            inner = mapping.get(step)
            if inner is None:
                return None
            mapping = base.a_map(inner, "nested field access")
        return mapping.get(self.steps[-1])


def _steps(text: str) -> list[str]:
    steps, at = [], 0
    while at < len(text):
        if text[at] == "`":
            end = at + 1
            while end < len(text) and not (
                text[end] == "`" and text[end - 1] != "\\" and text[end + 1 : end + 2] in ("", ".")
            ):
                end += 1
            if end >= len(text):
                raise ConfigValueError(
                    "field",
                    text,
                    whole=f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick at "
                    f"position {at} to escape it",
                )
            steps.append(text[at + 1 : end].replace("\\`", "`"))
            at = end + 2
        else:
            end = text.find(".", at)
            end = len(text) if end < 0 else end
            steps.append(text[at:end].replace("\\`", "`"))
            at = end + 1
    if text.endswith("."):
        steps.append("")
    return steps or [""]


class ExtractField(base.Transform):
    """Replaces the key or the value by one of its fields."""

    name = "ExtractField"

    keys = (
        ConfigKey("field", Type.STRING, REQUIRED, Importance.MEDIUM, "The field."),
        ConfigKey(
            "field.syntax.version", Type.STRING, "V1", Importance.HIGH,
            "V1: `field` is a name. V2: a path with dots; back-ticks hold a name together that has dots.",
            one_of_any_case("V1", "V2"),
        ),
        base.null_default(),
    )  # fmt: skip

    def _set_up(self) -> None:
        self._path = FieldPath(self.config["field"], self.config["field.syntax.version"])

    def apply(self, record: Record) -> Record:
        """Extracts the field; null stays null. Raises IllegalArgumentError for a field that a schema does not have."""
        schema, value = self.data(record)
        if schema is None:
            mapping = None if value is None else base.a_map(value, "field extraction")
            return self.changed(record, None, None if mapping is None else self._path.of_map(mapping))
        struct = None if value is None else base.a_struct(value, "field extraction")
        field = self._path.field(schema)
        if field is None:
            raise base.IllegalArgumentError(f"Unknown field: {self._path.text}")
        inner = None if struct is None else self._path.of_struct(struct, defaults=self.defaults)
        return self.changed(record, field.schema, inner)

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Keeps only the field's column."""
        column = self.column(batch)
        if isinstance(column, Nulls) and column.schema is None:
            return [batch]
        if not isinstance(column, StructColumn) or len(self._path.steps) != 1:
            return None
        (name,) = self._path.steps
        schema = column.schema
        field = None if schema is None else self._path.field(schema)
        if schema is not None and field is None:
            return None
        inner = column.field(name, defaults=self.defaults)
        field_schema = None if field is None else field.schema
        if not isinstance(inner, Constant):
            return self.columns_changed(batch, Column(inner.values, field_schema, utf8=inner.utf8))
        return self.columns_changed(batch, Column([inner.value] * batch.count, field_schema))


class ValueToKey(base.Transform):
    """Makes a key from fields of the value."""

    name = "ValueToKey"
    parts = ("",)

    keys = (
        ConfigKey("fields", Type.LIST, REQUIRED, Importance.HIGH, "The fields.", base.some_names),
        base.null_default(),
    )

    def _set_up(self) -> None:
        self._fields: list[str] = self.config["fields"]
        self._key_schema = base.OfSchemas(self._key_of)

    def apply(self, record: Record) -> Record:
        """Sets the key. Raises DataError for a field that the value's schema does not have."""
        purpose = "copying fields from value to key"
        if record.value_schema is None:
            mapping = base.a_map(record.value, purpose)
            record.key_schema, record.key = None, {name: mapping.get(name) for name in self._fields}
            return record
        struct = base.a_struct(record.value, purpose)
        key_schema = self._key_schema(struct.schema)
        values = {field.name: base.got(struct, field, defaults=self.defaults) for field in key_schema.fields}
        record.key_schema, record.key = key_schema, Struct(key_schema, values)
        return record

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Uses the same columns for the key."""
        column = batch.value
        if not isinstance(column, StructColumn):
            return None
        if column.schema is None:
            batch.key = StructColumn(None, {name: column.field(name) for name in self._fields})
        else:
            key_schema = self._key_schema(column.schema)
            fields = {field.name: column.field(field.name, defaults=self.defaults) for field in key_schema.fields}
            batch.key = StructColumn(key_schema, fields)
        return [batch]

    def _key_of(self, schema: Schema) -> Schema:
        by_name = {field.name: field for field in schema.fields}
        for name in self._fields:
            if name not in by_name:
                raise DataError(f"Field does not exist: {name}")
        return base.with_fields(Schema("struct"), tuple(by_name[name] for name in self._fields))

"""InsertField: adds a record's topic, partition, offset or time, or a fixed text, as fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from keelman.connect.columns import NULL, ColumnBatch, Constant, Nulls, StructColumn
from keelman.connect.config.definition import ConfigKey, Importance, Type
from keelman.connect.converters.logical import TIMESTAMP_SCHEMA
from keelman.connect.errors import ConfigValueError, DataError
from keelman.connect.java.numbers import Int32
from keelman.connect.record import Record
from keelman.connect.records import Column, Repeated
from keelman.connect.schema import Field, Schema, Struct
from keelman.connect.times import moment
from keelman.connect.transforms.base import OfSchemas, Transform, a_map, a_struct, got, null_default, with_fields


@dataclass(frozen=True, slots=True)
class _Spec:
    """A field to be inserted."""

    name: str
    optional: bool

    @classmethod
    def of(cls, text: str | None) -> _Spec | None:
        if text is None:
            return None
        if text.endswith(("?", "!")):
            return cls(text[:-1], text.endswith("?"))
        return cls(text, True)

    def field(self, schema: Schema) -> Field:
        return Field(self.name, replace(schema, optional=self.optional))


class InsertField(Transform):
    """Adds the topic, partition, offset or timestamp of the record, or a fixed text."""

    name = "InsertField"

    keys = (
        *(
            ConfigKey(
                f"{part}.field", Type.STRING, None, Importance.MEDIUM, f"Field for the record's {part}; `!` required."
            )
            for part in ("topic", "partition", "offset", "timestamp")
        ),
        ConfigKey("static.field", Type.STRING, None, Importance.MEDIUM, "Field for a fixed text."),
        ConfigKey("static.value", Type.STRING, None, Importance.MEDIUM, "That text."),
        null_default(),
    )

    def _set_up(self) -> None:
        spec = {name: _Spec.of(self.config[f"{name}.field"]) for name in _INSERTED}
        self._specs = {name: value for name, value in spec.items() if value is not None}
        self._static: str | None = self.config["static.value"]
        self._extended = OfSchemas(self._extend)
        if not self._specs:
            raise ConfigValueError("", None, whole="No field insertion configured")
        if "static" in self._specs and self._static is None:
            shown = f"No value specified for static field: {self._specs['static'].name}"
            raise ConfigValueError("static.value", None, shown)

    def _extend(self, schema: Schema) -> Schema:
        more = (spec.field(_INSERTED[name]) for name, spec in self._specs.items())
        return with_fields(schema, (*schema.fields, *more))

    def inserted(self, record: Record, *, typed: bool) -> dict[str, Any]:
        """Returns the values of the added fields, without those that the record does not have."""
        values: dict[str, Any] = {}
        for what, spec in self._specs.items():
            value: Any
            if what == "topic":
                value = record.topic
            elif what == "partition":
                value = None if record.partition is None else Int32(record.partition)
            elif what == "offset":
                if record.offset is None:
                    actual = "org.apache.kafka.connect.source.SourceRecord"
                    raise DataError(f"Only SinkRecord supported for [field insertion], found: {actual}")
                value = record.offset
            elif what == "timestamp":
                value = record.timestamp_ms
                if typed and value is not None:
                    value = moment(value)
            else:
                value = self._static
            if value is not None:
                values[spec.name] = value
        return values

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Adds values that all records share as constants."""
        column = self.column(batch)
        if not isinstance(column, StructColumn):
            return [batch] if isinstance(column, Nulls) else None
        typed = column.schema is not None
        more: dict[str, Column | Constant] = {}
        for what, spec in self._specs.items():
            inserted = self._column(what, batch, typed=typed)
            if inserted is None:
                return None
            if inserted != NULL:  # a missing attribute of a record adds no field
                more[spec.name] = inserted
        if column.schema is None:
            return self.columns_changed(batch, StructColumn(None, {**column.fields, **more}))
        new_schema = self._extended(column.schema)
        fields = {**(column.columns(defaults=self.defaults)), **more}
        return self.columns_changed(
            batch, StructColumn(new_schema, {f.name: fields.get(f.name, NULL) for f in new_schema.fields})
        )

    def _column(self, what: str, batch: ColumnBatch, *, typed: bool) -> Column | Constant | None:
        """Returns the values of an added field; None if they have to be examined one by one."""
        if what in ("topic", "static"):
            return Constant(batch.topic if what == "topic" else self._static)
        columns = {"partition": batch.partitions, "offset": batch.offsets, "timestamp": batch.timestamps_ms}
        values: Sequence[Any] | None = columns[what]
        if values is None:
            return None if what == "offset" else NULL
        convert = Int32 if what == "partition" else moment if what == "timestamp" and typed else None
        if isinstance(values, Repeated):
            return Constant(values.value if values.value is None or convert is None else convert(values.value))
        if None in values:
            return None
        return Column(list(values) if convert is None else list(map(convert, values)))

    def apply(self, record: Record) -> Record:
        """Adds the fields; leaves null unchanged."""
        schema, value = self.data(record)
        if value is None:
            return record
        if schema is None:
            mapping = a_map(value, "field insertion")
            return self.changed(record, None, {**mapping, **self.inserted(record, typed=False)})
        struct = a_struct(value, "field insertion")
        new_schema = self._extended(struct.schema)
        values = {f.name: got(struct, f, defaults=self.defaults) for f in struct.schema.fields}
        return self.changed(record, new_schema, Struct(new_schema, {**values, **self.inserted(record, typed=True)}))


_INSERTED: Mapping[str, Schema] = {
    "topic": Schema("string"),
    "partition": Schema("int32"),
    "offset": Schema("int64"),
    "timestamp": TIMESTAMP_SCHEMA,
    "static": Schema("string"),
}

"""TimestampRouter and TimestampConverter: name topics after times, and convert times to other forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from keelman.connect.batch_splitting import by_topic
from keelman.connect.columns import NULL, ColumnBatch, Nulls, StructColumn, mapped
from keelman.connect.config.definition import REQUIRED, ConfigKey, Importance, Type, one_of
from keelman.connect.converters.logical import DATE_SCHEMA, TIME_SCHEMA, TIMESTAMP_SCHEMA
from keelman.connect.errors import ConfigValueError, ConnectError, DataError
from keelman.connect.java.calendars import DAY_MS
from keelman.connect.java.dates import DatePatternError, JavaDateFormat, ParseError
from keelman.connect.java.numbers import clipped, cut, java_class
from keelman.connect.record import Record
from keelman.connect.records import Column, Repeated
from keelman.connect.schema import Field, Schema, Struct, java_type
from keelman.connect.times import TIMES, Time, moment, ms_of
from keelman.connect.transforms import base

_TARGETS: Mapping[str, Schema] = {
    "string": Schema("string"),
    "unix": Schema("int64"),
    "Date": DATE_SCHEMA,
    "Time": TIME_SCHEMA,
    "Timestamp": TIMESTAMP_SCHEMA,
}
_NO_FORMAT = "TimestampConverter requires format option to be specified when using string timestamps"
_PER_SECOND = {"nanoseconds": 1_000_000_000, "microseconds": 1_000_000, "milliseconds": 1000, "seconds": 1}


class TimestampRouter(base.Transform):
    """Renames topics after their records' times."""

    name = "TimestampRouter"
    parts = ("",)

    keys = (
        ConfigKey("topic.format", Type.STRING, "${topic}-${timestamp}", Importance.HIGH, "The new name."),
        ConfigKey("timestamp.format", Type.STRING, "yyyyMMdd", Importance.HIGH, "A pattern of SimpleDateFormat, UTC."),
    )

    def _set_up(self) -> None:
        self._topic: str = self.config["topic.format"]
        self._problem = ""
        try:
            self._format = JavaDateFormat(self.config["timestamp.format"])
        except DatePatternError as error:
            self._problem = str(error)

    def apply(self, record: Record) -> Record:
        """Renames the topic. Raises DataError for a record without a time, and for an illegal pattern, like Connect."""
        if record.timestamp_ms is None:
            raise DataError(f"Timestamp missing on record: of topic {record.topic}")
        if self._problem:
            raise base.IllegalArgumentError(self._problem)
        record.topic = self._routed(record.topic, record.timestamp_ms)
        return record

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Computes one topic for all times that the pattern does not tell apart."""
        times = batch.timestamps_ms
        if isinstance(times, Repeated) and times.value is not None and not self._problem:
            batch.topic = self._routed(batch.topic, times.value)
            return [batch]
        if times is None or None in times or self._problem:
            return None
        unit = self._format.unit_ms
        units = [ms // unit for ms in times if ms is not None]
        topics = {factor: self._routed(batch.topic, factor * unit) for factor in set(units)}
        return by_topic(batch, [topics[factor] for factor in units])

    def _routed(self, topic: str, ms: int) -> str:
        text = self._format.format(moment(ms))
        return self._topic.replace("${topic}", topic).replace("${timestamp}", text)


class TimestampConverter(base.Transform):
    """Converts a time to another form: a text, a number, or one of Connect's logical types."""

    name = "TimestampConverter"

    keys = (
        ConfigKey("field", Type.STRING, "", Importance.HIGH, "The field; empty means the whole key or value."),
        ConfigKey("target.type", Type.STRING, REQUIRED, Importance.HIGH, "The form.", one_of(*_TARGETS)),
        ConfigKey("format", Type.STRING, "", Importance.MEDIUM, "A pattern of SimpleDateFormat, UTC, of texts."),
        ConfigKey("unix.precision", Type.STRING, "milliseconds", Importance.LOW, "Of numbers.", one_of(*_PER_SECOND)),
        base.null_default(),
    )

    def _set_up(self) -> None:
        self._target: str = self.config["target.type"]
        self._field: str = self.config["field"]
        self._per_second = _PER_SECOND[self.config["unix.precision"]]
        self._schema = base.OfSchemas(self._converted_schema)
        pattern: str = self.config["format"]
        if self._target == "string" and not pattern.strip():
            raise ConfigValueError("format", pattern, whole=_NO_FORMAT)
        try:
            self._format = JavaDateFormat(pattern) if pattern.strip() else None
        except DatePatternError as error:
            name = "TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps: "
            raise ConfigValueError(name + pattern, f"java.lang.IllegalArgumentException: {error}") from None
        self._write = {"string": self._text, "unix": self._number, "Date": _day, "Time": _time_of_day}.get(
            self._target, _same
        )

    def apply(self, record: Record) -> Record:
        """Converts the time; null stays null. Raises DataError for a value that is no time."""
        schema, value = self.data(record)
        if schema is None:
            if not self._field or value is None:
                return self.changed(record, None, self._converted(None, value))
            mapping = base.a_map(value, "converting timestamp formats")
            return self.changed(record, None, {**mapping, self._field: self._converted(None, mapping.get(self._field))})
        if not self._field:
            target = replace(_TARGETS[self._target], optional=schema.optional)
            return self.changed(record, target, self._converted(schema, value))
        struct = None if value is None else base.a_struct(value, "converting timestamp formats")
        target = self._schema(schema)
        return self.changed(record, target, None if struct is None else self._struct(struct, target))

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Converts the field's column, or the whole value."""
        column = self.column(batch)
        if isinstance(column, Nulls):
            return [batch] if column.schema is None else None
        schema = column.schema
        if isinstance(column, Column):
            if self._field:
                return None
            values = self._all(schema, column.texts().values)
            target = None if schema is None else replace(_TARGETS[self._target], optional=schema.optional)
            return self.columns_changed(batch, Column(values, target))
        if not self._field:
            return None
        fields = dict(column.columns(defaults=self.defaults))
        inner = None if schema is None else next((f.schema for f in schema.fields if f.name == self._field), None)
        if schema is None or inner is not None:
            fields[self._field] = mapped(fields.get(self._field, NULL), lambda values: self._all(inner, values))
        return self.columns_changed(batch, StructColumn(None if schema is None else self._schema(schema), fields))

    def _all(self, schema: Schema | None, values: list[Any]) -> list[Any]:
        if schema is None:
            return [self._converted(None, value) for value in values]
        form = _form(schema)
        read, write = self._read, self._write
        return [None if value is None else write(read(form, value)) for value in values]

    def _converted_schema(self, schema: Schema) -> Schema:
        new_schema = base.with_fields(schema, tuple(self._converted_field(field) for field in schema.fields))
        new_schema = replace(new_schema, optional=schema.optional)
        if isinstance(schema.default, Struct):
            new_schema = replace(new_schema, default=self._struct(schema.default, new_schema))
        return new_schema

    def _converted_field(self, field: Field) -> Field:
        if field.name != self._field:
            return field
        return Field(field.name, replace(_TARGETS[self._target], optional=field.schema.optional))

    def _struct(self, struct: Struct, new_schema: Schema) -> Struct:
        values = {}
        for field in struct.schema.fields:
            value = base.got(struct, field, defaults=self.defaults)
            values[field.name] = self._converted(field.schema, value) if field.name == self._field else value
        return Struct(new_schema, values)

    def _converted(self, schema: Schema | None, value: Any) -> Any:
        form = None if schema is None else _form(schema)
        if value is None:
            return None
        if form is None:
            form = "Timestamp" if isinstance(value, TIMES) else _FORMS.get(java_class(value), "")
            if not form:
                raise DataError(f"TimestampConverter does not support class {java_class(value)} objects as timestamps")
        return self._write(self._read(form, value))

    def _read(self, form: str, value: Any) -> Time:
        if form == "unix":
            finer = self._per_second > 1000
            return moment(_cut(value, self._per_second) if finer else clipped(value * 1000 // self._per_second))
        if form == "string":
            if self._format is None:
                raise DataError(_NO_FORMAT)
            try:
                return self._format.parse(value)
            except ParseError:
                text = f"Could not parse timestamp: value ({value}) does not match pattern ({self._format.pattern})"
                raise DataError(text) from None
        if not isinstance(value, TIMES):
            raise DataError(f"Expected timestamp to be a java.util.Date, but found class {java_class(value)}")
        return value

    def _text(self, value: Time) -> str:
        assert self._format is not None
        return self._format.format(value)

    def _number(self, value: Time) -> int:
        ms = ms_of(value)
        if self._per_second == 1000:
            return ms
        if self._per_second > 1000:
            return clipped(ms * (self._per_second // 1000))
        return -(-ms // 1000) if ms < 0 else ms // 1000


_FORMS = {"java.lang.Long": "unix", "java.lang.String": "string"}


def _cut(value: int, per_second: int) -> int:
    """Returns the ms of a finer number, rounded towards zero."""
    part = per_second // 1000
    return -(-value // part) if value < 0 else value // part


def _form(schema: Schema) -> str:
    for name in ("Timestamp", "Date", "Time"):
        if schema.name == _TARGETS[name].name:
            return name
    if schema.type in ("string", "int64"):
        return "string" if schema.type == "string" else "unix"
    shown = java_type(schema)
    shown = f"{schema.name}:{shown}" if schema.name else shown
    raise ConnectError(f"Schema Schema{{{shown}}} does not correspond to a known timestamp type format")


def _same(value: Time) -> Time:
    return value


def _day(value: Time) -> Time:
    ms = ms_of(value)
    return moment(cut(ms - ms % DAY_MS, 64))


def _time_of_day(value: Time) -> Time:
    return moment(ms_of(value) % DAY_MS)

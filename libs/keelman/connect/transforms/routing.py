"""Filter, RegexRouter and SetSchemaMetadata: drop records, rename topics, rename schemas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from keelman.connect.columns import ColumnBatch, Nulls, StructColumn
from keelman.connect.config.definition import REQUIRED, ConfigKey, Importance, Type
from keelman.connect.errors import ConfigValueError, DataError
from keelman.connect.java.regex import JavaPattern, PatternError
from keelman.connect.record import Record
from keelman.connect.schema import Struct
from keelman.connect.transforms.base import OfSchemas, Transform, got, null_default


class Filter(Transform):
    """Drops every record; used with a predicate."""

    name = "Filter"
    parts = ("",)

    def apply(self, record: Record) -> None:
        """Drops the record."""

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch]:
        """Returns no batch."""
        return []


def java_pattern(name: str, value: Any) -> None:
    """Validates a Java pattern. Raises ConfigValueError."""
    try:
        JavaPattern(value)
    except PatternError as error:
        raise ConfigValueError(name, value, f"Invalid regex: {error}") from None


class RegexRouter(Transform):
    """Renames the topic of records whose topic matches as a whole."""

    name = "RegexRouter"
    parts = ("",)

    keys = (
        ConfigKey("regex", Type.STRING, REQUIRED, Importance.HIGH, "Java regex.", java_pattern),
        ConfigKey("replacement", Type.STRING, REQUIRED, Importance.HIGH, "New name; $1 is a group."),
    )

    def _set_up(self) -> None:
        self._pattern = JavaPattern(self.config["regex"])
        self._replacement: str = self.config["replacement"]
        self._seen: dict[str, str] = {}

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch]:
        """Renames the batch's topic: a batch has only one."""
        batch.topic = self._routed(batch.topic)
        return [batch]

    def apply(self, record: Record) -> Record:
        """Renames the record's topic."""
        record.topic = self._routed(record.topic)
        return record

    def _routed(self, topic: str) -> str:
        """Caches the new names: topics are few."""
        routed = self._seen.get(topic)
        if routed is None:
            routed = self._judged(topic)
            if len(self._seen) < 1000:
                self._seen[topic] = routed
        return routed

    def _judged(self, topic: str) -> str:
        if not self._pattern.matches(topic):
            return topic
        try:
            return self._pattern.replace_first(topic, self._replacement)
        except PatternError as error:
            raise NoGroupError(str(error)) from None


class NoGroupError(DataError):
    """A replacement names a group that the pattern does not have, as Java reports it."""

    java_name = "java.lang.IndexOutOfBoundsException"


class SetSchemaMetadata(Transform):
    """Changes the name or version of a struct's schema."""

    name = "SetSchemaMetadata"

    keys = (
        ConfigKey("schema.name", Type.STRING, None, Importance.HIGH, "New name of the schema."),
        ConfigKey("schema.version", Type.INT, None, Importance.HIGH, "New version of the schema."),
        null_default(),
    )

    def _set_up(self) -> None:
        marks = {"name": self.config["schema.name"], "version": self.config["schema.version"]}
        self._marks = {name: value for name, value in marks.items() if value is not None}
        self._marked = OfSchemas(lambda schema: replace(schema, **self._marks))
        if not self._marks:
            raise ConfigValueError("schema.name", None, whole="Neither schema name nor version configured")

    def apply(self, record: Record) -> Record:
        """Changes the schema; leaves a null without a schema unchanged. Raises DataError for other non-structs."""
        schema, value = self.data(record)
        if schema is None:
            if value is None:
                return record
            raise DataError("Schema required for [updating schema metadata]")
        if schema.type != "struct":
            raise DataError("Cannot list fields on non-struct type")
        new_schema = self._marked(schema)
        if not isinstance(value, Struct):
            return self.changed(record, new_schema, value)
        values = {field.name: got(value, field, defaults=self.defaults) for field in schema.fields}
        return self.changed(record, new_schema, Struct(new_schema, values))

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Changes the schema; keeps the columns."""
        column = self.column(batch)
        if isinstance(column, Nulls) and column.schema is None:
            return [batch]
        if not isinstance(column, StructColumn) or column.schema is None:
            return None
        new_schema = self._marked(column.schema)
        fields = column.columns(defaults=self.defaults)
        return self.columns_changed(batch, StructColumn(new_schema, fields))

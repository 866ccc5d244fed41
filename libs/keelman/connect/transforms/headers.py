"""DropHeaders, InsertHeader and HeaderFrom: remove headers, add them, take them from fields."""

from __future__ import annotations

from typing import Any

from keelman.connect.columns import NULL, ColumnBatch, StructColumn, values_of
from keelman.connect.config.definition import REQUIRED, ConfigKey, Importance, Type, one_of
from keelman.connect.converters.literals import parse_literal
from keelman.connect.errors import ConfigValueError, DataError
from keelman.connect.record import Header, Record
from keelman.connect.schema import Schema, Struct
from keelman.connect.transforms import base


class DropHeaders(base.Transform):
    """Removes all headers of some names."""

    name = "DropHeaders"
    of_headers = True
    parts = ("",)

    keys = (ConfigKey("headers", Type.LIST, REQUIRED, Importance.HIGH, "Names of headers.", base.some_names),)

    def _set_up(self) -> None:
        self._names = frozenset(self.config["headers"])

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch]:
        """Removes the headers of each record."""
        if batch.headers is not None:
            batch.headers = [
                [header for header in headers if header.name not in self._names] for headers in batch.headers
            ]
        return [batch]

    def apply(self, record: Record) -> Record:
        """Removes the headers."""
        record.headers = [header for header in record.headers if header.name not in self._names]
        return record


class InsertHeader(base.Transform):
    """Adds a header with a literal value, whose type is derived from its text."""

    name = "InsertHeader"
    of_headers = True
    parts = ("",)

    keys = (
        ConfigKey("header", Type.STRING, REQUIRED, Importance.HIGH, "The header's name."),
        ConfigKey("value.literal", Type.STRING, REQUIRED, Importance.HIGH, "The value as text."),
    )

    def _set_up(self) -> None:
        schema, value = parse_literal(self.config["value.literal"])
        self._header = Header(self.config["header"], schema, value)

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch]:
        """Adds the header to each record."""
        if batch.headers is None:
            batch.headers = [[self._header]] * batch.count
        else:
            batch.headers = [[*headers, self._header] for headers in batch.headers]
        return [batch]

    def apply(self, record: Record) -> Record:
        """Adds the header."""
        record.headers = [*record.headers, self._header]
        return record


def _not_empty(name: str, value: Any) -> None:
    if not value:
        raise ConfigValueError(name, "[]", "Empty list")


class HeaderFrom(base.Transform):
    """Copies or moves fields into headers."""

    name = "HeaderFrom"
    of_headers = True

    keys = (
        ConfigKey("fields", Type.LIST, REQUIRED, Importance.HIGH, "Fields, in order.", _not_empty),
        ConfigKey("headers", Type.LIST, REQUIRED, Importance.HIGH, "A header for each.", _not_empty),
        ConfigKey("operation", Type.STRING, REQUIRED, Importance.HIGH, "move or copy.", one_of("move", "copy")),
        base.null_default(),
    )

    def _set_up(self) -> None:
        fields, names = self.config["fields"], self.config["headers"]
        if len(fields) != len(names):
            whole = "'fields' config must have the same number of elements as 'headers' config."
            raise ConfigValueError("fields", fields, whole=whole)
        self._pairs = list(zip(fields, names, strict=True))
        self._fields = frozenset(fields)
        self._moves = self.config["operation"] == "move"
        self._rest = base.OfSchemas(self._without_fields)

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Turns the fields into headers of each record."""
        column = self.column(batch)
        if not isinstance(column, StructColumn):
            return None
        schema, fields = column.schema, column.columns(defaults=self.defaults)
        if schema is not None and not self._fields <= fields.keys():
            return None
        schemas = {} if schema is None else {field.name: field.schema for field in schema.fields}
        columns = []
        for name, header in self._pairs:
            inner, values = schemas.get(name), values_of(fields.get(name, NULL), batch.count)
            columns.append([Header(header, inner, value) for value in values])
        before = batch.headers or [[]] * batch.count
        batch.headers = [[*headers, *more] for headers, more in zip(before, zip(*columns, strict=True), strict=True)]
        if not self._moves:
            return [batch]
        rest = {name: field for name, field in fields.items() if name not in self._fields}
        return self.columns_changed(batch, StructColumn(None if schema is None else self._rest(schema), rest))

    def apply(self, record: Record) -> Record:
        """Turns the fields into headers. Raises DataError for a field that a schema does not have."""
        schema, value = self.data(record)
        purpose = f"header {self.config['operation']}"
        if schema is None:
            mapping = dict(base.a_map(value, purpose))
            record.headers = [*record.headers, *(Header(name, None, mapping.get(field)) for field, name in self._pairs)]
            if self._moves:
                mapping = {k: v for k, v in mapping.items() if k not in self._fields}
            return self.changed(record, None, mapping)
        struct = base.a_struct(value, purpose)
        by_name = {field.name: field for field in struct.schema.fields}
        moved = []
        for field, name in self._pairs:
            if field not in by_name:
                raise DataError(f"Field does not exist: {field}")
            struct_field = by_name[field]
            moved.append(Header(name, struct_field.schema, base.got(struct, struct_field, defaults=self.defaults)))
        record.headers = [*record.headers, *moved]
        if not self._moves:
            return record
        rest_schema = self._rest(schema)
        values = {field.name: base.got(struct, field, defaults=self.defaults) for field in rest_schema.fields}
        return self.changed(record, rest_schema, Struct(rest_schema, values))

    def _without_fields(self, schema: Schema) -> Schema:
        return base.with_fields(schema, tuple(field for field in schema.fields if field.name not in self._fields))

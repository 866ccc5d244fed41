"""HoistField and ReplaceField: wrap a value in a field, remove fields, rename them."""

from __future__ import annotations

from keelman.connect.columns import ColumnBatch, Constant, Nulls, StructColumn
from keelman.connect.config.definition import REQUIRED, ConfigKey, Importance, Type
from keelman.connect.errors import ConfigValueError
from keelman.connect.java.text import hash_order
from keelman.connect.record import Record
from keelman.connect.records import Column
from keelman.connect.schema import Field, Schema, Struct
from keelman.connect.transforms.base import OfSchemas, Transform, a_map, a_struct, got, null_default, with_fields


def renamings(pairs: list[str]) -> dict[str, str]:
    """Parses pairs `old:new`. Raises ConfigValueError with Connect's text."""
    renames: dict[str, str] = {}
    for pair in pairs:
        # Like Java's split: empty parts after the last colon do not count.
        words = pair.split(":") if not pair.endswith(":") else pair.rstrip(":").split(":")
        if len(words) != 2:
            shown = f"[{', '.join(pairs)}]"
            raise ConfigValueError("renames", shown, f"Invalid rename mapping: {pair}")
        renames[words[0]] = words[1]
    return renames


class HoistField(Transform):
    """Wraps the whole key or value in a struct or a map with one field."""

    name = "HoistField"

    keys = (
        ConfigKey(
            "field", Type.STRING, REQUIRED, Importance.MEDIUM,
            "Name of the one field of the struct or map that is made.",
        ),
    )  # fmt: skip

    def _set_up(self) -> None:
        self.field: str = self.config["field"]
        self._around = OfSchemas(lambda schema: Schema("struct", fields=(Field(self.field, schema),)))

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch]:
        """Makes the column the only one of a struct."""
        column = self.column(batch)
        schema = None if column.schema is None else self._around(column.schema)
        inner: Column | Constant
        if isinstance(column, Column):
            inner = column
        elif isinstance(column, Nulls):
            inner = Constant(None)
        else:
            inner = Column(column.rows(batch.count))
        return self.columns_changed(batch, StructColumn(schema, {self.field: inner}))

    def apply(self, record: Record) -> Record:
        """Wraps every value, also null."""
        schema, value = self.data(record)
        if schema is None:
            return self.changed(record, None, {self.field: value})
        around = self._around(schema)
        return self.changed(record, around, Struct(around, {self.field: value}))


class ReplaceField(Transform):
    """Keeps some fields, or drops some, and renames them."""

    name = "ReplaceField"

    keys = (
        ConfigKey("exclude", Type.LIST, [], Importance.MEDIUM, "Fields to leave out; comes before `include`."),
        ConfigKey("include", Type.LIST, [], Importance.MEDIUM, "The only fields to keep; empty means all."),
        ConfigKey("renames", Type.LIST, [], Importance.MEDIUM, "Fields to rename: old:new, comma-separated."),
        null_default(),
    )

    def _set_up(self) -> None:
        self._exclude, self._include = frozenset(self.config["exclude"]), frozenset(self.config["include"])
        self._renames = renamings(self.config["renames"])
        self._kept = OfSchemas(self._keep)

    def keeps(self, name: str) -> bool:
        """Whether a field stays."""
        return name not in self._exclude and (not self._include or name in self._include)

    def renamed(self, name: str) -> str:
        """Returns a field's new name."""
        return self._renames.get(name, name)

    def _keep(self, schema: Schema) -> tuple[Schema, tuple[tuple[str, Field], ...]]:
        """Returns the new schema, and its fields' new names with the old fields."""
        pairs = tuple((self.renamed(f.name), f) for f in schema.fields if self.keeps(f.name))
        return with_fields(schema, tuple(Field(name, f.schema) for name, f in pairs)), pairs

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Drops and renames columns."""
        column = self.column(batch)
        if not isinstance(column, StructColumn):
            return [batch] if isinstance(column, Nulls) else None
        if column.schema is None:
            names = hash_order(column.names) if self._renames else column.names
            remaining = {self.renamed(name): column.fields[name] for name in names if self.keeps(name)}
            return self.columns_changed(batch, StructColumn(None, remaining))
        new_schema, pairs = self._kept(column.schema)
        fields = column.columns(defaults=self.defaults)
        return self.columns_changed(batch, StructColumn(new_schema, {name: fields[f.name] for name, f in pairs}))

    def apply(self, record: Record) -> Record:
        """Drops and renames fields; leaves null unchanged."""
        schema, value = self.data(record)
        if value is None:
            return record
        if schema is None:
            mapping = a_map(value, "field replacement")
            # Of two fields with one new name the last counts, in Java's order.
            names = hash_order(mapping) if self._renames else mapping
            return self.changed(record, None, {self.renamed(k): mapping[k] for k in names if self.keeps(k)})
        struct = a_struct(value, "field replacement")
        new_schema, pairs = self._kept(struct.schema)
        values = {name: got(struct, field, defaults=self.defaults) for name, field in pairs}
        return self.changed(record, new_schema, Struct(new_schema, values))

"""Translates a Connect schema into an Avro schema, in Confluent's mapping and in the order of Avro's Java library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from keelman.connect.avro import names
from keelman.connect.avro.logical import writer
from keelman.connect.avro.names import AVRO_TYPES, AvroOptions, checked_name, fixed_size, is_union
from keelman.connect.converters.logical import DATE, DECIMAL, LOGICAL, TIME, TIMESTAMP
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import Float32
from keelman.connect.recurring_schema import Recurring
from keelman.connect.schema import Field, Schema, Struct, type_name

Avro = dict[str, Any] | list[Any] | str
"""An Avro schema as JSON."""
_LOGICAL_TYPES = {TIME: "time-millis", TIMESTAMP: "timestamp-millis", DATE: "date"}


def write_schema(schema: Schema | None, options: AvroOptions) -> Avro:
    """Returns the Avro schema; that of `Anything` for no schema. Raises DataError for schemas that Avro cannot hold."""
    if schema is None:
        return anything()
    try:
        return _Writer(options).schema(schema, None)
    except RecursionError:
        raise DataError("The schema is nested too deeply for Avro") from None


def anything() -> Avro:
    """Returns the schema for data without a schema: one field is set in each record."""
    plain: list[Any] = [
        {"name": name, "type": ["null", name], "default": None}
        for name in ("boolean", "bytes", "double", "float", "int", "long", "string")
    ]
    entry = {
        "type": "record",
        "name": names.MAP_ENTRY,
        "fields": [{"name": "key", "type": "Anything"}, {"name": "value", "type": "Anything"}],
    }
    items = ({"type": "array", "items": "Anything"}, {"type": "array", "items": entry})
    lists = [
        {"name": name, "type": ["null", item], "default": None}
        for name, item in zip(("array", "map"), items, strict=True)
    ]
    return {"type": "record", "name": "Anything", "namespace": names.NAMESPACE, "fields": [*plain, *lists]}


def full_name(avro: Avro) -> str:
    """Returns a schema's name for subject name strategies: a named type's own, else the type."""
    if isinstance(avro, list):
        return "union"
    if isinstance(avro, str):
        return avro
    space = avro.get("namespace")
    if avro["type"] not in names.NAMED:
        return str(avro["type"])
    return f"{space}.{avro['name']}" if space and "." not in avro["name"] else str(avro["name"])


@dataclass(slots=True)
class _Writer:
    """Translates one schema; remembers the names that it has defined."""

    options: AvroOptions
    _defined: dict[str, object] = field(default_factory=dict)
    _unnamed: dict[Schema, str] = field(default_factory=dict)

    def schema(self, schema: Schema, space: str | None) -> Avro:
        """Translates a schema; `space` is the enclosing namespace."""
        if is_union(schema):
            return self._union(schema, space)
        base = self._base(schema, space)
        if not schema.optional:
            return base
        return [base, "null"] if schema.default is not None else ["null", base]

    def _base(self, schema: Schema, space: str | None) -> Avro:
        """Translates a schema as if it were required."""
        node: dict[str, Any]
        if schema.type == "struct":
            return self._struct(schema, space)
        if schema.type == "array":
            node = {"type": "array", "items": self.schema(_part(schema.value, "array"), space)}
        elif schema.type == "map":
            node = self._map(schema, space)
        elif self._is_enum(schema):
            return self._enum(schema, space)
        elif (size := fixed_size(schema)) is not None:
            name = self.options.scrubbed_full(str(schema.name))
            node, defined = self._named("fixed", name, space, ("fixed", size))
            if defined:
                return node["name"]  # type: ignore[no-any-return]
            node["size"] = size
            node |= self._decimal(schema)
        elif schema.type in AVRO_TYPES:
            node = {"type": AVRO_TYPES[schema.type], **self._decimal(schema)}
        else:
            raise DataError(f"Unknown schema type: {schema.type}")
        node |= self._about(schema)
        return str(node["type"]) if node.keys() == {"type"} else node

    def _struct(self, schema: Schema, space: str | None) -> Avro:
        key = schema if isinstance(schema, Recurring) else _nameless(schema)
        if schema.name is None:
            full = self._unnamed.get(key)
            if full is None:
                count = len(self._unnamed) + 1
                full = f"{names.NAMESPACE}.{names.DEFAULT_NAME}{count if count > 1 else ''}"
                self._unnamed[key] = full
        else:
            full = self.options.scrubbed_full(schema.name)
        node, defined = self._named("record", full, space, key)
        if defined:
            return node["name"]  # type: ignore[no-any-return]
        inner, docs = full.rpartition(".")[0] or None, dict(schema.parameters)
        alone = self.options.discard_type_doc_default
        doc = docs.get(names.RECORD_DOC_ALONE if alone else names.RECORD_DOC)
        if doc is not None:
            node["doc"] = doc
        node["fields"] = [
            self._field(
                self.options.scrubbed(field.name),
                field.schema,
                field.schema.doc if alone else docs.get(names.FIELD_DOC + field.name),
                inner,
            )
            for field in schema.fields
        ]
        return node | self._about(schema)

    def _field(self, name: str, schema: Schema, doc: str | None, space: str | None) -> dict[str, Any]:
        node: dict[str, Any] = {"name": checked_name(name), "type": self.schema(schema, space)}
        if doc is not None:
            node["doc"] = doc
        if schema.default is not None:
            node["default"] = self.default(schema, schema.default)
        elif schema.optional:
            node["default"] = None
        return node

    def _map(self, schema: Schema, space: str | None) -> dict[str, Any]:
        key, value = _part(schema.key, "map"), _part(schema.value, "map")
        if self.options.plain_keys(schema):
            return {"type": "map", "values": self.schema(value, space)}
        named = schema.name is not None
        full = self.options.scrubbed_full(schema.name) if schema.name else f"{names.NAMESPACE}.{names.MAP_ENTRY}"
        entry, defined = self._named("record", full, space, ("entry", _nameless(schema)))
        if defined:
            return {"type": "array", "items": entry["name"]}
        inner = full.rpartition(".")[0] or None
        entry["fields"] = [self._field("key", key, None, inner), self._field("value", value, None, inner)]
        if named:
            entry[names.INTERNAL_TYPE] = names.MAP_ENTRY
        return {"type": "array", "items": entry}

    def _union(self, schema: Schema, space: str | None) -> Avro:
        members = [self._base(field.schema, space) for field in schema.fields]
        return ["null", *members] if schema.optional else members

    def _is_enum(self, schema: Schema) -> bool:
        enum_parameter = self.options.enum_parameter
        return (
            schema.type == "string"
            and enum_parameter is not None
            and any(key == enum_parameter for key, _ in schema.parameters)
        )

    def _enum(self, schema: Schema, space: str | None) -> Avro:
        parameter, parameters = str(self.options.enum_parameter), dict(schema.parameters)
        symbols = [key.removeprefix(f"{parameter}.") for key in parameters if key.startswith(f"{parameter}.")]
        full = parameters[parameter]
        node, defined = self._named("enum", full, space, ("enum", tuple(symbols)))
        if defined:
            return node["name"]  # type: ignore[no-any-return]
        short = schema.name.rpartition(".")[2] if schema.name else names.DEFAULT_NAME
        alone = self.options.discard_type_doc_default
        doc = parameters.get(names.ENUM_DOC_ALONE if alone else names.ENUM_DOC + short)
        if doc is not None:
            node["doc"] = doc
        node["symbols"] = symbols
        default = None if alone else parameters.get(names.ENUM_DEFAULT + short)
        if default is not None:
            node["default"] = default
        return node | self._about(schema)

    def _named(self, kind: str, full: str, space: str | None, key: object) -> tuple[dict[str, Any], bool]:
        """Returns the beginning of a named type; for a known one only the name to refer to it, and True."""
        own, _, simple = full.rpartition(".")
        if full in self._defined:
            if self._defined[full] != key and not isinstance(key, Recurring):
                raise DataError(f"Can't redefine: {full}")
            return {"name": simple if own == (space or "") else full}, True
        self._defined[full] = key
        node: dict[str, Any] = {"type": kind, "name": checked_name(simple)}
        for part in own.split(".") if own else ():
            checked_name(part)
        if own != (space or ""):
            node["namespace"] = own
        return node, False

    def _about(self, schema: Schema) -> dict[str, Any]:
        """Returns the attributes of a Connect schema that Avro does not have, as properties."""
        properties: dict[str, Any] = {}
        parameters = dict(schema.parameters)
        if self.options.connect_meta_data:
            if schema.doc is not None:
                properties[names.DOC] = schema.doc
            if schema.version is not None:
                properties[names.VERSION] = schema.version
            alone = self.options.discard_type_doc_default
            remaining = {k: v for k, v in parameters.items() if alone or k != names.FIELD_DEFAULT}
            if remaining:
                properties[names.PARAMETERS] = remaining
            if schema.default is not None and (alone or names.FIELD_DEFAULT not in parameters):
                properties[names.DEFAULT] = self.default(schema, schema.default)
            if schema.name is not None:
                properties[names.NAME] = schema.name
            if schema.type in ("int8", "int16"):
                properties[names.TYPE] = schema.type
        if schema.name in _LOGICAL_TYPES:
            properties["logicalType"] = _LOGICAL_TYPES[schema.name]
        elif schema.name == DECIMAL:
            properties["logicalType"] = "decimal"
        properties |= {key: value for key, value in parameters.items() if key.startswith("avro")}
        return properties

    def _decimal(self, schema: Schema) -> dict[str, int]:
        if schema.name != DECIMAL:
            return {}
        parameters = dict(schema.parameters)
        try:
            scale = int(parameters["scale"])
            return {"scale": scale, "precision": int(parameters.get(names.PRECISION, names.DEFAULT_PRECISION))}
        except (KeyError, ValueError):
            raise DataError("A Decimal's schema needs the parameter scale, and whole numbers") from None

    def default(self, schema: Schema, value: Any) -> Any:
        """Returns a default as JSON. Raises DataError."""
        if value is None:
            return None
        if schema.name in LOGICAL:
            value = writer(schema)(value)
        try:
            return self._plain_default(schema, value)
        except (AttributeError, TypeError, ValueError):
            kind = type_name(schema.type)
            raise DataError(f"Invalid type used for default value of {kind} field: {value!r}") from None

    def _plain_default(self, schema: Schema, value: Any) -> Any:  # noqa: PLR0911  one line a type
        if schema.type == "bytes":
            return bytes(value).decode("latin-1")
        if schema.type == "float":
            return Float32(value)
        if schema.type == "array":
            return [self.default(_part(schema.value, "array"), item) for item in value]
        if schema.type == "map":
            inner = _part(schema.value, "map")
            if self.options.plain_keys(schema):
                return {key: self.default(inner, value) for key, value in value.items()}
            key_schema = _part(schema.key, "map")
            return [[self.default(key_schema, key), self.default(inner, value)] for key, value in value.items()]
        if schema.type == "struct":
            values: Mapping[str, Any] = value.values if isinstance(value, Struct) else value
            if is_union(schema):
                set_ones = (
                    self.default(f.schema, values[f.name]) for f in schema.fields if values.get(f.name) is not None
                )
                return next(set_ones, None)
            return {
                self.options.scrubbed(f.name): self.default(f.schema, _or_default(f, values.get(f.name)))
                for f in schema.fields
            }
        return value


def _or_default(member: Field, value: Any) -> Any:
    return member.schema.default if value is None else value


def _part(schema: Schema | None, kind: str) -> Schema:
    if schema is None:
        raise DataError(
            f"The schema of {'an array' if kind == 'array' else 'a map'} does not name the type of its content"
        )
    return schema


def _nameless(schema: Schema) -> Schema:
    """Returns the schema by which a struct is compared with another one of the same name."""
    return replace(schema, optional=False, default=None)
